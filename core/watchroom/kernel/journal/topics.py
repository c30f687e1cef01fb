"""Topics: names by which a journal finds rows without their path."""

from __future__ import annotations

from typing import Final

from watchroom.kernel.zones import DELIVERED, SECTIONED
from watchroom.model import CONTROLS, OUTSIDE, SETTLING_TOOLS, Row, Zone

SETTLED: Final = "settled"
"""The topic of the rows in which people settled conflicts of any path."""


def messages_to(zone: Zone, path: str) -> str:
    """Return the topic of the messages to ``path`` and of the rows that pause, resume or cancel it.

    - ``zone``: ``session`` for messages of people, ``agent`` for messages of agents.
    - ``path``: an agent's id, or a session as ``AGENT/SESSION``.
    """
    return f"{zone}:{path}"


def steps_of(agent: str) -> str:
    """Return the topic of the steps of all sessions of ``agent``."""
    return f"steps:{agent}"


def deliveries_to(agent: str) -> str:
    """Return the topic of the handoffs to ``agent``, with a row for each version."""
    return f"handoff:{agent}"


OUTSIDE_EDITS: Final = "outside:"
"""The prefix of all topics of `outside_edits_of`."""


def end_of_prefix(prefix: str) -> str:
    """Return the first text, by code points, after all texts that begin with ``prefix``."""
    return prefix[:-1] + chr(ord(prefix[-1]) + 1)


def outside_edits_of(zone: Zone, path: str) -> str:
    """Return the topic of the external edits of ``path`` in ``zone`` that made no version."""
    return f"{OUTSIDE_EDITS}{zone}:{path}"


def section_written_by(actor: str, board: str, section: str) -> str:
    """Return the topic of the versions of ``board`` in which ``actor`` rewrote ``section``."""
    return f"section:{actor}\n{board}\n{section}"


def topic_of(row: Row) -> str | None:
    """Return the topic of ``row``, None if it has none. The indexes of all journals must agree with this."""
    if row.outcome != "ok":
        is_edit = row.actor == OUTSIDE
        return outside_edits_of(row.zone, row.path) if is_edit else None
    if row.version is None and row.zone in ("session", "agent") and row.tool in CONTROLS:
        return messages_to(row.zone, row.path)
    if row.version is not None and row.zone == "session":
        return steps_of(row.actor)
    if row.version is not None and row.zone in DELIVERED and row.sha256 is not None:
        return deliveries_to(holder_of(row))
    if row.tool in SETTLING_TOOLS:
        return SETTLED
    section = row.detail.get("section") if row.version is not None and row.zone in SECTIONED else None
    return section_written_by(row.actor, row.path, section) if isinstance(section, str) else None


def holder_of(row: Row) -> str:
    """Return the holder for whom the item of ``row`` is open, empty if the row is not an item.

    A delivery is open for its receiver, a buffer for its agent, an agent and a command for their task.
    """
    if row.zone in DELIVERED:
        return row.path.partition("/")[0].partition("_to_")[2]
    if row.zone in ("buffer", "command"):
        return row.path.partition("/")[0]
    task = row.detail.get("task") if row.zone == "agent" else None
    return task if isinstance(task, str) else ""


def is_open_item(row: Row) -> bool:
    """Return whether the item of ``row``, a version, is open.

    An agent stays open forever, a task and a command until their second version, a delivery and a buffer
    until they are deleted.
    """
    if row.zone == "agent":
        return True
    return row.version == 1 if row.zone in ("task", "command") else row.sha256 is not None
