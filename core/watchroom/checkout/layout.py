"""Where each zone's paths lie beneath the workspace's root (FILES-layout). Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from watchroom.disk import Parts
from watchroom.model import ZONES, Row, Zone
from watchroom.rules.handoffs import split_handoff
from watchroom.rules.row_files import CONFIG_PATH as CONFIG_PATH
from watchroom.validation import GLOBAL_BOARD, META_SUFFIX, is_board_name

CONTROL: Final = ".watchroom"
JOURNAL_NAME: Final = "journal.db"
URL_NAME: Final = "journal.url"
"""The file that names the database with the rows, where they are not in the folder."""
QUARANTINE: Final = "quarantine"
ROOTS: Final[Mapping[Zone, Parts]] = {zone: spec.folder for zone, spec in ZONES.items() if spec.folder}
"""The folder of each zone that has files."""

_GLOBAL_FILE: Final = "global-whiteboard"
VERSIONS_OF_A_BOARD: Final = 10
"""So many of a board's newest versions lie in ``whiteboard-history`` (BOARDS-8)."""

VERSIONS: Final[Parts] = ZONES["collab"].versions
VERSIONED: Final[tuple[Zone, ...]] = tuple(zone for zone, spec in ZONES.items() if spec.versions)
"""The zones in which each version has a file."""
REALTIME: Final[Parts] = ("realtime", ".crdt_state")
CHECKPOINT_SUFFIX: Final = ".crdt.json"
HISTORY_NAME: Final = "history.json"


WATCHED_FOLDERS: Final[tuple[Parts, ...]] = (
    *(ROOTS[zone] for zone in ROOTS if zone not in ("config", "lease")),
    REALTIME[:1],
)
"""The folders in which edits made by hand count, or are put right."""


def has_files(zone: Zone) -> bool:
    """Whether paths of ``zone`` are laid out as files."""
    return zone in ROOTS


def place(zone: Zone, path: str) -> Parts:
    """The file of ``path`` in ``zone``, by its parts. A zone without files is a KeyError."""
    if zone == "board":
        return (_board_file(path) + ".md",) if path == GLOBAL_BOARD else (*ROOTS[zone], path + ".md")
    if zone == "lease":
        return (*ROOTS[zone], _board_file(path) + ".lock")
    return (*ROOTS[zone], *path.split("/"))


def _board_file(board: str) -> str:
    """The name of a board's files, without what follows the dot (BOARDS-2.1)."""
    return _GLOBAL_FILE if board == GLOBAL_BOARD else board


def watched_files() -> tuple[Parts, ...]:
    """The files in which edits made by hand count and that lie beside what nobody should watch."""
    return (CONTROL, CONFIG_PATH), place("board", GLOBAL_BOARD)


def path_at(parts: Parts) -> tuple[Zone, str] | None:
    """The zone and path whose file is at ``parts``, None for other files and those that only show something.
    The reverse of `place`."""
    if parts == place("board", GLOBAL_BOARD):
        return "board", GLOBAL_BOARD
    for zone, root in ROOTS.items():
        if is_edited(zone) and parts[: len(root)] == root and len(parts) > len(root):
            path = _path_of(zone, parts[len(root) :])
            return None if path is None else (zone, path)
    return None


def _path_of(zone: Zone, below: Parts) -> str | None:
    """The path whose file is at ``below`` its zone's folder."""
    path = "/".join(below)
    if zone == "config":
        return path if path == CONFIG_PATH else None
    if zone == "handoff":
        return None if path.endswith(META_SUFFIX) else path
    if zone == "board":
        name = path.removesuffix(".md")
        return name if len(below) == 1 and name not in (path, GLOBAL_BOARD) and is_board_name(name) else None
    return path


def checkpoint_place(document: str) -> Parts:
    """The file of the checkpoint of ``document``, by its parts."""
    return (*REALTIME, document + CHECKPOINT_SUFFIX)


def document_place(document: str) -> Parts:
    """Where an export lays out the values of ``document``, by its parts."""
    return (*REALTIME[:1], document + ".json")


def document_at(parts: Parts) -> str | None:
    """The document whose checkpoint is at ``parts``, None for other files. The reverse of
    `checkpoint_place`."""
    is_checkpoint = parts[:-1] == REALTIME and parts[-1].endswith(CHECKPOINT_SUFFIX)
    return parts[-1].removesuffix(CHECKPOINT_SUFFIX) if is_checkpoint else None


def version_place(row: Row) -> Parts:
    """The file that keeps the version of a shared file or a board that ``row`` made."""
    if row.zone == "board":
        return (*ZONES["board"].versions, f"{_board_file(row.path)}-v{row.version}.md")
    return (*ZONES[row.zone].versions, *row.path.split("/"), f"v{row.version}.txt")


def oldest_kept(head: Row) -> int:
    """The oldest version that has a file where ``head`` is the current one: of a board, the newest ten."""
    return max(1, (head.version or 0) - VERSIONS_OF_A_BOARD + 1) if head.zone == "board" else 1


def is_edited(zone: Zone) -> bool:
    """Whether what people write into the files of ``zone`` counts."""
    return zone in ROOTS and ZONES[zone].on_edit != "nothing"


def history_place(path: str) -> Parts:
    """The file with the history of the shared file ``path``, by its parts."""
    return (*VERSIONS, *path.split("/"), HISTORY_NAME)


def meta_place(path: str) -> Parts:
    """The file with the metadata of the handoff ``path``, by its parts."""
    return (*ROOTS["handoff"], *(path + META_SUFFIX).split("/"))


def meta_text(row: Row) -> bytes:
    """The metadata file beside the handoff that ``row`` made, as UTF-8 (FILES-2.3)."""
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


def history_line(row: Row) -> str:
    """The version that ``row`` made, as a line of ``history.json`` (FILES-3.6, FILES-3.9)."""
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
    """The whole ``history.json`` with ``lines``, in UTF-8."""
    return HISTORY_START + ",\n".join(lines).encode() + HISTORY_END
