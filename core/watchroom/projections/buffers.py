"""The buffers that agents have open, as the dashboard shows them (spec 4)."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, TypeAlias

from watchroom.model import Row, Zone
from watchroom.zones.buffers.record import ZONE, BufferRecord, name_of, record_of

BufferState: TypeAlias = Literal["synced", "unwritten", "behind", "apart"]
"""How a buffer stands to its source: as it is; with changes that are not written; the source has moved on;
both."""

_SOURCES: Final[frozenset[Zone]] = frozenset({"private", "collab", "board", "file"})


class BufferView(NamedTuple):
    """An open buffer. ``row`` is its newest version, ``newest`` the current version of its source."""

    row: Row
    record: BufferRecord
    newest: int

    @property
    def path(self) -> str:
        """AGENT/NAME."""
        return self.row.path

    @property
    def agent(self) -> str:
        return self.row.path.partition("/")[0]

    @property
    def name(self) -> str:
        return name_of(self.row)

    @property
    def state(self) -> BufferState:
        if self.newest != self.record.base:
            return "apart" if self.record.is_changed else "behind"
        return "unwritten" if self.record.is_changed else "synced"

    @property
    def waits_for_choice(self) -> bool:
        """Whether a text was found in several places, and none is chosen yet."""
        return self.record.pending is not None


_Place: TypeAlias = tuple[Zone, str]


class Buffers:
    """Takes all rows in order; knows which buffers are open, and how they stand."""

    def __init__(self) -> None:
        self._open: dict[str, BufferView] = {}
        self._by_source: dict[_Place, set[str]] = {}
        self._current: tuple[BufferView, ...] = ()
        self._changed = False

    def apply(self, row: Row) -> None:
        """Take in the next row."""
        if row.version is None:
            return
        if row.zone == ZONE:
            self._apply_to_buffer(row)
        elif row.zone in _SOURCES:
            for path in self._by_source.get((row.zone, row.path), ()):
                self._open[path] = self._open[path]._replace(newest=row.version)
                self._changed = True

    def current(self) -> tuple[BufferView, ...]:
        """The open buffers, by agent and name."""
        if self._changed:
            self._current = tuple(view for _, view in sorted(self._open.items()))
            self._changed = False
        return self._current

    def _apply_to_buffer(self, row: Row) -> None:
        self._changed = True
        record = record_of(row)
        known = self._open.get(row.path)
        place = (record.zone, record.path) if record else None
        if known is not None and place != (known.record.zone, known.record.path):
            self._by_source[known.record.zone, known.record.path].discard(row.path)
        if record is None or place is None:
            self._open.pop(row.path, None)
            return
        self._by_source.setdefault(place, set()).add(row.path)
        # Of the source it is known what the buffer knew, and what came since.
        newest = max(record.base, known.newest) if known is not None else record.base
        self._open[row.path] = BufferView(row, record, newest)
