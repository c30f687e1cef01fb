"""The open buffers of agents, as the dashboard shows them (EDIT)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final, Literal, NamedTuple, TypeAlias

from watchroom.errors import JournalDamaged
from watchroom.features.buffers.rows import ZONE, BufferRecord, buffer_name, parse_record
from watchroom.kernel.checkout.edits import EDIT_TOOL
from watchroom.kernel.zones import ZONES, strip_owner
from watchroom.model import REVERT, Row, Zone

BufferState: TypeAlias = Literal["synced", "unwritten", "behind", "apart"]
"""The difference between a buffer and its source.

- ``synced``: they are equal.
- ``unwritten``: the buffer has changes.
- ``behind``: the source has changed.
- ``apart``: both have changed.
"""

_SOURCES: Final = frozenset(zone for zone, spec in ZONES.items() if spec.is_buffered)


class BufferView(NamedTuple):
    """An open buffer.

    - ``row``: its newest version.
    - ``newest``: the current version of its source.
    - ``edit``: the row of an external edit that replaces that version, 0 if there is none.
    """

    row: Row
    record: BufferRecord
    newest: int
    edit: int = 0

    @property
    def path(self) -> str:
        """The path of the buffer, ``AGENT/NAME``."""
        return self.row.path

    @property
    def agent(self) -> str:
        return self.row.path.partition("/")[0]

    @property
    def name(self) -> str:
        return buffer_name(self.row)

    @property
    def source_path(self) -> str:
        """The path of the source in the form that the agent uses."""
        return strip_owner(self.record.zone, self.record.path)

    @property
    def state(self) -> BufferState:
        if (self.newest, self.edit) != (self.record.base, self.record.edit or 0):
            return "apart" if self.record.is_changed else "behind"
        return "unwritten" if self.record.is_changed else "synced"

    @property
    def waits_for_choice(self) -> bool:
        """Whether a text was found in several places, and the agent has not chosen a place."""
        return self.record.pending is not None


_Place: TypeAlias = tuple[Zone, str]


class BufferProjection:
    """The open buffers, and the difference of each from its source. Takes all rows in order."""

    DERIVED: ClassVar[Mapping[str, object]] = {"_changed": True, "_current": ()}
    """Attributes that a snapshot leaves out (see `watchroom.features.overview.fold_state`)."""

    def __init__(self) -> None:
        self._open: dict[str, BufferView] = {}
        self._by_source: dict[_Place, set[str]] = {}
        self._current: tuple[BufferView, ...] = ()
        self._changed = False

    def apply(self, row: Row) -> None:
        """Apply ``row``."""
        if row.zone == ZONE:
            if row.version is not None:
                self._apply_to_buffer(row)
        elif row.zone in _SOURCES:
            if row.version is not None or row.tool == REVERT:
                self._apply_to_source(row, edit=0)
            elif row.tool == EDIT_TOOL and row.outcome == "conflict":
                self._apply_to_source(row, edit=row.seq)

    def current(self) -> tuple[BufferView, ...]:
        """Return the open buffers by agent and name, the same object if none changed."""
        if self._changed:
            self._current = tuple(view for _, view in sorted(self._open.items()))
            self._changed = False
        return self._current

    def _apply_to_source(self, row: Row, *, edit: int) -> None:
        for path in self._by_source.get((row.zone, row.path), ()):
            view = self._open[path]
            newest = view.newest if row.version is None else row.version
            self._open[path] = view._replace(newest=newest, edit=edit)
            self._changed = True

    def _apply_to_buffer(self, row: Row) -> None:
        self._changed = True
        record = _readable(row)
        known = self._open.get(row.path)
        place = (record.zone, record.path) if record else None
        if known is not None and place != (known.record.zone, known.record.path):
            self._by_source[known.record.zone, known.record.path].discard(row.path)
        if record is None or place is None:
            self._open.pop(row.path, None)
            return
        self._by_source.setdefault(place, set()).add(row.path)
        # The source's version is the version that the buffer knew, or a later one.
        newest = max(record.base, known.newest) if known is not None else record.base
        known_base = known and (known.record.base, known.record.edit)
        edit = known.edit if known and known_base == (record.base, record.edit) else record.edit or 0
        self._open[row.path] = BufferView(row, record, newest, edit)


def _readable(row: Row) -> BufferRecord | None:
    """Return the record of a version, None if it closes the buffer or is damaged. `verify` reports damaged
    versions."""
    try:
        return parse_record(row)
    except JournalDamaged:
        return None
