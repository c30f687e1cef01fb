"""Who works in a simulated team."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable
from typing import Final

from watchroom.rules.config import Agent, Layer

FEWEST: Final = 3
_ROLES: Final[tuple[tuple[str, Layer, str], ...]] = (
    ("researcher", "mid", ""),
    ("analyst", "mid", ""),
    ("writer", "bottom", "analyst"),
    ("reviewer", "mid", ""),
    ("translator", "bottom", "reviewer"),
    ("planner", "top", ""),
    ("editor", "mid", "planner"),
    ("coder", "bottom", "analyst"),
    ("tester", "bottom", "reviewer"),
    ("designer", "bottom", "editor"),
    ("surveyor", "bottom", "researcher"),
    ("accountant", "bottom", "analyst"),
)
"""Role, layer, supervisor. The first twelve agents have these names; those after them are numbered squads,
each with a line of its own to study, whose middle layer answers to the planner. There roles have the number
too: whoever shared one would share the whiteboard of that role."""

_APART: Final = "reviewer"
_NUMBERED: Final = re.compile(r"(.+)-(\d{1,6})")


def roster(count: int) -> list[Agent]:
    """A team of ``count`` agents (at least three), each supervised by one before it, or by nobody."""
    if count < FEWEST:
        raise ValueError(f"a team has at least {FEWEST} agents (researcher, analyst, writer), not {count}")
    first = [Agent(role, role, layer, supervisor) for role, layer, supervisor in _ROLES]
    others = [role for role in _ROLES if role[1] != "top"]
    while len(first) < count:
        squad, place = divmod(len(first) - len(_ROLES), len(others))
        role, layer, supervisor = others[place]
        name = f"{role}-{squad + 2}"
        boss = f"{supervisor}-{squad + 2}" if layer == "bottom" else "planner"
        first.append(Agent(name, role if layer == "bottom" else name, layer, boss))
    return first[:count]


def works_apart(team: Iterable[Agent]) -> tuple[str, ...]:
    """Who of a team works in a process of its own in the demo: the reviewer, or the first of a small team."""
    ids = [agent.id for agent in team]
    return (_APART if _APART in ids else ids[0],)


def role_of(agent_id: str) -> str:
    """The role that an id tells; an id that tells none gets one that is always the same."""
    names = [role for role, _, _ in _ROLES]
    match = _NUMBERED.fullmatch(agent_id)
    name = match.group(1) if match else agent_id
    return name if name in names else names[zlib.crc32(agent_id.encode()) % len(names)]


def squad_of(agent_id: str) -> int:
    """The number of the agent's squad, 1 for those without a number."""
    match = _NUMBERED.fullmatch(agent_id)
    return max(1, int(match.group(2))) if match else 1
