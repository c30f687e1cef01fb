"""The agents at work at this moment, and the folders that they work in."""

from __future__ import annotations

import os
from typing import NamedTuple

from watchroom.agents.clients.agent_claims import find_working
from watchroom.agents.clients.client_traces import ProcessView, find_trace
from watchroom.features.budgets.rows import is_subagent_step
from watchroom.features.sessions.rows import is_unfinished, presence_of
from watchroom.kernel.rules.details import get_text
from watchroom.workspace import Workspace

_FOLDER = "cwd"
"""The name of the working folder in the detail of a session's first row."""


class AgentAtWork(NamedTuple):
    """An agent and the real path of the folder in which its client works, empty if unknown."""

    agent: str
    folder: str


def find_agents_at_work(workspace: Workspace) -> list[AgentAtWork]:
    """Return the agents whose clients run, each once. Raise `JournalError`, OSError."""
    platform, view = workspace.platform, ProcessView(workspace)
    alive = {each.id for each in workspace.journal.presence.all() if each.is_alive}
    found: dict[str, str] = {}
    for step in workspace.session_zone.heads():
        if not is_unfinished(step) or is_subagent_step(step):
            continue
        agent, trace = step.path.partition("/")[0], find_trace(workspace, step.path)
        if trace is None or view.is_elsewhere(trace):
            pid = 0
            is_alive = presence_of(step) in alive
        else:
            pid = trace.pid
            is_alive = platform.is_running(pid, trace.started)
        if is_alive:
            first = workspace.journal.version("session", step.path, 1)
            folder = get_text(first.detail, _FOLDER) if first is not None else ""
            found[agent] = _folder_of(workspace, pid) or folder
    for each in find_working(workspace.root, platform):
        found[each.agent] = _folder_of(workspace, each.pid) or found.get(each.agent, "")
    return [AgentAtWork(agent, os.path.realpath(folder) if folder else "") for agent, folder in found.items()]


def _folder_of(workspace: Workspace, pid: int) -> str:
    """Return the working directory of a process, empty if unknown."""
    try:
        process = workspace.platform.process(pid) if pid else None
    except OSError:
        return ""
    return process.folder if process is not None else ""
