"""What agents used, added up: for the team, each agent, task and model, and over time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import ClassVar, Final, NamedTuple, TypeVar

from watchroom.model import Row
from watchroom.rules.config import Agent
from watchroom.rules.usage import UsageTotal, usage_of

Key = TypeVar("Key", int, str)
SLOT_SECONDS: Final = 900
"""Time is counted in slots of so many seconds: of these the days of every time zone are made."""
SLOTS: Final = 32 * 24 * 3600 // SLOT_SECONDS
"""So many slots are kept: a month and a day."""
MOST_MODELS: Final = 1000
"""So many models are told apart; what others use stands under `UNKNOWN_MODEL`."""
UNKNOWN_MODEL: Final = ""
"""The name under which the usage of models stands that nobody named."""


class UsageView(NamedTuple):
    """What was used: by the ``team``, and of that by each agent, task and model (by id or name), and in each
    slot of time (seconds since the epoch / `SLOT_SECONDS`) that had any."""

    team: UsageTotal = UsageTotal()
    agents: Mapping[str, UsageTotal] = MappingProxyType({})
    tasks: Mapping[str, UsageTotal] = MappingProxyType({})
    models: Mapping[str, UsageTotal] = MappingProxyType({})
    slots: Mapping[int, UsageTotal] = MappingProxyType({})

    def since(self, time_ns: int) -> UsageTotal:
        """What was used since the slot in which ``time_ns`` lies (nanoseconds since the epoch)."""
        first = slot_of(time_ns)
        return sum_usage(used for slot, used in self.slots.items() if slot >= first)


class UsageProjection:
    """Takes rows in order; gives what was used so far."""

    DERIVED: ClassVar[Mapping[str, object]] = {"_changed": True, "_current": UsageView()}
    """What is made anew, and how it begins then (see `watchroom.projections.fold_state`)."""

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
        """Take ``agents`` for those that are registered from now on: what they use counts for their task."""
        self._task_of = {agent.id: agent.task for agent in agents if agent.task}

    def apply_step(self, row: Row) -> None:
        """Take in ``row``, one of how a session goes on."""
        record = usage_of(row)
        if record is None:
            return
        used, slot = record.usage, slot_of(row.time)
        is_known = record.model in self._models or len(self._models) < MOST_MODELS
        self._team = self._team.plus(used)
        _add(self._agents, row.actor, used)
        # What a model is called says its client.
        _add(self._models, record.model if is_known else UNKNOWN_MODEL, used)
        if task := self._task_of.get(row.actor):
            _add(self._tasks, task, used)
        if slot not in self._slots:
            for old in [each for each in self._slots if each <= slot - SLOTS]:
                del self._slots[old]
        _add(self._slots, slot, used)
        self._changed = True

    def current(self) -> UsageView:
        """What was used so far; the same object as before where nothing was added."""
        if self._changed:
            self._changed = False
            parts = (self._agents, self._tasks, self._models)
            agents, tasks, models = (MappingProxyType(dict(each)) for each in parts)
            self._current = UsageView(self._team, agents, tasks, models, MappingProxyType(dict(self._slots)))
        return self._current


def slot_of(time_ns: int) -> int:
    """The slot of ``time_ns`` (nanoseconds since the epoch)."""
    return time_ns // (SLOT_SECONDS * 1_000_000_000)


def sum_usage(several: Iterable[UsageTotal]) -> UsageTotal:
    """All of ``several`` together."""
    total = UsageTotal()
    for each in several:
        total = total.plus(each)
    return total


def _add(totals: dict[Key, UsageTotal], key: Key, used: UsageTotal) -> None:
    totals[key] = totals.get(key, UsageTotal()).plus(used)
