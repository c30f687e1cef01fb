"""What agents used, added up over the whole journal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Literal, NamedTuple, TypeAlias, get_args

from watchroom.journal import Journal
from watchroom.journal.topics import steps_of
from watchroom.model import Row
from watchroom.projections.usage import sum_usage
from watchroom.rules.usage import UsageRecord, UsageTotal, usage_of

UsageKey: TypeAlias = Literal["agent", "model", "day", "task", "session"]
"""By what usage is added up."""
USAGE_KEYS: tuple[UsageKey, ...] = get_args(UsageKey)


class UsageSummary(NamedTuple):
    """What was used: ``total``, and of that ``parts`` by agent, model, day, task or session, in the order of
    their first use. What belongs to no task, and to a model without a name, stands under an empty text."""

    total: UsageTotal
    parts: Mapping[str, UsageTotal]


def summarize_usage(
    journal: Journal,
    by: UsageKey,
    *,
    day_of: Callable[[int], str],
    task_of: Callable[[str], str] = lambda agent: "",
) -> UsageSummary:
    """What agents used by the rows of ``journal``, added up ``by`` one of `USAGE_KEYS`. ``day_of`` names the
    day of a time (nanoseconds since the epoch), ``task_of`` the task of an agent (by its id). It reads the
    steps of all sessions. Raises `JournalError`."""
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
    """All steps that say what they used, oldest first."""
    agents = {head.actor for head in journal.heads("session")}
    steps = (row for agent in agents for row in journal.topic(steps_of(agent)))
    for row in sorted(steps, key=lambda row: row.seq):
        record = usage_of(row)
        if record is not None:
            yield row, record
