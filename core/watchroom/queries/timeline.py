"""The rows beside a moment: the next one, and the next that a person may look for."""

from __future__ import annotations

from watchroom.journal import Journal
from watchroom.model import Row
from watchroom.projections.timeline import TimelineView, marker_kind

_CHUNK = 1000


def find_row(journal: Journal, seq: int, step: int) -> int | None:
    """The number of the row of ``journal`` after row ``seq``, or where ``step`` is negative of the one before
    it; None where there is none. Raises `JournalError`."""
    rows = journal.rows(seq, limit=1) if step > 0 else journal.rows_before(seq, limit=1)
    return rows[0].seq if rows else None


def find_marker(journal: Journal, timeline: TimelineView, seq: int, step: int) -> int | None:
    """The number of the next row of ``journal`` after row ``seq`` that is a marker (see
    `watchroom.projections.timeline.marker_kind`), or where ``step`` is negative of the last one before it;
    None where ``timeline`` knows of none. Only the columns in which there is one are read. Raises
    `JournalError`."""
    ends = [*(each.first for each in timeline.columns[1:]), timeline.last + 1]
    marked = [
        (each.first, end) for each, end in zip(timeline.columns, ends, strict=True) if any(each.markers)
    ]
    if step > 0:
        after = (_first_marker(journal, max(begin - 1, seq), end) for begin, end in marked if end - 1 > seq)
        return next((each for each in after if each is not None), None)
    before = (_last_marker(journal, begin, min(end, seq)) for begin, end in reversed(marked) if begin < seq)
    return next((each for each in before if each is not None), None)


def _first_marker(journal: Journal, after: int, end: int) -> int | None:
    """The first marker after row ``after`` and before row ``end``."""
    while rows := journal.rows(after, until=end - 1, limit=_CHUNK):
        for row in rows:
            if marker_kind(row) is not None:
                return row.seq
        after = rows[-1].seq
    return None


def _last_marker(journal: Journal, begin: int, before: int) -> int | None:
    """The last marker from row ``begin`` on and before row ``before``."""
    rows: list[Row] = journal.rows_before(before, limit=_CHUNK)
    while rows and rows[0].seq >= begin:
        for row in rows:
            if row.seq >= begin and marker_kind(row) is not None:
                return row.seq
        rows = journal.rows_before(rows[-1].seq, limit=_CHUNK)
    return None
