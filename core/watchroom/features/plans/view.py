"""The active plans, as the dashboard shows them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import ClassVar

from watchroom.features.plans.rows import Plan, is_plan, read_plan
from watchroom.features.plans.rules import changes_planned, has_ended
from watchroom.features.sessions.view import SessionView
from watchroom.model import Row


class PlanProjection:
    """The plans of agents. Takes all operations in order."""

    DERIVED: ClassVar[Mapping[str, object]] = {"_read": None, "_current": MappingProxyType({})}
    """Attributes that a snapshot leaves out, each with its value after loading."""

    def __init__(self) -> None:
        self._rows: dict[str, Row] = {}
        """By agent: the row of its plan."""
        self._changed: set[str] = set()
        """The agents that have changed a planned file."""
        self._read: dict[str, Plan] | None = None
        self._current: Mapping[str, Plan] = MappingProxyType({})

    def apply(self, row: Row) -> None:
        """Apply ``row``, an operation."""
        if is_plan(row):
            self._rows.pop(row.actor, None)
            self._changed.discard(row.actor)
            self._read = None
            if read_plan(row).paths:
                self._rows[row.actor] = row
        elif row.version is not None and self._is_planned(row):
            self._changed.add(row.actor)

    def _is_planned(self, row: Row) -> bool:
        """Return whether ``row``, a version, changes a file of its actor's plan."""
        plan = self._plans().get(row.actor)
        return plan is not None and changes_planned(plan.paths, row.zone, row.path)

    def _plans(self) -> dict[str, Plan]:
        if self._read is None:
            self._read = {agent: read_plan(row) for agent, row in self._rows.items()}
        return self._read

    def current(self, sessions: Iterable[SessionView], ended: frozenset[str]) -> Mapping[str, Plan]:
        """Return the active plans by agent; the same object if none changed.

        - ``sessions``: the newest session of each agent.
        - ``ended``: the agents that have ended.
        """
        if not self._rows and not self._current:
            return self._current
        known = {each.agent: each for each in sessions}
        found = {
            agent: plan
            for agent, plan in self._plans().items()
            if agent not in ended and not self._has_ended(plan, known.get(agent))
        }
        if found != self._current:
            self._current = MappingProxyType(found)
        return self._current

    def _has_ended(self, plan: Plan, session: SessionView | None) -> bool:
        if session is None:
            return False
        is_changed = plan.agent in self._changed
        return has_ended(plan.row, session.begun, session.last, session.status, is_changed=is_changed)
