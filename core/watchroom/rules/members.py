"""Who works on a task: agents that were registered for it or spawned, in layers, until they end. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from watchroom.model import SPAWN, TERMINATE, Row
from watchroom.rules.config import LAYERS, Agent, Layer, sort_top_down
from watchroom.rules.details import get_text


class Member(NamedTuple):
    """An agent of a task. ``parent`` is the id of the agent that spawned it, empty of the first; ``depth``
    how many there are above it. ``spawned`` and ``ended`` are rows: None where somebody registered it by
    hand, and where it has not ended. ``ended`` is its own end, that of one above it, or that of the task."""

    id: str
    role: str
    layer: Layer
    parent: str
    task: str
    depth: int
    spawned: Row | None
    ended: Row | None


def is_spawn(row: Row) -> bool:
    """Whether ``row`` made an agent for a task."""
    return row.zone == "agent" and row.version == 1 and row.tool == SPAWN and "task" in row.detail


def is_termination(row: Row) -> bool:
    """Whether ``row`` ended an agent, and all that it had spawned."""
    return row.zone == "agent" and row.version is not None and row.tool == TERMINATE


def spawned_agent(row: Row) -> Agent:
    """Return the agent that ``row`` spawned, as it is to be registered. Fields that are missing or of another
    type are empty, and the layer is the bottom one."""
    detail = row.detail
    layer = detail.get("layer")
    return Agent(
        row.path,
        get_text(detail, "role"),
        layer if layer in LAYERS else "bottom",
        get_text(detail, "parent"),
        get_text(detail, "task"),
    )


def list_members(
    task: str,
    registered: Iterable[Agent],
    spawned: Mapping[str, Row],
    terminated: Mapping[str, Row],
    task_end: Row | None,
) -> list[Member]:
    """The members of ``task``, those that spawned others before these. ``registered`` are agents as they are
    registered, of any task; ``spawned`` and ``terminated`` map an agent's id to the row that made and that
    ended it; ``task_end`` is the row that ended the task. An agent's registration counts before its
    spawning."""
    agents = {agent.id: agent for agent in registered if agent.task == task}
    for path, row in spawned.items():
        # An agent without an id would be its own supervisor.
        if path and path not in agents and row.detail.get("task") == task:
            agents[path] = spawned_agent(row)
    found: dict[str, Member] = {}
    for agent in sort_top_down(agents):
        above = found.get(agent.supervisor)
        found[agent.id] = Member(
            agent.id,
            agent.role,
            agent.layer,
            above.id if above else "",
            task,
            above.depth + 1 if above else 0,
            spawned.get(agent.id),
            terminated.get(agent.id) or (above.ended if above else task_end),
        )
    return list(found.values())


def find_first(members: Iterable[Member]) -> Member | None:
    """The agent that the task began with, None where ``members`` hold none that was spawned."""
    return next((each for each in members if each.spawned and not each.parent), None)


def ids_above(member: Member, members: Iterable[Member]) -> set[str]:
    """The ids of all above ``member`` among ``members``."""
    parents = {each.id: each.parent for each in members}
    found: set[str] = set()
    parent = member.parent
    while parent:
        found.add(parent)
        parent = parents[parent]
    return found
