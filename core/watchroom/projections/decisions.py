"""Who is enrolled, and which rows may not change protected state, as far as a fold has taken in rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

from watchroom.model import PEOPLE_FORGOTTEN, PEOPLE_LOST, SYSTEM, Row
from watchroom.rules.decisions import apply_person_row, find_flaw, read_id, statement_id
from watchroom.rules.effects import effect_of
from watchroom.rules.people import ZONE, People

_Content = Callable[[int], str | None]
_Lookup = Callable[[int], Row | None]


class DecisionProjection:
    """The people of the workspace, and whether rows count that would change protected state."""

    DERIVED: ClassVar[Mapping[str, object]] = {}
    """Nothing is made anew."""

    def __init__(self) -> None:
        self._people = People()
        self._statements: dict[str, int] = {}
        """The row that carried each statement first, by what `statement_id` makes of it."""

    @property
    def people(self) -> People:
        """Who is enrolled now."""
        return self._people

    def apply(self, row: Row, content: _Content, lookup: _Lookup) -> str:
        """Take in ``row``. Return the rule because of which it may not change protected state, empty where it
        may or would not. ``content`` and ``lookup`` give the content and the row of a number."""
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
    """The rows of a journal, and the statements that a fold has met."""

    def __init__(self, content: _Content, lookup: _Lookup, statements: Mapping[str, int]) -> None:
        self.content = content
        self.row = lookup
        self._statements = statements

    def is_repeated(self, row: Row) -> bool:
        return self._statements.get(statement_id(row), row.seq) < row.seq
