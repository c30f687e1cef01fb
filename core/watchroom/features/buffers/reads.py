"""Rebuilds the text of a buffer from its rows (EDIT).

Most rows contain only the inserted text and its position; some contain the whole text.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final, NamedTuple, cast

from watchroom.algorithms.editing import TextChange
from watchroom.algorithms.editing.conflict_markers import ConflictMarkers, move_markers
from watchroom.errors import JournalDamaged
from watchroom.features.buffers.rows import ZONE, BufferRecord, parse_record
from watchroom.kernel.journal import Journal
from watchroom.model import Row

WHOLE_EVERY: Final = 64
"""Maximum distance in versions between two versions with the whole text."""


class BufferText(NamedTuple):
    """A buffer at a version.

    - ``text``: its text.
    - ``base``: the text of its base.
    - ``pending``: the replacement that waits for a choice of the place.
    - ``marks``: the conflict markers.
    """

    text: str
    base: str
    pending: PendingReplacement | None
    marks: ConflictMarkers


class PendingReplacement(NamedTuple):
    """A replacement of the text ``old`` by ``new``."""

    old: str
    new: str


def read_buffer(journal: Journal, row: Row) -> BufferText:
    """Return the buffer as of ``row``, a version in ``journal`` that does not close it.

    The time grows with the length of the text. Raise ValueError for any other row, and `JournalDamaged`.
    """
    record = parse_record(row)
    if record is None:
        raise ValueError(f"row {row.seq} is no version of an open buffer")
    text, marks = _rebuild_text(journal, row)
    return BufferText(text, read_base(journal, row, record), _read_pending(journal, row, record), marks)


def read_text(journal: Journal, row: Row) -> str:
    """Return the text of the version ``row`` in ``journal``. Raise `JournalDamaged`."""
    return _rebuild_text(journal, row)[0]


def _rebuild_text(journal: Journal, row: Row) -> tuple[str, ConflictMarkers]:
    later: list[tuple[BufferRecord, str]] = []
    last = row.version or 0
    while last > 0:
        first = max(0, last - WHOLE_EVERY)
        found = journal.versions(ZONE, row.path, after=first, until=last)
        if not found:
            # A row that was not written by the tools can have any version number.
            raise JournalDamaged
        for each, content in reversed(found):
            record = parse_record(each)
            if each.version != (row.version or 0) - len(later):
                # If one of them is missing, the text would be wrong.
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
    """Return whether ``text`` was the buffer's text at the version ``row`` in ``journal``, or at one of the
    last few versions before it."""
    last = row.version or 0
    for each, _ in reversed(journal.versions(ZONE, row.path, after=max(0, last - WHOLE_EVERY), until=last)):
        record = parse_record(each)
        if record is None:
            return False
        if record.length == len(text) and read_text(journal, each) == text:
            return True
    return False


def count_since_whole(journal: Journal, row: Row) -> int:
    """Return the number of versions in ``journal`` after the newest version with the whole text, up to
    ``row``."""
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
    """Return the text of the base of ``record``, the record of the version ``row`` in ``journal``."""
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
