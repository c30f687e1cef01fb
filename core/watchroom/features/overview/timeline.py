"""The activity of the workspace since its first row, and the times of notable events.

Time is measured as in a replay: long gaps between rows are shortened, so that nights take no space.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final, Literal, NamedTuple, TypeAlias, get_args

from watchroom.features.handoffs.rows import ACKNOWLEDGE_TOOL
from watchroom.features.sessions.rows import client_call
from watchroom.kernel.journal import Journal
from watchroom.kernel.zones import ZONES
from watchroom.model import (
    CONTROLS,
    HUMAN_PREFIX,
    SEEN,
    SETTLING_NOTES,
    WRITE_FILE,
    Row,
    outcome_of,
)

MarkerKind: TypeAlias = Literal["conflict", "failure", "request", "person", "revert", "task"]
MARKER_KINDS: Final[tuple[MarkerKind, ...]] = get_args(MarkerKind)
_CHUNK = 1000
MAX_COLUMNS: Final = 400
"""Maximum number of columns. When there are more, the width of each column is doubled."""
GAP_SECONDS: Final = 2.0
"""Maximum gap between two rows, in seconds. Longer gaps are shortened to this."""
_FIRST_WIDTH: Final = 1_000_000
_GAP: Final = int(GAP_SECONDS * 1e9)
_NONE: Final = (0,) * len(MARKER_KINDS)
_READ_ZONES: Final = frozenset(zone for zone, spec in ZONES.items() if spec.is_read)
_ACTS: Final = frozenset({ACKNOWLEDGE_TOOL, SEEN, WRITE_FILE, *SETTLING_NOTES, *CONTROLS})


class TimelineColumn(NamedTuple):
    """An interval of time.

    - ``first``: the number of its first row. If it has no rows, the number of the next row.
    - ``rows``: the number of its rows.
    - ``markers``: the number of markers of each of `MARKER_KINDS`, in their order.
    """

    first: int
    rows: int = 0
    markers: tuple[int, ...] = _NONE


class TimelineView(NamedTuple):
    """The time up to row ``last``, in columns of equal width, oldest first."""

    columns: tuple[TimelineColumn, ...] = ()
    last: int = 0

    def position_of(self, seq: int) -> float:
        """Return the position of row ``seq``, 0 to 1."""
        low, high = 0, len(self.columns)
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if self.columns[middle].first <= seq else (low, middle)
        index = max(0, low - 1)
        begin, end = self._span_of(index)
        return min(1.0, (index + (seq - begin) / max(1, end - begin)) / max(1, len(self.columns)))

    def row_at(self, position: float) -> int:
        """Return the number of the row at ``position``, 0 to 1. A row with this number may not exist."""
        if position >= 1 or not self.columns:
            return self.last
        index = int(max(0.0, position) * len(self.columns))
        begin, end = self._span_of(index)
        share = max(0.0, position) * len(self.columns) - index
        return min(self.last, begin + int(share * (end - begin)))

    def _span_of(self, index: int) -> tuple[int, int]:
        """Return the number of the first row of column ``index``, and of the first row of the next column."""
        following = self.columns[index + 1 : index + 2]
        begin = self.columns[index].first if self.columns else 0
        return begin, following[0].first if following else self.last + 1


class TimelineProjection:
    """The timeline. Takes all rows in order, including steps of sessions."""

    DERIVED: ClassVar[Mapping[str, object]] = {}
    """Attributes that a snapshot leaves out (see `watchroom.features.overview.fold_state`)."""

    def __init__(self) -> None:
        self._done: list[TimelineColumn] = []
        self._width = _FIRST_WIDTH
        self._time = 0
        self._played = 0
        self._end = _FIRST_WIDTH
        """The replay time at which the current column ends."""
        self._first = self._last = self._rows = 0
        self._markers = [0] * len(MARKER_KINDS)

    def apply(self, row: Row) -> None:
        """Apply ``row``."""
        if self._time:
            self._played += min(_GAP, max(0, row.time - self._time))
        self._time = row.time
        if self._played >= self._end:
            self._go_on(row.seq)
        if not self._rows:
            self._first = row.seq
        self._rows += 1
        self._last = row.seq
        kind = marker_kind(row)
        if kind is not None:
            self._markers[MARKER_KINDS.index(kind)] += 1

    def current(self) -> TimelineView:
        """Return the timeline so far."""
        return TimelineView((*self._done, self._open()) if self._rows else (), self._last)

    def _open(self) -> TimelineColumn:
        return TimelineColumn(self._first, self._rows, tuple(self._markers))

    def _go_on(self, seq: int) -> None:
        """Begin the column of row ``seq``, according to the replay time."""
        self._done.append(self._open())
        while self._played >= self._width * MAX_COLUMNS:
            self._width *= 2
            self._done = [_merge(self._done[n : n + 2]) for n in range(0, len(self._done), 2)]
        index = self._played // self._width
        missing = index - len(self._done)
        if missing < 0:
            # The column of this row exists: continue it.
            begun = self._done.pop()
            self._first, self._rows, self._markers = begun.first, begun.rows, [*begun.markers]
        else:
            self._done += [TimelineColumn(seq)] * missing
            self._first, self._rows, self._markers = seq, 0, [0] * len(MARKER_KINDS)
        self._end = (index + 1) * self._width


def _merge(columns: Sequence[TimelineColumn]) -> TimelineColumn:
    markers = tuple(map(sum, zip(*(each.markers for each in columns), strict=True)))
    return TimelineColumn(columns[0].first, sum(each.rows for each in columns), markers)


def marker_kind(row: Row) -> MarkerKind | None:
    """Return the kind of the notable event in ``row``, None for a normal row."""
    outcome = outcome_of(row)
    if outcome != "ok":
        return "conflict" if outcome == "conflict" else "failure"
    zone = row.zone
    if zone == "session":
        # Parsing the detail of each step would be slow.
        is_error = '"error"' in row.detail_json and row.detail.get("status") == "error"
        return "failure" if is_error and row.version is not None else None
    if zone == "request" and row.version == 1:
        return "request"
    if zone == "revert":
        return "revert" if row.version == 1 else None
    if zone == "task":
        return "task" if row.version is not None else None
    return "person" if row.actor.startswith(HUMAN_PREFIX) and not is_reading(row) else None


def is_reading(row: Row) -> bool:
    """Return whether ``row`` is a read: it changed nothing, answered nothing and was not refused."""
    call = client_call(row)
    if call is not None:
        return call.kind == "read" and call.outcome == "ok"
    is_note = row.version is None and row.outcome == "ok"
    return is_note and row.zone in _READ_ZONES and row.tool not in _ACTS


def find_neighbour(journal: Journal, seq: int, step: int) -> int | None:
    """Return the number of the row after row ``seq``, or of the row before it if ``step`` is negative. None
    if there is no such row. Raise `JournalError`."""
    rows = journal.rows(seq, limit=1) if step > 0 else journal.rows_before(seq, limit=1)
    return rows[0].seq if rows else None


def find_marker(journal: Journal, timeline: TimelineView, seq: int, step: int) -> int | None:
    """Return the number of the next marker after row ``seq``, or of the last marker before it if ``step`` is
    negative. None if ``timeline`` has no such marker.

    A marker is a row with a `marker_kind`. Only columns with markers are read. Raise `JournalError`.
    """
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
    """Return the number of the first row with a `marker_kind` after row ``after`` and before row ``end``."""
    while rows := journal.rows(after, until=end - 1, limit=_CHUNK):
        for row in rows:
            if marker_kind(row) is not None:
                return row.seq
        after = rows[-1].seq
    return None


def _last_marker(journal: Journal, begin: int, before: int) -> int | None:
    """Return the number of the last row with a `marker_kind`, from row ``begin`` on and before row
    ``before``."""
    rows: list[Row] = journal.rows_before(before, limit=_CHUNK)
    while rows and rows[0].seq >= begin:
        for row in rows:
            if row.seq >= begin and marker_kind(row) is not None:
                return row.seq
        rows = journal.rows_before(rows[-1].seq, limit=_CHUNK)
    return None
