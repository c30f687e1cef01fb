"""How much of each budget is used: of the team's, and of those of its tasks and agents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import ClassVar

from watchroom.model import Row
from watchroom.rules.budgets import SCOPES, Budgets, BudgetScope, BudgetUse, Used, measure_budgets, used_in
from watchroom.rules.config import Agent


class BudgetProjection:
    """Takes rows in order; gives what is used of the budgets that hold. The newest step of a session says
    what the whole session used, so only that one is read, and only where there is a budget."""

    DERIVED: ClassVar[Mapping[str, object]] = {"_changed": True, "_current": ()}
    """What is made anew, and how it begins then (see `watchroom.projections.fold_state`)."""

    def __init__(self) -> None:
        self._budgets = Budgets()
        self._task_of: Mapping[str, str] = MappingProxyType({})
        self._heads: dict[str, Row] = {}
        """By session, its newest step, where that was not read yet."""
        self._sessions: dict[str, dict[str, Used]] = {}
        """By agent and session."""
        self._agents: dict[str, Used] = {}
        self._current: tuple[BudgetUse, ...] = ()
        self._changed = False

    def register(self, budgets: Budgets, agents: Iterable[Agent]) -> None:
        """Take ``budgets`` for those that hold from now on, and ``agents`` for those that are registered."""
        self._budgets = budgets
        self._task_of = {agent.id: agent.task for agent in agents}
        self._changed = True

    def apply_step(self, row: Row) -> None:
        """Take in ``row``, one of how a session goes on."""
        if row.zone == "session" and row.version is not None:
            self._heads[row.path] = row
            self._changed = True

    def current(self) -> tuple[BudgetUse, ...]:
        """How much is used of each budget, the most used first; the same object as before where nothing
        changed."""
        if self._changed:
            self._changed = False
            uses = self._measure() if self._budgets != Budgets() else ()
            self._current = uses if uses != self._current else self._current
        return self._current

    def _measure(self) -> tuple[BudgetUse, ...]:
        uses = measure_budgets(self._budgets, self._used())
        uses.sort(key=lambda use: (-use.share, SCOPES.index(use.budget.scope), use.budget.name))
        return tuple(uses)

    def _used(self) -> dict[tuple[BudgetScope, str], Used]:
        for path, row in self._heads.items():
            self._sessions.setdefault(path.partition("/")[0], {})[path] = used_in([row])
        for agent in {path.partition("/")[0] for path in self._heads}:
            self._agents[agent] = _sum(self._sessions[agent].values())
        self._heads.clear()
        agents = self._agents
        tasks: dict[str, list[Used]] = {}
        for agent, task in self._task_of.items():
            tasks.setdefault(task, []).append(agents.get(agent, Used()))
        return {
            ("team", ""): _sum(agents.values()),
            **{("task", task): _sum(used) for task, used in tasks.items() if task},
            **{("agent", agent): agents.get(agent, Used()) for agent in self._task_of},
        }


def _sum(several: Iterable[Used]) -> Used:
    total = Used()
    for used in several:
        total = total.plus(used)
    return total
