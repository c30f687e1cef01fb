"""Projections of usage and budgets for the dashboard."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import ClassVar, Final, NamedTuple, TypeVar

from watchroom.features.budgets.rows import UsageTotal, usage_of
from watchroom.features.budgets.rules import (
    SCOPES,
    Budgets,
    BudgetScope,
    BudgetUse,
    Used,
    measure_budgets,
    used_in,
)
from watchroom.features.config.rows import Agent
from watchroom.model import Row

_Key = TypeVar("_Key", int, str)
SLOT_SECONDS: Final = 900
"""Seconds in a slot of time. A day in any time zone is a whole number of slots."""
MAX_SLOTS: Final = 32 * 24 * 3600 // SLOT_SECONDS
"""Maximum number of slots that are kept: 32 days."""
MAX_MODELS: Final = 1000
"""Maximum number of models that are counted separately. Further models are counted under `UNKNOWN_MODEL`."""
UNKNOWN_MODEL: Final = ""


class UsageView(NamedTuple):
    """The usage of the workspace.

    - ``team``: the total.
    - ``agents``, ``tasks``, ``models``: the parts by id or name.
    - ``slots``: the parts by slot of time (seconds since the epoch / `SLOT_SECONDS`), without empty slots.
    """

    team: UsageTotal = UsageTotal()
    agents: Mapping[str, UsageTotal] = MappingProxyType({})
    tasks: Mapping[str, UsageTotal] = MappingProxyType({})
    models: Mapping[str, UsageTotal] = MappingProxyType({})
    slots: Mapping[int, UsageTotal] = MappingProxyType({})

    def since(self, time_ns: int) -> UsageTotal:
        """Return the usage since the start of the slot of ``time_ns`` (nanoseconds since the epoch)."""
        first = slot_of(time_ns)
        return sum_usage(used for slot, used in self.slots.items() if slot >= first)


class UsageProjection:
    """Sums the usage in rows. Takes rows in order."""

    DERIVED: ClassVar[Mapping[str, object]] = {"_changed": True, "_current": UsageView()}
    """Attributes that a snapshot leaves out, each with its value after loading (see
    `watchroom.features.overview.fold_state`)."""

    def __init__(self) -> None:
        self._team = UsageTotal()
        self._agents: dict[str, UsageTotal] = {}
        self._tasks: dict[str, UsageTotal] = {}
        self._models: dict[str, UsageTotal] = {}
        self._slots: dict[int, UsageTotal] = {}
        self._current = UsageView()
        self._changed = False
        self._task_of: dict[str, str] = {}

    def register(self, agents: Iterable[Agent]) -> None:
        """Set the registered agents. Their future usage counts for their task."""
        self._task_of = {agent.id: agent.task for agent in agents if agent.task}

    def apply_step(self, row: Row) -> None:
        """Apply ``row``, a step of a session."""
        record = usage_of(row)
        if record is None:
            return
        used, slot = record.usage, slot_of(row.time)
        is_known = record.model in self._models or len(self._models) < MAX_MODELS
        self._team = self._team.plus(used)
        _add(self._agents, row.actor, used)
        # The number of models is limited, because clients can send any name.
        _add(self._models, record.model if is_known else UNKNOWN_MODEL, used)
        if task := self._task_of.get(row.actor):
            _add(self._tasks, task, used)
        if slot not in self._slots:
            for old in [each for each in self._slots if each <= slot - MAX_SLOTS]:
                del self._slots[old]
        _add(self._slots, slot, used)
        self._changed = True

    def current(self) -> UsageView:
        """Return the usage so far; the same object as before if nothing changed."""
        if self._changed:
            self._changed = False
            parts = (self._agents, self._tasks, self._models)
            agents, tasks, models = (MappingProxyType(dict(each)) for each in parts)
            self._current = UsageView(self._team, agents, tasks, models, MappingProxyType(dict(self._slots)))
        return self._current


class BudgetProjection:
    """Measures the use of the budgets in force. Takes rows in order.

    The newest step of a session has the session's total. Only that row is read, and only if there is a
    budget.
    """

    DERIVED: ClassVar[Mapping[str, object]] = {"_changed": True, "_current": ()}
    """Attributes that a snapshot leaves out, each with its value after loading (see
    `watchroom.features.overview.fold_state`)."""

    def __init__(self) -> None:
        self._budgets = Budgets()
        self._task_of: Mapping[str, str] = MappingProxyType({})
        self._heads: dict[str, Row] = {}
        """The newest step of each session, if it was not read yet."""
        self._sessions: dict[str, dict[str, Used]] = {}
        """The usage, by agent and session."""
        self._agents: dict[str, Used] = {}
        self._current: tuple[BudgetUse, ...] = ()
        self._changed = False

    def register(self, budgets: Budgets, agents: Iterable[Agent]) -> None:
        """Set the budgets in force and the registered agents."""
        self._budgets = budgets
        self._task_of = {agent.id: agent.task for agent in agents}
        self._changed = True

    def apply_step(self, row: Row) -> None:
        """Apply ``row``, a step of a session."""
        if row.zone == "session" and row.version is not None:
            self._heads[row.path] = row
            self._changed = True

    def current(self) -> tuple[BudgetUse, ...]:
        """Return the use of each budget, largest share first; the same object as before if nothing
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


def slot_of(time_ns: int) -> int:
    """Return the slot of ``time_ns`` (nanoseconds since the epoch)."""
    return time_ns // (SLOT_SECONDS * 1_000_000_000)


def sum_usage(several: Iterable[UsageTotal]) -> UsageTotal:
    """Return the sum of ``several``."""
    total = UsageTotal()
    for each in several:
        total = total.plus(each)
    return total


def _add(totals: dict[_Key, UsageTotal], key: _Key, used: UsageTotal) -> None:
    totals[key] = totals.get(key, UsageTotal()).plus(used)


def _sum(several: Iterable[Used]) -> Used:
    total = Used()
    for used in several:
        total = total.plus(used)
    return total
