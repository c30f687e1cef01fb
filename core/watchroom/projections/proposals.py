"""What a tool call that waits for approval would change, as things stand: the text before and after."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from watchroom import validation
from watchroom.errors import InvalidName, JournalDamaged
from watchroom.journal import Journal
from watchroom.model import UNCHECKED, Json, Row, Zone
from watchroom.registry import Registry
from watchroom.rules.handoffs import handoff_path
from watchroom.sandbox.task_folder import normalize_task_path
from watchroom.zones.buffers.record import ZONE, record_of, text_of

_FLUSH: Final = "_flush"
_NUMBERS: Final = 2**31
"""All versions are less: no tool takes a larger one, and a journal cannot be asked for it."""


class Proposal(NamedTuple):
    """A text that a call would put at ``path``. ``head`` is the version that stands there, None if none
    does. ``before`` is empty where none does, ``after`` where the call deletes. ``expected`` is the version
    that the call starts from, None if it did not say."""

    zone: Zone
    path: str
    head: Row | None
    before: str
    after: str
    expected: int | None = None

    @property
    def text(self) -> bytes:
        """The text after the call, in UTF-8."""
        return self.after.encode("utf-8", "surrogatepass")

    @property
    def checksum(self) -> str:
        """The same for two calls only if they would put the same text in place of the same version."""
        head = self.head
        replaced = [head.version, head.sha256] if head else None
        facts = [self.zone, self.path, replaced, validation.sha256(self.text)]
        return validation.sha256(json.dumps(facts).encode())

    @property
    def is_stale(self) -> bool:
        """Whether the call would be refused: it starts from another version than the current one."""
        current = (self.head.version or 0) if self.head else 0
        return self.expected is not None and self.expected not in (UNCHECKED, current)


def proposal(journal: Journal, agent: str, tool: str, arguments: Mapping[str, Json]) -> Proposal | None:
    """What the call would write, None where it writes nothing or its arguments are not understood."""
    find = _WRITERS.get(tool)
    if find is None:
        return _flushed(journal, agent, tool.removesuffix(_FLUSH)) if tool.endswith(_FLUSH) else None
    return find(journal, agent, arguments)


def _shared(journal: Journal, agent: str, arguments: Mapping[str, Json]) -> Proposal | None:
    path, content = arguments.get("filepath"), arguments.get("content")
    if not isinstance(path, str) or not isinstance(content, str):
        return None
    return _against_head(journal, "collab", path, content, _number(arguments.get("expected_version")))


def _rolled_back(journal: Journal, agent: str, arguments: Mapping[str, Json]) -> Proposal | None:
    path, version = arguments.get("filepath"), _version(arguments.get("to_version"))
    if not isinstance(path, str) or version is None:
        return None
    wanted = journal.version("collab", path, version)
    return _against_head(journal, "collab", path, journal.content(wanted.seq) or "") if wanted else None


def _own(journal: Journal, agent: str, arguments: Mapping[str, Json]) -> Proposal | None:
    name, content = arguments.get("filename"), arguments.get("content", "")
    if not isinstance(name, str) or not isinstance(content, str):
        return None
    return _against_head(journal, "private", f"{agent}/{name}", content)


def _handed(journal: Journal, agent: str, arguments: Mapping[str, Json]) -> Proposal | None:
    name, content, receiver = (arguments.get(each) for each in ("filename", "content", "to_agent"))
    if not isinstance(name, str) or not isinstance(content, str) or not isinstance(receiver, str):
        return None
    return _against_head(journal, "handoff", handoff_path(agent, receiver, name), content)


def _flushed(journal: Journal, agent: str, buffer: str) -> Proposal | None:
    row = journal.head(ZONE, f"{agent}/{buffer}")
    try:
        record = record_of(row) if row else None
        if row is None or record is None:
            return None
        return _against_head(journal, record.zone, record.path, text_of(journal, row), record.base)
    except JournalDamaged:
        # The flush is refused, as every call that needs the buffer.
        return None


def _in_task(journal: Journal, agent: str, arguments: Mapping[str, Json]) -> Proposal | None:
    path, content = arguments.get("path"), arguments.get("content")
    known = Registry(journal).current().agents.get(agent)
    if not isinstance(path, str) or not isinstance(content, str) or known is None or not known.task:
        return None
    try:
        return _against_head(journal, "file", f"{known.task}/{normalize_task_path(path)}", content)
    except InvalidName:
        return None


def _number(given: Json) -> int | None:
    """``given`` as a tool takes it that wants a whole number: models write ``"2"`` and ``2.0``, too. None
    for what it refuses."""
    if isinstance(given, bool) or not isinstance(given, int | float | str):
        return None
    try:
        number = float(given)
    except (ValueError, OverflowError):
        return None
    return int(number) if number.is_integer() and abs(number) < _NUMBERS else None


def _version(given: Json) -> int | None:
    number = _number(given)
    return number if number is not None and number > 0 else None


def _against_head(
    journal: Journal, zone: Zone, path: str, content: str, expected: int | None = None
) -> Proposal:
    head = journal.head(zone, path)
    before = (journal.content(head.seq) or "") if head else ""
    return Proposal(zone, path, head, before, content, expected)


def _on_board(journal: Journal, agent: str, arguments: Mapping[str, Json]) -> Proposal | None:
    board, content = arguments.get("board"), arguments.get("content")
    if not isinstance(board, str) or not isinstance(content, str):
        return None
    return _against_head(journal, "board", board, content, _number(arguments.get("expected_version")))


def _restored(journal: Journal, agent: str, arguments: Mapping[str, Json]) -> Proposal | None:
    board, version = arguments.get("board"), _version(arguments.get("version"))
    if not isinstance(board, str) or version is None:
        return None
    wanted = journal.version("board", board, version)
    return _against_head(journal, "board", board, journal.content(wanted.seq) or "") if wanted else None


_WRITERS: Final[dict[str, Callable[[Journal, str, Mapping[str, Json]], Proposal | None]]] = {
    "collab_write": _shared,
    "collab_rollback": _rolled_back,
    "save_to_my_workspace": _own,
    "delete_from_my_workspace": _own,
    "handoff_file": _handed,
    "whiteboard_write": _on_board,
    "whiteboard_restore": _restored,
    "write_file": _in_task,
}
