"""What a tool call would write, by its arguments alone. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from watchroom.model import WRITE_FILE, Json, Zone
from watchroom.rules.handoffs import handoff_path

_FLUSH: Final = "_flush"
_LARGEST_VERSION: Final = 2**31 - 1
"""No tool takes a larger one, and a journal cannot be asked for it."""


class ProposedWrite(NamedTuple):
    """Where a call would put a text, and which: ``content`` (empty where it deletes), or the content of the
    ``restored`` version of the path. Of a flush, ``path`` is that of the buffer; of a task's file, the path
    in the task's folder as the call names it. ``expected`` is the version that the call starts from, None if
    it did not say."""

    zone: Zone
    path: str
    content: str = ""
    restored: int | None = None
    expected: int | None = None


class _Writer(NamedTuple):
    """Which arguments of a tool name the path, and whether there have to be a content and a version."""

    zone: Zone
    path: tuple[str, ...]
    has_content: bool = True
    version: str = ""


_WRITERS: Final[Mapping[str, _Writer]] = {
    "collab_write": _Writer("collab", ("filepath",)),
    "collab_rollback": _Writer("collab", ("filepath",), has_content=False, version="to_version"),
    "save_to_my_workspace": _Writer("private", ("filename",)),
    "delete_from_my_workspace": _Writer("private", ("filename",), has_content=False),
    "handoff_file": _Writer("handoff", ("to_agent", "filename")),
    "whiteboard_write": _Writer("board", ("board",)),
    "whiteboard_restore": _Writer("board", ("board",), has_content=False, version="version"),
    WRITE_FILE: _Writer("file", ("path",)),
}


def proposed_write(agent: str, tool: str, arguments: Mapping[str, Json]) -> ProposedWrite | None:
    """What a call of ``tool`` by ``agent`` would write, None where it writes nothing or its ``arguments`` are
    not understood."""
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
    elif writer.zone == "handoff":
        path = handoff_path(agent, *names)
    return ProposedWrite(
        writer.zone, path, content, restored, parse_version(arguments.get("expected_version"))
    )


def replace_content(tool: str, arguments: Mapping[str, Json], content: str) -> Mapping[str, Json] | None:
    """The arguments with which a call of ``tool`` with ``arguments`` writes ``content`` instead; None where
    they do not say what it writes: it deletes, brings back a version, or flushes a buffer."""
    writer = _WRITERS.get(tool)
    if writer is None or not writer.has_content:
        return None
    return {**arguments, "content": content}


def parse_version(given: Json) -> int | None:
    """``given`` as a tool takes it that wants a whole number: models write ``"2"`` and ``2.0``, too. None for
    what it refuses."""
    if isinstance(given, bool) or not isinstance(given, int | float | str):
        return None
    try:
        number = float(given)
    except (ValueError, OverflowError):
        return None
    return int(number) if number.is_integer() and abs(number) <= _LARGEST_VERSION else None
