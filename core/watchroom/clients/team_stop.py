"""Stopping many agents at once, and what shows for each that it has stopped."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from watchroom.clients.client_traces import ProcessView
from watchroom.clients.stopping import PATIENCE, StopProof, find_doubt, is_abandoned, stop_client
from watchroom.rules.details import StepDetail
from watchroom.rules.presence import is_unfinished
from watchroom.rules.usage import is_subagent_step
from watchroom.texts import Language, catalogue
from watchroom.workspace import Workspace

_THREADS: Final = 16
_TOOL_SECONDS: Final = 1.0
"""So long a running tool may take to end, before its call is cut off."""


def running_agents(workspace: Workspace) -> list[str]:
    """Return the agents of ``workspace`` that have a session which has not ended, as far as that is proven.
    Raises `JournalError`."""
    heads = workspace.session_zone.heads()
    agents = dict.fromkeys(row.path.partition("/")[0] for row in heads if is_unfinished(row))
    agents |= dict.fromkeys(doubted_agents(workspace))
    return [agent for agent in agents if agent in workspace.config.agents]


def doubted_agents(workspace: Workspace) -> list[str]:
    """Return the agents of ``workspace`` that have a session which says that it has ended, and whose client
    may go on. Raises `JournalError`."""
    view, texts = ProcessView(workspace), catalogue(workspace.config.language)
    agents: dict[str, None] = {}
    for row in workspace.session_zone.heads():
        agent = row.path.partition("/")[0]
        has_ended = agent not in agents and not is_unfinished(row) and not is_subagent_step(row)
        if has_ended and find_doubt(workspace, row, texts, view):
            agents[agent] = None
    return [*agents]


def prove_paused(
    workspace: Workspace, agents: Iterable[str], *, patience: float = PATIENCE
) -> list[StopProof]:
    """Wait, for at most ``patience`` seconds, until all sessions of ``agents`` in ``workspace``, which were
    told to pause, are paused or have ended. Returns for each agent what shows it. Raises `JournalError`."""
    until = time.monotonic() + patience
    return _for_each(agents, lambda agent: _wait_until_paused(workspace, agent, until))


def check_paused(workspace: Workspace, agent: str, language: Language | None = None) -> StopProof:
    """Return whether ``agent`` in ``workspace``, after a request to pause, is proven to be paused.

    Each of its sessions must be paused, proven to have ended, or run by nobody. ``language``: the language
    of the texts, default: the workspace's. Raise `JournalError`.
    """
    texts = catalogue(language or workspace.config.language)
    proof = StopProof(agent, True, texts("stop.idle"))
    view = ProcessView(workspace)
    for last in workspace.session_zone.heads(agent):
        if is_subagent_step(last):
            continue
        if not is_unfinished(last):
            if doubt := find_doubt(workspace, last, texts, view):
                return StopProof(agent, False, doubt)
            continue
        if StepDetail.of(last).status == "paused":
            proof = StopProof(agent, True, texts("stop.paused", row=last.seq))
        elif is_abandoned(workspace, last):
            proof = StopProof(agent, True, texts("stop.no_process", row=last.seq))
        else:
            return StopProof(agent, False, texts("stop.no_answer", row=last.seq))
    return proof


def end_agents(
    workspace: Workspace, agents: Iterable[str], by: str, *, patience: float = PATIENCE
) -> list[StopProof]:
    """End the sessions of ``agents`` in ``workspace``, as ``by`` (``human:NAME``). A tool that is still
    running after a second is cut off. Returns for each agent, after about ``patience`` seconds at most, what
    shows that it has stopped. Raises `InvalidAgentId`, `UnknownAgent`, `SessionNotFound`, `JournalError`."""

    def end(agent: str) -> StopProof:
        # A client may end its session before its process has ended, which is what counts.
        tool_patience = min(_TOOL_SECONDS, patience)
        proof = stop_client(workspace, agent, by, patience=tool_patience, process_patience=patience)
        return proof if proof.is_proven else stop_client(workspace, agent, by, patience=patience)

    return _for_each(agents, end)


def _for_each(agents: Iterable[str], stop: Callable[[str], StopProof]) -> list[StopProof]:
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="watchroom-stop") as threads:
        return list(threads.map(stop, agents))


def _wait_until_paused(workspace: Workspace, agent: str, until: float) -> StopProof:
    changes = workspace.journal.changes()
    try:
        while True:
            proof = check_paused(workspace, agent)
            left = until - time.monotonic()
            if proof.is_proven or left <= 0:
                return proof
            changes.wait(left)
    finally:
        changes.close()
