"""The topics under which a journal finds rows that are asked for by something else than their path."""

from __future__ import annotations

from typing import Final

from watchroom.model import CONTROLS, OUTSIDE, SETTLING_TOOLS, Row, Zone

SETTLED: Final = "settled"
"""The rows by which people settled conflicts, of all paths."""


def messages_to(zone: Zone, path: str) -> str:
    """What was said to ``path``, an agent's id or a session (``AGENT/SESSION``): messages, and what pauses,
    resumes or cancels. ``zone`` is ``session`` for what people say, ``agent`` for what agents do."""
    return f"{zone}:{path}"


def steps_of(agent: str) -> str:
    """The steps of all sessions of ``agent``."""
    return f"steps:{agent}"


def deliveries_to(agent: str) -> str:
    """The handoffs that ``agent`` got, each version a row."""
    return f"handoff:{agent}"


OUTSIDE_EDITS: Final = "outside:"
"""What the names of all topics of `outside_edits_of` begin with."""


def end_of_prefix(prefix: str) -> str:
    """The first text, by code points, after all that begin with ``prefix``."""
    return prefix[:-1] + chr(ord(prefix[-1]) + 1)


def outside_edits_of(zone: Zone, path: str) -> str:
    """The edits of ``path`` in ``zone`` that were made by hand and made no version."""
    return f"{OUTSIDE_EDITS}{zone}:{path}"


def section_written_by(actor: str, board: str, section: str) -> str:
    """The versions of ``board`` in which ``actor`` rewrote ``section``."""
    return f"section:{actor}\n{board}\n{section}"


def topic_of(row: Row) -> str | None:
    """The topic of ``row``, None if it has none: as the index of every journal has it."""
    if row.outcome != "ok":
        is_edit = row.actor == OUTSIDE
        return outside_edits_of(row.zone, row.path) if is_edit else None
    if row.version is None and row.zone in ("session", "agent") and row.tool in CONTROLS:
        return messages_to(row.zone, row.path)
    if row.version is not None and row.zone == "session":
        return steps_of(row.actor)
    if row.version is not None and row.zone == "handoff" and row.sha256 is not None:
        return deliveries_to(holder_of(row))
    if row.tool in SETTLING_TOOLS:
        return SETTLED
    section = row.detail.get("section") if row.version is not None and row.zone == "board" else None
    return section_written_by(row.actor, row.path, section) if isinstance(section, str) else None


def holder_of(row: Row) -> str:
    """For whom what ``row`` made is open: a delivery for its receiver, a buffer for its agent, an agent and a
    command for their task; empty of anything else."""
    if row.zone == "handoff":
        return row.path.partition("/")[0].partition("_to_")[2]
    if row.zone in ("buffer", "command"):
        return row.path.partition("/")[0]
    task = row.detail.get("task") if row.zone == "agent" else None
    return task if isinstance(task, str) else ""


def is_open_item(row: Row) -> bool:
    """Whether what ``row``, a version, made is open: an agent for ever, a task and a command until their
    second version, a delivery and a buffer until they are deleted."""
    if row.zone == "agent":
        return True
    return row.version == 1 if row.zone in ("task", "command") else row.sha256 is not None
