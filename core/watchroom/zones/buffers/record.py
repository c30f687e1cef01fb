"""The rows of a buffer, and the text that they make (EDIT). Pure except for the journal it reads.

Each version of a buffer's path is one operation that changed something: its text, an open choice, or its
base. Most contain only what was inserted, and say where; now and then one contains the whole text."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final, NamedTuple, cast

from watchroom.editing import TextChange
from watchroom.editing.conflict_markers import ConflictMarkers, move_markers
from watchroom.errors import JournalDamaged
from watchroom.journal import Journal
from watchroom.model import Json, Row, Zone

ZONE: Final = "buffer"
OPEN: Final = "open_buffer"
CLOSE: Final = "close_buffer"
RESPONSE: Final = "response"
"""In a row's detail: what the agent was answered."""
WHOLE_EVERY: Final = 64
"""Of so many versions at least one carries the whole text."""


class BufferRecord(NamedTuple):
    """A version of a buffer without its text.

    ``zone`` and ``path`` are where its source has its rows, ``base`` the version of the source that it is
    based on, or ``edit`` the row of an edit made by hand that replaced it; ``opened`` the version of the
    buffer that contains the text of the base, None where the source's own row does. ``edition`` counts the
    changes of the text. ``pending`` is the version with the replacement for which a choice is open.
    ``is_changed``: it differs from its base. ``marks`` are `DataSourceBinding.markers`, None where they are
    those of the version before, moved by the change. ``at`` and ``removed`` say where the row's content was
    inserted, and in place of how many characters; None where the content is the whole text (``is_whole``), or
    the text did not change."""

    zone: Zone
    path: str
    base: int
    length: int
    edition: int
    is_changed: bool
    is_whole: bool
    edit: int | None = None
    opened: int | None = None
    pending: int | None = None
    marks: ConflictMarkers | None = None
    at: int | None = None
    removed: int | None = None

    @property
    def source(self) -> str:
        """``ZONE:PATH`` with the path as its agent knows it."""
        return f"{self.zone}:{agent_path(self.zone, self.path)}"

    def detail(self) -> dict[str, Json]:
        """The detail of its row."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in self._asdict().items()
            if value is not None
        }


_NEEDED: Final = frozenset(BufferRecord._fields) - frozenset(BufferRecord._field_defaults)


class BufferText(NamedTuple):
    """A buffer at a version: its ``text``, that of its ``base``, the replacement that is ``pending`` while a
    choice is open, and the conflict markers (``marks``)."""

    text: str
    base: str
    pending: PendingReplacement | None
    marks: ConflictMarkers


class PendingReplacement(NamedTuple):
    """What is to be replaced (``old``), and by what (``new``)."""

    old: str
    new: str


def parse_record(row: Row) -> BufferRecord | None:
    """The record in ``row``; None if the row is no version, or closes the buffer. Raises `JournalDamaged`."""
    if row.version is None or row.deleted:
        return None
    detail = row.detail
    known = {name: detail[name] for name in BufferRecord._fields if name in detail}
    if not _NEEDED.issubset(known):
        raise JournalDamaged
    marks = known.pop("marks", None)
    record = BufferRecord(**known)  # type: ignore[arg-type]
    return record._replace(marks=tuple(cast("list[int]", marks))) if isinstance(marks, list) else record


def agent_path(zone: Zone, path: str) -> str:
    """The path by which its agent knows a source that has its rows at ``path`` of ``zone``."""
    return path.partition("/")[2] if zone in ("private", "file") else path


def buffer_name(row: Row) -> str:
    """The name of the buffer that ``row`` is about."""
    return row.path.rpartition("/")[2]


def read_buffer_text(journal: Journal, row: Row) -> BufferText:
    """The buffer as of ``row``, one of its versions in ``journal`` that does not close it. Raises ValueError
    for another row, `JournalDamaged`."""
    record = parse_record(row)
    if record is None:
        raise ValueError(f"row {row.seq} is no version of an open buffer")
    text, marks = _rebuild_text(journal, row)
    return BufferText(text, read_base(journal, row, record), _read_pending(journal, row, record), marks)


def read_text(journal: Journal, row: Row) -> str:
    """The text of the version ``row`` in ``journal``. Raises `JournalDamaged`."""
    return _rebuild_text(journal, row)[0]


def _rebuild_text(journal: Journal, row: Row) -> tuple[str, ConflictMarkers]:
    later: list[tuple[BufferRecord, str]] = []
    last = row.version or 0
    while last > 0:
        first = max(0, last - WHOLE_EVERY)
        for each, content in reversed(journal.versions(ZONE, row.path, after=first, until=last)):
            record = parse_record(each)
            if each.version != (row.version or 0) - len(later):
                # Without each of them the text would be another one.
                raise JournalDamaged
            if record is not None and record.is_whole:
                return _apply_changes(content or "", record.marks or (), reversed(later))
            if record is not None:
                later.append((record, content or ""))
        last = first
    raise JournalDamaged


def _apply_changes(
    text: str, marks: ConflictMarkers, later: Iterable[tuple[BufferRecord, str]]
) -> tuple[str, ConflictMarkers]:
    for record, content in later:
        if record.at is not None:
            change = TextChange(record.at, record.removed or 0, content)
            marks = move_markers(marks, text, change)
            text = change.apply(text)
        if record.marks is not None:
            marks = record.marks
    return text, marks


def had_text(journal: Journal, row: Row, text: str) -> bool:
    """Whether ``text`` was the buffer's text at the version ``row`` in ``journal``, or at one of the last
    before it."""
    last = row.version or 0
    for each, _ in reversed(journal.versions(ZONE, row.path, after=max(0, last - WHOLE_EVERY), until=last)):
        record = parse_record(each)
        if record is None:
            return False
        if record.length == len(text) and read_text(journal, each) == text:
            return True
    return False


def count_since_whole(journal: Journal, row: Row) -> int:
    """How many versions in ``journal`` up to ``row`` come after the newest one with the whole text."""
    version = row.version or 0
    count = 0
    while count < WHOLE_EVERY:
        found = journal.version(ZONE, row.path, version - count)
        record = parse_record(found) if found else None
        if record is None or record.is_whole:
            break
        count += 1
    return count


def read_base(journal: Journal, row: Row, record: BufferRecord) -> str:
    """The text of the base of ``record``, the version ``row`` in ``journal``."""
    if record.opened is not None:
        found = journal.version(ZONE, row.path, record.opened)
    elif record.edit is not None:
        return journal.content(record.edit) or ""
    else:
        found = journal.version(record.zone, record.path, record.base)
    return (journal.content(found.seq) if found else None) or ""


def _read_pending(journal: Journal, row: Row, record: BufferRecord) -> PendingReplacement | None:
    found = journal.version(ZONE, row.path, record.pending) if record.pending is not None else None
    content = journal.content(found.seq) if found else None
    if content is None:
        return None
    given = cast("dict[str, str]", json.loads(content))
    return PendingReplacement(given["old_text"], given["new_text"])
