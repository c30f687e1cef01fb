"""`ZONES`: the properties of all paths in each zone. Sets of zones are derived from these records.

A new zone is a name in `watchroom.model.Zone`, a record here, and the folder of its feature.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple, get_args

from watchroom.model import WRITE_FILE, Zone
from watchroom.validation import GLOBAL_BOARD


class ZoneSpec(NamedTuple):
    """The properties of all paths in a zone.

    - ``folder``: the parts of the folder of its files in the workspace; empty if it has no files there.
    - ``versions``: the parts of the folder with a file for each version, if there is one.
    - ``max_version_files``: the number of newest versions with files there; 0 means all.
    - ``has_history``: a file beside the version files lists the versions.
    - ``has_metadata``: a file beside each file has its metadata.
    - ``on_edit``: the result of an external edit: the next version, a conflict, or nothing.
    - ``suffix``: the suffix that follows the path in file names. Such paths are names of boards.
    - ``root_path``: the path whose file is in the workspace's folder itself, None if there is none.
    - ``checkpoints``: the parts of the folder with a checkpoint of each path. For zones whose versions are
      changes of a document instead of whole texts.
    - ``is_shared``: several agents write, so a stale write is refused and waits as a conflict.
    - ``is_delivered``: its paths are ``SENDER_to_RECEIVER/FILE``. The receiver is notified of each version.
    - ``has_sections``: a version can replace one section of the text. Its detail names the section.
    - ``is_on_disk_first``: its files are written before their rows, so no other file can block them.
    - ``keeps_mode``: the rows of its versions record whether the file is executable.
    - ``is_searched``: the search index has the texts of its versions.
    - ``is_compared``: a comparison of two moments lists its paths.
    - ``reverts``: how its versions are reverted: as texts, or as items of a revert part.
    - ``is_work``: its versions and refusals count for the breaker.
    - ``is_read``: its notes are reads, except notes of tools with another effect.
    - ``is_buffered``: an agent can open its files in a buffer.
    - ``owner``: the meaning of the first part of its paths. An agent uses its own paths without this part.
    - ``read_tool``: the tool that reads the current version of a path.
    - ``read_old_tool``: the tool of rows that record a read of an earlier version.
    - ``write_tool``: the tool that writes a path. The policy treats the flush of a buffer like this tool.
    - ``show_call``: the tool that shows the current version of a path, and its parameter for the path. Agents
      get notices of changes by others only in zones that have it.
    - ``part_separator``: the text between a path and its part in rows that record a read of this part.
    """

    folder: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()
    max_version_files: int = 0
    has_history: bool = False
    has_metadata: bool = False
    on_edit: Literal["version", "conflict", "nothing"] = "nothing"
    suffix: str = ""
    root_path: str | None = None
    checkpoints: tuple[str, ...] = ()
    is_shared: bool = False
    is_delivered: bool = False
    has_sections: bool = False
    is_on_disk_first: bool = False
    keeps_mode: bool = False
    is_searched: bool = False
    is_compared: bool = False
    reverts: Literal["text", "item", "nothing"] = "nothing"
    is_work: bool = False
    is_read: bool = False
    is_buffered: bool = False
    owner: Literal["agent", "task", "tree", ""] = ""
    read_tool: str = ""
    read_old_tool: str = ""
    write_tool: str = ""
    show_call: tuple[str, str] = ("", "")
    part_separator: str = ""


ZONES: Final[Mapping[Zone, ZoneSpec]] = dict.fromkeys(get_args(Zone), ZoneSpec()) | {
    "private": ZoneSpec(
        folder=("agents",),
        on_edit="version",
        keeps_mode=True,
        is_searched=True,
        is_compared=True,
        reverts="text",
        is_work=True,
        is_read=True,
        is_buffered=True,
        owner="agent",
        read_tool="read_from_workspace",
        write_tool="save_to_my_workspace",
    ),
    "handoff": ZoneSpec(
        folder=("handoff",),
        has_metadata=True,
        on_edit="conflict",
        is_delivered=True,
        keeps_mode=True,
        is_searched=True,
        is_compared=True,
        reverts="item",
        is_work=True,
        is_read=True,
        read_tool="read_handoff",
    ),
    "collab": ZoneSpec(
        folder=("collaborative", "current"),
        versions=("collaborative", ".versions"),
        has_history=True,
        on_edit="conflict",
        is_shared=True,
        keeps_mode=True,
        is_searched=True,
        is_compared=True,
        reverts="text",
        is_work=True,
        is_read=True,
        is_buffered=True,
        read_tool="collab_read",
        read_old_tool="collab_read_version",
        write_tool="collab_write",
        show_call=("collab_read", "filepath"),
    ),
    "board": ZoneSpec(
        folder=("whiteboards",),
        versions=("whiteboard-history",),
        max_version_files=10,
        on_edit="conflict",
        suffix=".md",
        root_path=GLOBAL_BOARD,
        is_shared=True,
        has_sections=True,
        is_searched=True,
        is_compared=True,
        reverts="text",
        is_work=True,
        is_read=True,
        is_buffered=True,
        read_tool="whiteboard_read",
        read_old_tool="whiteboard_read_version",
        write_tool="whiteboard_write",
        show_call=("whiteboard_read", "board"),
        part_separator=" > ",
    ),
    "lease": ZoneSpec(folder=("whiteboards", ".locks"), suffix=".lock"),
    "realtime": ZoneSpec(
        checkpoints=("realtime", ".crdt_state"),
        is_compared=True,
        reverts="item",
        is_work=True,
        is_read=True,
        show_call=("realtime_get_document_snapshot", "doc_id"),
        part_separator="/",
    ),
    # Paths are TASK/PATH. The files are in the task's own folder.
    "file": ZoneSpec(
        is_on_disk_first=True,
        keeps_mode=True,
        is_searched=True,
        is_compared=True,
        reverts="text",
        is_work=True,
        is_read=True,
        is_buffered=True,
        owner="task",
        read_tool="read_file",
        write_tool=WRITE_FILE,
    ),
    # Paths are TREE/PATH. The files are in a working tree of a git repository.
    "repo": ZoneSpec(
        is_shared=True,
        is_on_disk_first=True,
        keeps_mode=True,
        is_searched=True,
        is_compared=True,
        reverts="text",
        is_read=True,
        owner="tree",
        read_tool="read_tree_file",
        write_tool=WRITE_FILE,
    ),
    "config": ZoneSpec(folder=(".watchroom",), on_edit="version", is_searched=True, is_compared=True),
    "buffer": ZoneSpec(is_read=True),
    "request": ZoneSpec(reverts="item"),
    "command": ZoneSpec(reverts="item"),
    "agent": ZoneSpec(reverts="item"),
}
"""The record of each zone. A zone without files and without special rules has the default record."""
SHARED: Final[tuple[Zone, ...]] = tuple(zone for zone, spec in ZONES.items() if spec.is_shared)
"""Zones in which several agents write."""
DELIVERED: Final[tuple[Zone, ...]] = tuple(zone for zone, spec in ZONES.items() if spec.is_delivered)
"""Zones whose versions are delivered to a receiver."""
DOCUMENTS: Final[tuple[Zone, ...]] = tuple(zone for zone, spec in ZONES.items() if spec.checkpoints)
"""Zones whose versions are changes of documents."""
ON_DISK_FIRST: Final[tuple[Zone, ...]] = tuple(zone for zone, spec in ZONES.items() if spec.is_on_disk_first)
"""Zones whose files are written before their rows."""
SECTIONED: Final[tuple[Zone, ...]] = tuple(zone for zone, spec in ZONES.items() if spec.has_sections)
"""Zones whose versions can replace one section of a text."""


def strip_owner(zone: Zone, path: str) -> str:
    """Return ``path`` of ``zone`` without its owner, as its agent uses it."""
    return path.partition("/")[2] if ZONES[zone].owner else path
