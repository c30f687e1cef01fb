"""The processes of clients: identifies them, sends them signals, and finds the client above this process."""

from __future__ import annotations

import errno
import os
import re
import signal
from collections.abc import Mapping
from typing import Final, NamedTuple

from watchroom.agents.clients.configuration import AGENT_VARIABLE, format_mark
from watchroom.platform import Platform, ProcessInfo, detect_platform

_SHELLS: Final = ("sh", "dash", "bash", "zsh")
_HAS_COMMAND: Final = re.compile(r"-[a-z]*c$")
"""Matches the option with which a shell gets a command."""
_MAX_ANCESTORS: Final = 32
_SERVE: Final = "mcp"
_AGENT: Final = "--agent"
_CLIENT: Final = "--client"
_PROGRAMS: Final = ("watchroom", "watchroom_cli.main")


class ClientProcess(NamedTuple):
    """The process ``pid`` that started at ``started``, according to the clock of ``platform``.

    The system reuses process ids. The id and the start time together identify a process.
    """

    pid: int
    started: float
    platform: Platform

    @property
    def is_alive(self) -> bool:
        """Whether the process is running. A zombie does not count as running. If the system does not answer,
        the process counts as running."""
        return self.platform.is_running(self.pid, self.started)

    def send_signal(self, number: signal.Signals) -> bool:
        """Send the signal ``number`` if it is certain that the process is running. Return whether it was
        sent. Raise PermissionError."""
        return self.platform.send_signal(self.pid, self.started, number)

    def wait_gone(self, seconds: float) -> bool:
        """Wait until the process has ended, at most ``seconds``. Return whether it has ended."""
        return self.platform.wait_ended(self.pid, self.started, seconds)


def client_above(platform: Platform, pid: int) -> ClientProcess:
    """Return the client that started the process ``pid``, directly or through shells that run a command. Its
    start time is 0 if it has ended. Raise OSError if the system does not answer."""
    above = platform.parent(pid)
    while (shell := platform.process(above)) is not None and _runs_command(shell):
        above = shell.parent
    started = platform.find_start(above)
    if started is None:
        raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))
    return ClientProcess(above, started, platform)


def ancestors_of(platform: Platform, pid: int) -> list[int]:
    """Return the process ``pid`` and its ancestors, nearest first. Raise OSError if the system does not
    answer."""
    found: list[int] = []
    while pid > 1 and pid not in found and len(found) < _MAX_ANCESTORS:
        found.append(pid)
        pid = platform.parent(pid)
    return found


def seconds_since_start(platform: Platform, pid: int) -> float:
    """Return the seconds since the start of the process ``pid``, or of its outermost shell ancestor that runs
    a command. 0 if unknown. Raise OSError if the system does not answer."""
    first, above = pid, platform.process(platform.parent(pid))
    while above is not None and _runs_command(above):
        first, above = above.pid, platform.process(above.parent)
    clock, started = platform.process_clock(), platform.process_start(first)
    return max(0.0, (clock - started) / os.sysconf("SC_CLK_TCK")) if clock and started else 0.0


def _runs_command(process: ProcessInfo) -> bool:
    """Return whether ``process`` is a shell that runs a command. An interactive shell, or a shell that runs a
    script, does not belong to a client."""
    name, *options = process.arguments or ("",)
    return os.path.basename(name) in _SHELLS and _HAS_COMMAND.match((*options, "")[0]) is not None


def find_parent_agent(
    root: str, environment: Mapping[str, str], platform: Platform | None = None
) -> str | None:
    """Return the agent whose client is an ancestor of this process, as for commands in the agent's shell.
    None if there is no such client, or if the system does not list its processes.

    If the client works as one of several agents, the result names all of them. The agent is found in a
    variable of ``environment``. Otherwise, an ancestor of this process has also started a server of the agent
    for the workspace at ``root``. ``platform``: default the platform of this machine.

    This is only a hint: a process of the same user can remove the variable, or have other ancestors.
    """
    named = environment.get(AGENT_VARIABLE)
    if named:
        return named
    try:
        processes = {each.pid: each for each in (platform or detect_platform()).processes()}
    except OSError:
        return None
    return _agent_of_ancestor(os.path.realpath(root), processes, os.getpid())


def _agent_of_ancestor(root: str, processes: Mapping[int, ProcessInfo], process: int) -> str | None:
    ancestors = set()
    while process in processes and process not in ancestors:
        ancestors.add(process)
        process = processes[process].parent
    # Process 1 is an ancestor of every process.
    servers = (each for each in processes.values() if each.parent in ancestors and each.parent > 1)
    return next((agent for each in servers if (agent := _served_agent(each, root))), None)


def _served_agent(process: ProcessInfo, root: str) -> str | None:
    """Return the agents that ``process`` serves in the workspace at ``root``, as `format_mark` writes them.
    None if it is not a server of that workspace."""
    arguments = process.arguments
    starts = [
        position + 1
        for position, each in enumerate(arguments[:-1])
        if os.path.basename(each) in _PROGRAMS and arguments[position + 1] == _SERVE
    ]
    if not starts or not {_AGENT, _CLIENT}.intersection(arguments[:-1]):
        return None
    paths = (os.path.join(process.folder, each) for each in arguments[starts[0] + 1 :])
    is_here = any(os.path.realpath(each) == root for each in paths)
    named, clients = (
        [arguments[at + 1] for at, each in enumerate(arguments[:-1]) if each == option]
        for option in (_AGENT, _CLIENT)
    )
    return format_mark(named, "".join(clients[-1:])) if is_here else None
