"""The panes of tmux, and the check whether a person or a program types in the tmux session of this
process."""

from __future__ import annotations

import errno
import os
import shlex
import stat
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from watchroom.agents.clients.tmux_pane import TmuxPane, find_pane

_RECENT_SECONDS: Final = 2
"""Seconds within which typing counts as recent. The check adds one second, because tmux reports complete
seconds."""
_ANSWER_SECONDS: Final = 2.0


def has_recent_typing(environ: Mapping[str, str]) -> bool:
    """Return whether a person typed recently in a client of the tmux session in ``environ``.

    Keys sent by a program (``send-keys``) do not count. Return True outside of tmux, and if tmux does not
    answer: the check is a tripwire, not a proof.
    """
    socket, _, rest = environ.get("TMUX", "").partition(",")
    session = rest.rpartition(",")[2]
    if not socket or not session.isdigit():
        return True
    command = ["tmux", "-S", socket, "list-clients", "-t", f"${session}", "-F", "#{client_activity}"]
    try:
        told = subprocess.run(command, capture_output=True, timeout=_ANSWER_SECONDS, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return True
    times = [int(each) for each in told.split() if each.isdigit()]
    return any(time.time() - each < _RECENT_SECONDS + 1 for each in times)


class TmuxError(Exception):
    """tmux does not answer, or refuses a command. The text has the reason."""


def find_server(environ: Mapping[str, str]) -> str:
    """Return the socket of the server in which a process with the environment ``environ`` runs, empty outside
    of tmux."""
    pane = find_pane(environ)
    return pane.socket if pane is not None else ""


def list_panes(socket: str) -> dict[str, int]:
    """Return the panes of the server at ``socket``, each with the process that it runs. Panes whose process
    has ended are left out. Raise `TmuxError`, OSError."""
    lines = _ask(socket, ("list-panes", "-a", "-F", "#{pane_id} #{pane_pid} #{pane_dead}")).splitlines()
    panes = (line.split() for line in lines)
    return {pane[0]: int(pane[1]) for pane in panes if len(pane) == 3 and pane[2] == "0"}


def find_running_pane(panes: Mapping[str, int], ancestors: Iterable[int]) -> str | None:
    """Return the pane of ``panes`` (see `list_panes`) in which a process runs, None if it is in none of them.

    ``ancestors``: the process and its ancestors, nearest first.
    """
    by_process = {process: pane for pane, process in panes.items()}
    return next((by_process[each] for each in ancestors if each in by_process), None)


def show_pane(pane: TmuxPane) -> None:
    """Show ``pane`` in the terminal of this process, which runs in the same server. Raise `TmuxError`,
    OSError."""
    # The pane may be in another session.
    words = [("select-window",), (";", "select-pane"), (";", "switch-client")]
    _ask(pane.socket, [part for each in words for part in (*each, "-t", pane.id)])


def attach_command(pane: TmuxPane) -> str:
    """Return the command line that shows ``pane`` in a terminal outside of its server."""
    return shlex.join(["tmux", "-S", pane.socket, "attach", "-t", pane.id])


def _ask(socket: str, words: Sequence[str]) -> str:
    """Return the output of the command ``words`` of the server at ``socket``. Raise `TmuxError`, OSError."""
    found = os.stat(socket)
    if not stat.S_ISSOCK(found.st_mode) or found.st_uid != os.getuid():
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), socket)
    try:
        done = subprocess.run(
            ["tmux", "-S", socket, *words], capture_output=True, timeout=_ANSWER_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise TmuxError(str(error)) from error
    if done.returncode:
        raise TmuxError(done.stderr.decode("utf-8", "replace").strip())
    return done.stdout.decode("utf-8", "replace")
