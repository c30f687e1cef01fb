"""Derives the text that a call would write from its arguments, for calls that wait for approval. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from watchroom.features.boards.rows import BOARD_ARGUMENT, BOARD_ZONE
from watchroom.features.files.rows import SHARED_FILE_ZONE
from watchroom.features.handoffs.rows import HANDOFF_ZONE, handoff_path
from watchroom.model import WRITE_FILE, Json, Zone

_FLUSH: Final = "_flush"
_MAX_VERSION: Final = 2**31 - 1
"""The largest version that tools and journals accept."""


class ProposedWrite(NamedTuple):
    """The text that a call would write.

    - ``zone``, ``path``: the place of the write. For a flush, the path of the buffer. For a task's file, the
      path in the task's folder as given in the call.
    - ``content``: the text; empty if the call deletes, restores or flushes.
    - ``restored``: the version whose content is restored, None if the call restores nothing.
    - ``expected``: the version that the call expects, None if it gives none.
    """

    zone: Zone
    path: str
    content: str = ""
    restored: int | None = None
    expected: int | None = None


class _Writer(NamedTuple):
    """The arguments of a writing tool.

    - ``path``: the names of the arguments with the path.
    - ``has_content``: whether the argument ``content`` is the text.
    - ``version``: the name of the argument with the version to restore; empty if there is none.
    """

    zone: Zone
    path: tuple[str, ...]
    has_content: bool = True
    version: str = ""


_WRITERS: Final[Mapping[str, _Writer]] = {
    "collab_write": _Writer(SHARED_FILE_ZONE, ("filepath",)),
    "collab_rollback": _Writer(SHARED_FILE_ZONE, ("filepath",), has_content=False, version="to_version"),
    "save_to_my_workspace": _Writer("private", ("filename",)),
    "delete_from_my_workspace": _Writer("private", ("filename",), has_content=False),
    "handoff_file": _Writer(HANDOFF_ZONE, ("to_agent", "filename")),
    "whiteboard_write": _Writer(BOARD_ZONE, (BOARD_ARGUMENT,)),
    "whiteboard_restore": _Writer(BOARD_ZONE, (BOARD_ARGUMENT,), has_content=False, version="version"),
    WRITE_FILE: _Writer("file", ("path",)),
}


def proposed_write(agent: str, tool: str, arguments: Mapping[str, Json]) -> ProposedWrite | None:
    """Return the text that a call of ``tool`` by ``agent`` would write. None if it writes nothing or its
    ``arguments`` are invalid."""
    writer = _WRITERS.get(tool)
    if writer is None:
        flushed = f"{agent}/{tool.removesuffix(_FLUSH)}"
        return ProposedWrite("buffer", flushed) if tool.endswith(_FLUSH) else None
    names = [name for each in writer.path if isinstance(name := arguments.get(each), str)]
    content = arguments.get("content") if writer.has_content else ""
    restored = parse_version(arguments.get(writer.version)) if writer.version else None
    if len(names) < len(writer.path) or not isinstance(content, str):
        return None
    if writer.version and (restored is None or restored < 1):
        return None
    path = names[-1]
    if writer.zone == "private":
        path = f"{agent}/{path}"
    elif writer.zone == HANDOFF_ZONE:
        path = handoff_path(agent, *names)
    return ProposedWrite(
        writer.zone, path, content, restored, parse_version(arguments.get("expected_version"))
    )


def replace_content(tool: str, arguments: Mapping[str, Json], content: str) -> Mapping[str, Json] | None:
    """Return ``arguments`` with ``content`` as the text that ``tool`` writes. Return None if the tool takes
    no text: it deletes, restores a version or flushes a buffer."""
    writer = _WRITERS.get(tool)
    if writer is None or not writer.has_content:
        return None
    return {**arguments, "content": content}


def parse_version(given: Json) -> int | None:
    """Parse ``given`` as a whole number like the tools do, None if they would refuse it. Models also write
    ``"2"`` and ``2.0``."""
    if isinstance(given, bool) or not isinstance(given, int | float | str):
        return None
    try:
        number = float(given)
    except (ValueError, OverflowError):
        return None
    return int(number) if number.is_integer() and abs(number) <= _MAX_VERSION else None
