"""Where each zone's paths lie beneath the workspace's root (spec 1 §8, DESIGN §3). Pure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from watchroom.disk import Parts
from watchroom.model import Row, Zone
from watchroom.names import META_SUFFIX

CONTROL: Final = ".watchroom"
JOURNAL_NAME: Final = "journal.db"
CONFIG_PATH: Final = "config.toml"
ROOTS: Final[dict[Zone, Parts]] = {
    "private": ("agents",),
    "handoff": ("handoff",),
    "collab": ("collaborative", "current"),
    "config": (CONTROL,),
}
"""The folder of each zone that has files."""

VERSIONS: Final[Parts] = ("collaborative", ".versions")
REALTIME: Final[Parts] = ("realtime", ".crdt_state")
CHECKPOINT_SUFFIX: Final = ".crdt.json"
HISTORY_NAME: Final = "history.json"


def has_files(zone: Zone) -> bool:
    """Whether the zone is laid out as files."""
    return zone in ROOTS


def place(zone: Zone, path: str) -> Parts:
    """The file of a path. A zone without files is a KeyError."""
    return (*ROOTS[zone], *path.split("/"))


def path_at(parts: Parts) -> tuple[Zone, str] | None:
    """The zone and path whose file is at ``parts``, None for other files. The reverse of `place`."""
    for zone, root in ROOTS.items():
        if parts[: len(root)] == root and len(parts) > len(root):
            path = "/".join(parts[len(root) :])
            if zone == "config" and path != CONFIG_PATH:
                return None
            return None if zone == "handoff" and path.endswith(META_SUFFIX) else (zone, path)
    return None


def checkpoint_place(document: str) -> Parts:
    return (*REALTIME, document + CHECKPOINT_SUFFIX)


def document_at(parts: Parts) -> str | None:
    """The document whose checkpoint is at ``parts``, None for other files. The reverse of
    `checkpoint_place`."""
    is_checkpoint = parts[:-1] == REALTIME and parts[-1].endswith(CHECKPOINT_SUFFIX)
    return parts[-1].removesuffix(CHECKPOINT_SUFFIX) if is_checkpoint else None


def version_place(path: str, version: int) -> Parts:
    return (*VERSIONS, *path.split("/"), f"v{version}.txt")


def history_place(path: str) -> Parts:
    return (*VERSIONS, *path.split("/"), HISTORY_NAME)


def meta_place(path: str) -> Parts:
    return (*ROOTS["handoff"], *(path + META_SUFFIX).split("/"))


def meta_text(row: Row) -> bytes:
    """The metadata file beside a handoff (spec 1 FR-2.3)."""
    sender, receiver, filename = split_handoff(row.path)
    fields = {
        "from": sender,
        "to": receiver,
        "file": filename,
        "timestamp": row.timestamp,
        "message": row.message,
        "version": row.version,
        "checksum": row.sha256,
        "size": row.size,
    }
    return (json.dumps(fields, ensure_ascii=False, indent=2) + "\n").encode()


def handoff_path(sender: str, receiver: str, filename: str = "") -> str:
    return f"{sender}_to_{receiver}/{filename}"


def split_handoff(path: str) -> tuple[str, str, str]:
    """Sender, receiver and file name of a handoff's path. Agent ids never hold ``_to_``."""
    pair, _, filename = path.partition("/")
    sender, _, receiver = pair.partition("_to_")
    return sender, receiver, filename


def history_line(row: Row) -> str:
    """One version in ``history.json`` (spec 1 FR-3.6, FR-3.9)."""
    fields = {
        "version": row.version,
        "author": row.actor,
        "timestamp": row.timestamp,
        "message": row.message,
        "checksum": row.sha256,
        "size": row.size,
    }
    return json.dumps(fields, ensure_ascii=False)


HISTORY_START: Final = b"[\n"
HISTORY_END: Final = b"\n]\n"


def history_text(lines: list[str]) -> bytes:
    return HISTORY_START + ",\n".join(lines).encode() + HISTORY_END
