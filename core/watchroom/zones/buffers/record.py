"""What the rows of a buffer say, and the text that they make (spec 4). Pure but for the journal it reads.

Each version of a buffer's path is one operation that changed something: its text, a choice that is open, or
what it is based on. Most carry only what was put in, and say where; now and then one carries the whole.
"""

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
    """A version of a buffer, but for its text.

    ``zone`` and ``path`` are where its source has its rows, ``base`` the version of the source that it is
    based on, or ``edit`` the row of an edit made by hand that stood in its place; ``opened`` the version of
    the buffer that carries the text of the base, None where the source's own row does. ``edition`` counts the
    changes of the text. ``pending`` is the version that carries the text for which a choice is open.
    ``is_changed``: it holds something that its base does not. ``marks`` are those of
    `DataSourceBinding.markers`, None where they are those of the version before, followed through the change.
    ``at`` and ``removed`` say where the row's content was put, and in place of how many characters; None
    where it is the whole text, or where the text is as before (``is_whole`` tells which).
    """

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
        """ZONE:PATH, as its agent knows the path."""
        return f"{self.zone}:{known_path(self.zone, self.path)}"

    def detail(self) -> dict[str, Json]:
        """As a row has it."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in self._asdict().items()
            if value is not None
        }


_NEEDED: Final = frozenset(BufferRecord._fields) - frozenset(BufferRecord._field_defaults)


class BufferText(NamedTuple):
    """A buffer as it was: its text, that of its base, for what a choice was open, and marks of a merge."""

    text: str
    base: str
    sought: Sought | None
    marks: ConflictMarkers


class Sought(NamedTuple):
    """What was to be replaced, and by what."""

    old: str
    new: str


def record_of(row: Row) -> BufferRecord | None:
    """What a version says; None of a row that makes no version, or closes the buffer. Raises
    `JournalDamaged`."""
    if row.version is None or row.deleted:
        return None
    detail = row.detail
    known = {name: detail[name] for name in BufferRecord._fields if name in detail}
    if not _NEEDED.issubset(known):
        raise JournalDamaged
    marks = known.pop("marks", None)
    record = BufferRecord(**known)  # type: ignore[arg-type]
    return record._replace(marks=tuple(cast("list[int]", marks))) if isinstance(marks, list) else record


def known_path(zone: Zone, path: str) -> str:
    """The path by which its agent knows a source that has its rows at ``path``."""
    return path.partition("/")[2] if zone in ("private", "file") else path


def name_of(row: Row) -> str:
    """The name of the buffer that a row is about."""
    return row.path.rpartition("/")[2]


def read(journal: Journal, row: Row) -> BufferText:
    """The buffer as of one of its versions, which does not close it."""
    record = record_of(row)
    if record is None:
        raise ValueError(f"row {row.seq} is no version of an open buffer")
    text, marks = _text_and_marks(journal, row)
    return BufferText(text, base_of(journal, row, record), _sought(journal, row, record), marks)


def text_of(journal: Journal, row: Row) -> str:
    """The text that a version made. Raises `JournalDamaged`."""
    return _text_and_marks(journal, row)[0]


def _text_and_marks(journal: Journal, row: Row) -> tuple[str, ConflictMarkers]:
    later: list[tuple[BufferRecord, str]] = []
    last = row.version or 0
    while last > 0:
        first = max(0, last - WHOLE_EVERY)
        for each, content in reversed(journal.versions(ZONE, row.path, after=first, until=last)):
            record = record_of(each)
            if each.version != (row.version or 0) - len(later):
                # Without each of them the text would be another one.
                raise JournalDamaged
            if record is not None and record.is_whole:
                return _replayed(content or "", record.marks or (), reversed(later))
            if record is not None:
                later.append((record, content or ""))
        last = first
    raise JournalDamaged


def _replayed(
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


def has_held(journal: Journal, row: Row, text: str) -> bool:
    """Whether that was the buffer's text at a version, or one of the last before it."""
    last = row.version or 0
    for each, _ in reversed(journal.versions(ZONE, row.path, after=max(0, last - WHOLE_EVERY), until=last)):
        record = record_of(each)
        if record is None:
            return False
        if record.length == len(text) and text_of(journal, each) == text:
            return True
    return False


def since_whole(journal: Journal, row: Row) -> int:
    """How many versions lie after the newest one that carries the whole text."""
    version = row.version or 0
    count = 0
    while count < WHOLE_EVERY:
        found = journal.version(ZONE, row.path, version - count)
        record = record_of(found) if found else None
        if record is None or record.is_whole:
            break
        count += 1
    return count


def base_of(journal: Journal, row: Row, record: BufferRecord) -> str:
    if record.opened is not None:
        found = journal.version(ZONE, row.path, record.opened)
    elif record.edit is not None:
        return journal.content(record.edit) or ""
    else:
        found = journal.version(record.zone, record.path, record.base)
    return (journal.content(found.seq) if found else None) or ""


def _sought(journal: Journal, row: Row, record: BufferRecord) -> Sought | None:
    found = journal.version(ZONE, row.path, record.pending) if record.pending is not None else None
    content = journal.content(found.seq) if found else None
    if content is None:
        return None
    given = cast("dict[str, str]", json.loads(content))
    return Sought(given["old_text"], given["new_text"])
