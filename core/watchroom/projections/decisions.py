"""Who is enrolled, and which decisions do not count, as far as the rows tell that a fold has taken in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

from watchroom.model import ANSWER, IDENTIFY, Row
from watchroom.rules.decisions import apply_person_row, find_flaw, is_decision
from watchroom.rules.people import ZONE, People
from watchroom.rules.settings import ZONE as SETTINGS


class DecisionProjection:
    """The people of the workspace, and whether their decisions count."""

    DERIVED: ClassVar[Mapping[str, object]] = {}
    """Nothing is made anew."""

    def __init__(self) -> None:
        self._people = People()

    @property
    def people(self) -> People:
        """Who is enrolled now."""
        return self._people

    def apply(
        self, row: Row, content: Callable[[int], str | None], asked: Callable[[str], Row | None]
    ) -> str:
        """Take in ``row``. Returns why it is a decision that does not count, by the name of a rule; empty of
        any other. ``content`` reads a row's, ``asked`` gives the row of the open request at a path.

        What an answer was given to is known here, but not what other decisions are about: whether that is as
        it was signed is told by `verify`.
        """
        if row.tool == IDENTIFY and row.version == 1:
            self._people = self._people._replace(workspace=content(row.seq) or "")
        if row.zone == ZONE and row.version is not None:
            text, before = content(row.seq), self._people
            self._people = apply_person_row(before, row, text, None)
            return find_flaw(row, before, None, text) if is_decision(row) else "decision_stranger"
        if row.zone == SETTINGS and row.version is not None:
            # Whoever it says that made it.
            return find_flaw(row, self._people, None)
        if not self._people.is_closed or row.outcome != "ok" or not is_decision(row):
            return ""
        request = asked(row.path) if row.tool == ANSWER else None
        known = {} if request is None else {request.seq: request}
        return find_flaw(row, self._people, known.get if request is not None else None)
