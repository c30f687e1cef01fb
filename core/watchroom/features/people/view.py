"""The enrolled people, and the flaws of rows, as a projection."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

from watchroom.features.people.decisions import apply_person_row, find_flaw, read_id, statement_id
from watchroom.features.people.rows import ZONE, People
from watchroom.features.people.rules import effect_of
from watchroom.model import PEOPLE_FORGOTTEN, PEOPLE_LOST, SYSTEM, Row

_Content = Callable[[int], str | None]
_Lookup = Callable[[int], Row | None]


class DecisionProjection:
    """Keeps the enrolled people, and decides for each row whether it can change protected state."""

    DERIVED: ClassVar[Mapping[str, object]] = {}
    """No attribute is derived."""

    def __init__(self) -> None:
        self._people = People()
        self._statements: dict[str, int] = {}
        """The first row of each statement, by `statement_id`."""

    @property
    def people(self) -> People:
        """The currently enrolled people."""
        return self._people

    def apply(self, row: Row, content: _Content, lookup: _Lookup) -> str:
        """Apply ``row``. Return the rule that prevents it from changing protected state; empty if it can, or
        if it has no such effect.

        - ``content``: returns the content of a row, by its number.
        - ``lookup``: returns a row, by its number.
        """
        effect = effect_of(row)
        evidence = _FoldEvidence(content, lookup, self._statements)
        if effect == "identify" and not self._people.workspace:
            self._people = self._people._replace(workspace=read_id(row, evidence))
        if row.actor == SYSTEM and row.tool in (PEOPLE_LOST, PEOPLE_FORGOTTEN) and row.version is None:
            self._people = self._people._replace(is_lost=row.tool == PEOPLE_LOST)
        statement = statement_id(row)
        if statement:
            self._statements.setdefault(statement, row.seq)
        if effect is None:
            return ""
        flaw = find_flaw(row, self._people, evidence)
        if row.zone == ZONE:
            self._people = apply_person_row(self._people, row, evidence)
        return flaw


class _FoldEvidence:
    """The rows of a journal, and the statements that the projection has seen."""

    def __init__(self, content: _Content, lookup: _Lookup, statements: Mapping[str, int]) -> None:
        self.content = content
        self.row = lookup
        self._statements = statements

    def is_repeated(self, row: Row) -> bool:
        return self._statements.get(statement_id(row), row.seq) < row.seq
