"""How busy the workspace was, and where something happened that a person looks for: for a line of all time.

Time is measured as it is played: longer gaps between rows count as short ones, so that nights take no space.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final, Literal, NamedTuple, TypeAlias, get_args

from watchroom.model import HUMAN_PREFIX, Row, outcome_of
from watchroom.rules.readings import is_reading

MarkerKind: TypeAlias = Literal["conflict", "failure", "request", "person", "revert", "task"]
MARKER_KINDS: Final[tuple[MarkerKind, ...]] = get_args(MarkerKind)
MOST_COLUMNS: Final = 400
"""So many columns there are at most: when there are more, each becomes twice as wide."""
GAP_SECONDS: Final = 2.0
"""A longer gap between two rows counts as one of so many seconds."""
_FIRST_WIDTH: Final = 1_000_000
_GAP: Final = int(GAP_SECONDS * 1e9)
_NONE: Final = (0,) * len(MARKER_KINDS)


class TimelineColumn(NamedTuple):
    """A piece of time: the number of its first ``rows``, or of the next one where it has none, and how many
    of them are ``markers`` of each of `MARKER_KINDS`, in their order."""

    first: int
    rows: int = 0
    markers: tuple[int, ...] = _NONE


class TimelineView(NamedTuple):
    """All time up to row ``last`` in columns of equal width, oldest first."""

    columns: tuple[TimelineColumn, ...] = ()
    last: int = 0

    def position_of(self, seq: int) -> float:
        """Where row ``seq`` lies, 0 to 1."""
        low, high = 0, len(self.columns)
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if self.columns[middle].first <= seq else (low, middle)
        index = max(0, low - 1)
        begin, end = self._span_of(index)
        return min(1.0, (index + (seq - begin) / max(1, end - begin)) / max(1, len(self.columns)))

    def row_at(self, position: float) -> int:
        """The number of the row at ``position``, 0 to 1; there may be none of just this number."""
        if position >= 1 or not self.columns:
            return self.last
        index = int(max(0.0, position) * len(self.columns))
        begin, end = self._span_of(index)
        share = max(0.0, position) * len(self.columns) - index
        return min(self.last, begin + int(share * (end - begin)))

    def _span_of(self, index: int) -> tuple[int, int]:
        """The number of the first row of a column, and that of the next one."""
        following = self.columns[index + 1 : index + 2]
        begin = self.columns[index].first if self.columns else 0
        return begin, following[0].first if following else self.last + 1


class TimelineProjection:
    """Takes all rows in order, those of sessions' steps too; gives the columns so far."""

    DERIVED: ClassVar[Mapping[str, object]] = {}
    """What is made anew (see `watchroom.projections.fold_state`)."""

    def __init__(self) -> None:
        self._done: list[TimelineColumn] = []
        self._width = _FIRST_WIDTH
        self._time = 0
        self._played = 0
        self._end = _FIRST_WIDTH
        """Until when, as it is played, rows belong to the column that is not done yet."""
        self._first = self._last = self._rows = 0
        self._markers = [0] * len(MARKER_KINDS)

    def apply(self, row: Row) -> None:
        """Take in ``row``."""
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
        """The columns so far."""
        return TimelineView((*self._done, self._open()) if self._rows else (), self._last)

    def _open(self) -> TimelineColumn:
        return TimelineColumn(self._first, self._rows, tuple(self._markers))

    def _go_on(self, seq: int) -> None:
        """Begin the column in which row ``seq`` lies, as what was played says."""
        self._done.append(self._open())
        while self._played >= self._width * MOST_COLUMNS:
            self._width *= 2
            self._done = [_merge(self._done[n : n + 2]) for n in range(0, len(self._done), 2)]
        index = self._played // self._width
        missing = index - len(self._done)
        if missing < 0:
            # The column in which it lies had begun: it goes on.
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
    """What a person may look for in ``row``; None where it goes on as usual."""
    outcome = outcome_of(row)
    if outcome != "ok":
        return "conflict" if outcome == "conflict" else "failure"
    zone = row.zone
    if zone == "session":
        # Most steps need not be parsed for it.
        is_error = '"error"' in row.detail_json and row.detail.get("status") == "error"
        return "failure" if is_error and row.version is not None else None
    if zone == "request" and row.version == 1:
        return "request"
    if zone == "revert":
        return "revert" if row.version == 1 else None
    if zone == "task":
        return "task" if row.version is not None else None
    return "person" if row.actor.startswith(HUMAN_PREFIX) and not is_reading(row) else None
