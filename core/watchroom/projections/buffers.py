"""The buffers that agents have open, as the dashboard shows them (EDIT)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final, Literal, NamedTuple, TypeAlias

from watchroom.checkout.edits import EDIT_TOOL
from watchroom.errors import JournalDamaged
from watchroom.model import REVERT, Row, Zone
from watchroom.rules.buffers import ZONE, BufferRecord, agent_path, buffer_name, parse_record

BufferState: TypeAlias = Literal["synced", "unwritten", "behind", "apart"]
"""How a buffer stands to its source: as it is; with changes that are not written; the source has moved on;
both."""

_SOURCES: Final[frozenset[Zone]] = frozenset({"private", "collab", "board", "file"})


class BufferView(NamedTuple):
    """An open buffer. ``row`` is its newest version, ``newest`` the current version of its source, ``edit``
    the row of an edit made by hand that stands in its place, 0 if none does."""

    row: Row
    record: BufferRecord
    newest: int
    edit: int = 0

    @property
    def path(self) -> str:
        """AGENT/NAME."""
        return self.row.path

    @property
    def agent(self) -> str:
        return self.row.path.partition("/")[0]

    @property
    def name(self) -> str:
        return buffer_name(self.row)

    @property
    def source_path(self) -> str:
        """The path of its source as its agent knows it."""
        return agent_path(self.record.zone, self.record.path)

    @property
    def state(self) -> BufferState:
        if (self.newest, self.edit) != (self.record.base, self.record.edit or 0):
            return "apart" if self.record.is_changed else "behind"
        return "unwritten" if self.record.is_changed else "synced"

    @property
    def waits_for_choice(self) -> bool:
        """Whether a text was found in several places, and none is chosen yet."""
        return self.record.pending is not None


_Place: TypeAlias = tuple[Zone, str]


class BufferProjection:
    """Takes all rows in order; knows which buffers are open, and how they stand."""

    DERIVED: ClassVar[Mapping[str, object]] = {"_changed": True, "_current": ()}
    """What is made anew, and how it begins then (see `watchroom.projections.fold_state`)."""

    def __init__(self) -> None:
        self._open: dict[str, BufferView] = {}
        self._by_source: dict[_Place, set[str]] = {}
        self._current: tuple[BufferView, ...] = ()
        self._changed = False

    def apply(self, row: Row) -> None:
        """Take in ``row``, the next one."""
        if row.zone == ZONE:
            if row.version is not None:
                self._apply_to_buffer(row)
        elif row.zone in _SOURCES:
            if row.version is not None or row.tool == REVERT:
                self._apply_to_source(row, edit=0)
            elif row.tool == EDIT_TOOL and row.outcome == "conflict":
                self._apply_to_source(row, edit=row.seq)

    def current(self) -> tuple[BufferView, ...]:
        """The open buffers, by agent and name."""
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
        # Of the source it is known what the buffer knew, and what came since.
        newest = max(record.base, known.newest) if known is not None else record.base
        known_base = known and (known.record.base, known.record.edit)
        edit = known.edit if known and known_base == (record.base, record.edit) else record.edit or 0
        self._open[row.path] = BufferView(row, record, newest, edit)


def _readable(row: Row) -> BufferRecord | None:
    """What a version of a buffer says; None of one that closes it or is damaged, which `verify` names."""
    try:
        return parse_record(row)
    except JournalDamaged:
        return None
