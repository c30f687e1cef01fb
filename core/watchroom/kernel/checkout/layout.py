"""The places of files below the workspace's root, by zone (FILES-layout). Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from watchroom.platform.disk import Parts
from watchroom.features.handoffs.rows import split_handoff
from watchroom.kernel.rules.row_files import CONFIG_PATH
from watchroom.kernel.zones import DOCUMENTS, ZONES
from watchroom.model import Row, Zone
from watchroom.validation import GLOBAL_BOARD, META_SUFFIX, is_board_name

CONTROL: Final = ".watchroom"
JOURNAL_NAME: Final = "journal.db"
URL_NAME: Final = "journal.url"
"""The file with the address of the database, if the rows are not in the folder."""
QUARANTINE: Final = "quarantine"
ROOTS: Final[Mapping[Zone, Parts]] = {zone: spec.folder for zone, spec in ZONES.items() if spec.folder}
"""The folder of each zone that has files."""
EDITED: Final[tuple[Zone, ...]] = tuple(zone for zone in ROOTS if ZONES[zone].on_edit != "nothing")
"""The zones in whose files external edits count."""

_GLOBAL_FILE: Final = "global-whiteboard"
VERSIONED: Final[tuple[Zone, ...]] = tuple(zone for zone, spec in ZONES.items() if spec.versions)
"""The zones in which each version has a file."""
CHECKPOINTS: Final[Mapping[Zone, Parts]] = {zone: ZONES[zone].checkpoints for zone in DOCUMENTS}
"""The folder with the checkpoints of each zone of documents."""
CHECKPOINT_SUFFIX: Final = ".crdt.json"
HISTORY_NAME: Final = "history.json"


WATCHED_FOLDERS: Final[tuple[Parts, ...]] = (
    *(ROOTS[zone] for zone in ROOTS if zone not in ("config", "lease")),
    *(parts[:1] for parts in CHECKPOINTS.values()),
)
"""The folders in which external edits count, or are undone."""


def place(zone: Zone, path: str) -> Parts:
    """The place of the file of ``path`` in ``zone``, by its parts. Raise KeyError for a zone without
    files."""
    spec = ZONES[zone]
    if spec.suffix:
        name = _board_file(path) + spec.suffix
        return (name,) if path == spec.root_path else (*ROOTS[zone], name)
    return (*ROOTS[zone], *path.split("/"))


def _board_file(board: str) -> str:
    """The name of a board's files, without the suffix (BOARDS-2.1)."""
    return _GLOBAL_FILE if board == GLOBAL_BOARD else board


_ROOT_FILES: Final[Mapping[Parts, tuple[Zone, str]]] = {
    place(zone, spec.root_path): (zone, spec.root_path)
    for zone, spec in ZONES.items()
    if spec.root_path is not None
}
"""The zone and path of each file in the workspace's folder itself."""


def watched_files() -> tuple[Parts, ...]:
    """Files in which external edits count, in folders that must not be watched."""
    return (CONTROL, CONFIG_PATH), *_ROOT_FILES


def path_at(parts: Parts) -> tuple[Zone, str] | None:
    """The zone and path of the file at ``parts``: the reverse of `place`. None for other files, and for files
    in which external edits do not count."""
    if parts in _ROOT_FILES:
        return _ROOT_FILES[parts]
    for zone in EDITED:
        root = ROOTS[zone]
        if parts[: len(root)] == root and len(parts) > len(root):
            path = _path_of(zone, parts[len(root) :])
            return None if path is None else (zone, path)
    return None


def _path_of(zone: Zone, below: Parts) -> str | None:
    """Return the path in ``zone`` of the file at ``below``, which is relative to the zone's folder.

    None if no path has its file there.
    """
    path = "/".join(below)
    if zone == "config":
        return path if path == CONFIG_PATH else None
    spec = ZONES[zone]
    if spec.has_metadata and path.endswith(META_SUFFIX):
        return None
    if spec.suffix:
        name = path.removesuffix(spec.suffix)
        is_name = len(below) == 1 and name not in (path, spec.root_path) and is_board_name(name)
        return name if is_name else None
    return path


def checkpoint_place(zone: Zone, document: str) -> Parts:
    """Return the parts of the file with the checkpoint of ``document`` in ``zone``."""
    return (*CHECKPOINTS[zone], document + CHECKPOINT_SUFFIX)


def document_place(zone: Zone, document: str) -> Parts:
    """Return the parts of the file to which an export writes the values of ``document`` in ``zone``."""
    return (*CHECKPOINTS[zone][:1], document + ".json")


def document_at(parts: Parts) -> str | None:
    """The document of the checkpoint at ``parts``, None for other files. The reverse of
    `checkpoint_place`."""
    is_checkpoint = parts[:-1] in CHECKPOINTS.values() and parts[-1].endswith(CHECKPOINT_SUFFIX)
    return parts[-1].removesuffix(CHECKPOINT_SUFFIX) if is_checkpoint else None


def version_place(row: Row) -> Parts:
    """The place of the file of a version. ``row``: the row of a version of a shared file or board."""
    spec = ZONES[row.zone]
    if spec.suffix:
        return (*spec.versions, f"{_board_file(row.path)}-v{row.version}{spec.suffix}")
    return (*spec.versions, *row.path.split("/"), f"v{row.version}.txt")


def oldest_kept(head: Row) -> int:
    """Return the oldest version with a file. ``head``: the current version."""
    kept = ZONES[head.zone].max_version_files
    return max(1, (head.version or 0) - kept + 1) if kept else 1


def history_place(zone: Zone, path: str) -> Parts:
    """Return the parts of the file with the history of ``path`` in ``zone``."""
    return (*ZONES[zone].versions, *path.split("/"), HISTORY_NAME)


def meta_place(zone: Zone, path: str) -> Parts:
    """Return the parts of the file with the metadata of ``path`` in ``zone``."""
    return (*ROOTS[zone], *(path + META_SUFFIX).split("/"))


def meta_text(row: Row) -> bytes:
    """The metadata file for the handoff of ``row``, as UTF-8 (FILES-2.3)."""
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
    """The version of ``row`` as a line of ``history.json`` (FILES-3.6, FILES-3.9)."""
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
