"""Finds the attached agent beneath whose client this process runs, as the commands of its shell do.

This is a hint and no protection: what runs as the same user can remove the variable from its environment, or
start a process that has other ancestors.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Final, NamedTuple

from watchroom.clients.configuration import AGENT_VARIABLE

_SERVE: Final = "mcp"
_AGENT: Final = "--agent"
_PROGRAMS: Final = ("watchroom", "watchroom_tui.cli")
_PS: Final = ("ps", "-axww", "-o", "pid=,ppid=,command=")
_PS_SECONDS: Final = 5.0


class _Process(NamedTuple):
    parent: int
    arguments: tuple[str, ...]
    folder: str
    """Its working directory; empty where that is not known."""


def find_parent_agent(root: str, environment: Mapping[str, str]) -> str | None:
    """The id of the agent beneath whose client this process runs, None where there is none.

    Either a variable of ``environment`` names it, which the client sets, or an ancestor of this process has
    also started a server of that agent for the workspace at ``root``.
    """
    named = environment.get(AGENT_VARIABLE)
    return named or _agent_of_ancestor(os.path.realpath(root), _processes(), os.getpid())


def _agent_of_ancestor(root: str, processes: Mapping[int, _Process], process: int) -> str | None:
    ancestors = set()
    while process in processes and process not in ancestors:
        ancestors.add(process)
        process = processes[process].parent
    # The first process of all has started everything, clients too.
    servers = (each for each in processes.values() if each.parent in ancestors and each.parent > 1)
    return next((agent for each in servers if (agent := _served_agent(each, root))), None)


def _served_agent(process: _Process, root: str) -> str | None:
    """The agent that a process serves for the workspace at ``root``; None if it is no such server."""
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
    return arguments[arguments.index(_AGENT) + 1] if is_here else None


def _processes() -> dict[int, _Process]:
    """All processes that this one may see, by number; none where the system does not list them."""
    return dict(_from_kernel() if sys.platform.startswith("linux") else _from_ps())


def _from_kernel() -> Iterator[tuple[int, _Process]]:
    for name in os.listdir("/proc"):
        # A process may end while it is read.
        with suppress(OSError, ValueError):
            number = int(name)
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                # A program's name may have blanks and brackets.
                parent = int(file.read().rpartition(")")[2].split()[1])
            with open(f"/proc/{name}/cmdline", encoding="utf-8", errors="surrogateescape") as file:
                arguments = tuple(file.read().split("\0"))
            yield number, _Process(parent, arguments, _folder(name))


def _folder(name: str) -> str:
    try:
        return os.readlink(f"/proc/{name}/cwd")
    except OSError:
        return ""


def _from_ps() -> Iterator[tuple[int, _Process]]:
    try:
        listed = subprocess.run(_PS, capture_output=True, text=True, timeout=_PS_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return
    for line in listed.stdout.splitlines():
        number, parent, *arguments = line.split()
        yield int(number), _Process(int(parent), tuple(arguments), "")
