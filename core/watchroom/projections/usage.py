"""What agents used, added up: for the team, each agent, task and model, and over time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple, TypeVar

from watchroom.model import Row
from watchroom.rules.config import Agent
from watchroom.rules.usage import UsageTotal, usage_of

Key = TypeVar("Key", int, str)
SLOT_SECONDS: Final = 900
"""Time is counted in slots of so many seconds: of these the days of every time zone are made."""
SLOTS: Final = 32 * 24 * 3600 // SLOT_SECONDS
"""So many slots are kept: a month and a day."""
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

    def __init__(self) -> None:
        self._view = UsageView()
        self._task_of: dict[str, str] = {}

    def register(self, agents: Iterable[Agent]) -> None:
        """Take ``agents`` for those that are registered from now on: what they use counts for their task."""
        self._task_of = {agent.id: agent.task for agent in agents if agent.task}

    def apply_step(self, row: Row) -> None:
        """Take in ``row``, one of how a session goes on."""
        record = usage_of(row)
        if record is None:
            return
        used, slot, task = record.usage, slot_of(row.time), self._task_of.get(row.actor)
        view = self._view
        self._view = UsageView(
            view.team.plus(used),
            _with(view.agents, row.actor, used),
            _with(view.tasks, task, used) if task else view.tasks,
            _with(view.models, record.model, used),
            _with({at: each for at, each in view.slots.items() if at > slot - SLOTS}, slot, used),
        )

    def current(self) -> UsageView:
        """What was used so far; the same object as before where nothing was added."""
        return self._view


def slot_of(time_ns: int) -> int:
    """The slot of ``time_ns`` (nanoseconds since the epoch)."""
    return time_ns // (SLOT_SECONDS * 1_000_000_000)


def sum_usage(several: Iterable[UsageTotal]) -> UsageTotal:
    """All of ``several`` together."""
    total = UsageTotal()
    for each in several:
        total = total.plus(each)
    return total


def _with(before: Mapping[Key, UsageTotal], key: Key, used: UsageTotal) -> Mapping[Key, UsageTotal]:
    return MappingProxyType({**before, key: before.get(key, UsageTotal()).plus(used)})
