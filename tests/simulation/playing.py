"""Plays scenarios, and stops them when something has happened."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from time import monotonic

from watchroom import Json, Row, Workspace
from watchroom.agents.simulation import Scenario, Simulation, Summary, load, roster
from watchroom.features.config.rows import Agent
from watchroom.features.sessions.runtime import AgentState, AssistantMessage, Message, ToolMessage
from watchroom.kernel.journal import Journal

PATIENCE = 60.0


@contextmanager
def team(root: Path, count: int = 6) -> Iterator[tuple[Workspace, list[Agent]]]:
    """A workspace with ``count`` agents of the built-in scenario."""
    agents = roster(count)
    with Workspace.open(root, agents=agents) as workspace:
        yield workspace, agents


def scenario_from(path: Path, text: str) -> Scenario:
    path.write_text(text, encoding="utf-8")
    return load(path)


def run_until(workspace: Workspace, simulation: Simulation, reached: Callable[[], bool]) -> Summary:
    """Runs a simulation until, after some commit, ``reached`` holds."""
    committed = Event()
    until = monotonic() + 2 * PATIENCE
    unsubscribe = workspace.subscribe(committed.set)
    with simulation:
        while not reached():
            assert committed.wait(PATIENCE), f"nothing happens any more: {simulation.summary()}"
            assert monotonic() < until, f"it does not happen: {simulation.summary()}"
            committed.clear()
    unsubscribe()
    workspace.flush()
    return simulation.summary()


def all_rows(workspace: Workspace) -> list[Row]:
    return workspace.journal.rows(limit=1_000_000)


def text_of(journal: Journal, zone: str, path: str) -> str:
    head = journal.head(zone, path)  # type: ignore[arg-type]
    return (journal.content(head.seq) or "") if head else ""


def states(workspace: Workspace, agent: str = "") -> list[AgentState]:
    sessions = workspace.sessions
    return [sessions.state(head.agent, head.id) for head in sessions.list(agent)]


def is_whole(messages: tuple[Message, ...]) -> bool:
    """Each call has one result, in the order of the calls, before anything else is said."""
    calls = [call.id for each in messages if isinstance(each, AssistantMessage) for call in each.tool_calls]
    results = [each.tool_call_id for each in messages if isinstance(each, ToolMessage)]
    return calls[: len(results)] == results and len(calls) - len(results) <= 1


def answer(workspace: Workspace, row: Row, **given: Json) -> None:
    """A person answers the request that ``row`` asks."""
    dana = workspace.tools_for_human("dana")
    assert dana.dispatch_tool_call("answer_request", {"request": row.seq, **given})["success"]
