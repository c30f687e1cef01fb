"""Finds the attached agent beneath whose client this process runs, as the commands of its shell do.

This is a hint and no protection: what runs as the same user can remove the variable from its environment, or
start a process that has other ancestors.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from watchroom.clients.configuration import AGENT_VARIABLE, format_mark
from watchroom.platforms import Platform, ProcessInfo, detect_platform

_SERVE: Final = "mcp"
_AGENT: Final = "--agent"
_PROGRAMS: Final = ("watchroom", "watchroom_tui.cli")


def find_parent_agent(
    root: str, environment: Mapping[str, str], platform: Platform | None = None
) -> str | None:
    """Return the id of the agent beneath whose client this process runs, None if there is none. If the client
    works as one of several agents, all are named. ``platform``: the operating system (default: this
    machine's).

    Either a variable of ``environment`` names it, which the client sets, or an ancestor of this process has
    also started a server of that agent for the workspace at ``root``.
    """
    named = environment.get(AGENT_VARIABLE)
    if named:
        return named
    processes = {each.pid: each for each in (platform or detect_platform()).processes()}
    return _agent_of_ancestor(os.path.realpath(root), processes, os.getpid())


def _agent_of_ancestor(root: str, processes: Mapping[int, ProcessInfo], process: int) -> str | None:
    ancestors = set()
    while process in processes and process not in ancestors:
        ancestors.add(process)
        process = processes[process].parent
    # The first process of all has started everything, clients too.
    servers = (each for each in processes.values() if each.parent in ancestors and each.parent > 1)
    return next((agent for each in servers if (agent := _served_agent(each, root))), None)


def _served_agent(process: ProcessInfo, root: str) -> str | None:
    """Return the agents of which a process serves one for the workspace at ``root``, as their mark names
    them; None if it is no such server."""
    arguments = process.arguments
    starts = [
        position + 1
        for position, each in enumerate(arguments[:-1])
        if os.path.basename(each) in _PROGRAMS and arguments[position + 1] == _SERVE
    ]
    if not starts or _AGENT not in arguments[:-1]:
        return None
    paths = (os.path.join(process.folder, each) for each in arguments[starts[0] + 1 :])
    is_here = any(os.path.realpath(each) == root for each in paths)
    named = [arguments[at + 1] for at, each in enumerate(arguments[:-1]) if each == _AGENT]
    return format_mark(named) if is_here else None
