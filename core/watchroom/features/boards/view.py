"""The whiteboards and their locks, as the dashboard shows them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar, NamedTuple

from watchroom.kernel.rules.activity import put_first
from watchroom.model import Row


class BoardView(NamedTuple):
    """A whiteboard with at least one version: its current version, and its writers, most recent first."""

    name: str
    head: Row
    writers: tuple[str, ...] = ()


class BoardProjection:
    """The whiteboards, and the newest lock of each. Takes the rows of boards and locks in order."""

    DERIVED: ClassVar[Mapping[str, object]] = {"_changed": True, "_current": ()}
    """Attributes that a snapshot leaves out, each with its value after loading."""

    def __init__(self) -> None:
        self._boards: dict[str, BoardView] = {}
        self._leases: Mapping[str, Row] = MappingProxyType({})
        self._current: tuple[BoardView, ...] = ()
        self._changed = False

    def apply(self, row: Row) -> None:
        """Apply ``row`` of a board. Only new versions matter."""
        if row.version is not None:
            known = self._boards.get(row.path)
            writers = put_first(row.actor, known.writers if known else ())
            self._boards[row.path] = BoardView(row.path, row, writers)
            self._changed = True

    def apply_lease(self, row: Row) -> None:
        """Apply ``row`` of a board lock."""
        if row.version is not None:
            leases = {board: held for board, held in self._leases.items() if board != row.path}
            self._leases = leases if row.deleted else {**leases, row.path: row}

    def current(self) -> tuple[BoardView, ...]:
        """Return the boards by name, the same object if none changed."""
        if self._changed:
            self._changed = False
            self._current = tuple(board for _, board in sorted(self._boards.items()))
        return self._current

    def leases(self) -> Mapping[str, Row]:
        """Return the newest lock of each board that was not released, by the board's name."""
        return self._leases
