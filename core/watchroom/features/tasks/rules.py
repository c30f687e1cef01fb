"""The members of a task: agents that were registered for it or spawned, in layers, until they end. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from watchroom.features.config.rows import Agent, Layer, sort_top_down
from watchroom.features.tasks.rows import spawned_agent
from watchroom.model import Row


class Member(NamedTuple):
    """An agent of a task.

    - ``parent``: the id of the agent that spawned it, empty for the first agent.
    - ``depth``: the number of agents above it.
    - ``spawned``: the row that spawned it, None if a person registered it.
    - ``ended``: the row that ended it, an agent above it, or the task. None if it has not ended.
    """

    id: str
    role: str
    layer: Layer
    parent: str
    task: str
    depth: int
    spawned: Row | None
    ended: Row | None


def list_members(
    task: str,
    registered: Iterable[Agent],
    spawned: Mapping[str, Row],
    terminated: Mapping[str, Row],
    task_end: Row | None,
) -> list[Member]:
    """Return the members of ``task``, each after its parent.

    - ``registered``: registered agents, of any task. An agent's registration overrides its spawn row.
    - ``spawned``, ``terminated``: the rows that spawned and ended agents, by the agent's id.
    - ``task_end``: the row that ended the task, None if it is open.
    """
    agents = {agent.id: agent for agent in registered if agent.task == task}
    for path, row in spawned.items():
        # An agent with an empty id would be its own supervisor.
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
    """Return the first agent of the task, None if none was spawned."""
    return next((each for each in members if each.spawned and not each.parent), None)


def ids_above(member: Member, members: Iterable[Member]) -> set[str]:
    """Return the ids of all agents above ``member``. ``members``: all agents of the task."""
    parents = {each.id: each.parent for each in members}
    found: set[str] = set()
    parent = member.parent
    while parent:
        found.add(parent)
        parent = parents[parent]
    return found
