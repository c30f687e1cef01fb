"""The usage of agents, summed over the whole journal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Literal, NamedTuple, TypeAlias, get_args

from watchroom.features.budgets.rows import UsageRecord, UsageTotal, usage_of
from watchroom.features.budgets.view import sum_usage
from watchroom.kernel.journal import Journal
from watchroom.kernel.journal.topics import steps_of
from watchroom.model import Row

UsageKey: TypeAlias = Literal["agent", "model", "day", "task", "session"]
"""The criterion by which usage is grouped."""
USAGE_KEYS: tuple[UsageKey, ...] = get_args(UsageKey)


class UsageSummary(NamedTuple):
    """The ``total`` usage, and its ``parts`` by group, in the order of first use.

    Usage without a task or without a model name is in the group with the empty name.
    """

    total: UsageTotal
    parts: Mapping[str, UsageTotal]


def summarize_usage(
    journal: Journal,
    by: UsageKey,
    *,
    day_of: Callable[[int], str],
    task_of: Callable[[str], str] = lambda agent: "",
) -> UsageSummary:
    """Return the usage of all agents. The steps of all sessions are read. Raise `JournalError`.

    - ``by``: one of `USAGE_KEYS`.
    - ``day_of``: returns the day of a time (nanoseconds since the epoch).
    - ``task_of``: returns the task of an agent, by its id. Default: no task.
    """
    parts: dict[str, UsageTotal] = {}
    for row, record in _records(journal):
        key = {
            "agent": row.actor,
            "model": record.model,
            "day": day_of(row.time),
            "task": task_of(row.actor),
            "session": row.path,
        }[by]
        parts[key] = parts.get(key, UsageTotal()).plus(record.usage)
    return UsageSummary(sum_usage(parts.values()), parts)


def _records(journal: Journal) -> Iterator[tuple[Row, UsageRecord]]:
    """Yield all steps with usage, oldest first."""
    agents = {head.actor for head in journal.heads("session")}
    steps = (row for agent in agents for row in journal.topic(steps_of(agent)))
    for row in sorted(steps, key=lambda row: row.seq):
        record = usage_of(row)
        if record is not None:
            yield row, record
