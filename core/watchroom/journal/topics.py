"""The topics under which a journal finds rows that are asked for by something else than their path."""

from __future__ import annotations

from typing import Final

from watchroom.model import Zone

SETTLED: Final = "settled"
"""The rows by which people settled conflicts, of all paths."""


def messages_to(zone: Zone, path: str) -> str:
    """What was said to an agent (by its id) or to a session (``AGENT/SESSION``): messages, and what pauses,
    resumes or cancels. ``zone`` is ``session`` for what people say, ``agent`` for what agents do."""
    return f"{zone}:{path}"


def steps_of(agent: str) -> str:
    """The steps of all sessions of an agent."""
    return f"steps:{agent}"


def deliveries_to(agent: str) -> str:
    """The handoffs that an agent got, each version a row."""
    return f"handoff:{agent}"


def outside_edits_of(zone: Zone, path: str) -> str:
    """The edits of a path that were made by hand and made no version."""
    return f"outside:{zone}:{path}"


def section_written_by(actor: str, board: str, section: str) -> str:
    """The versions of a board in which the actor rewrote that section."""
    return f"section:{actor}\n{board}\n{section}"
