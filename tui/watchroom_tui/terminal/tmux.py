"""The panes of tmux, and the check whether a person or a program types in the tmux session of this
process."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Mapping
from typing import Final, NamedTuple

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


class TmuxPane(NamedTuple):
    """A pane: the ``socket`` of its server, and its ``id`` on the server, such as ``%3``."""

    socket: str
    id: str


def find_pane(environ: Mapping[str, str]) -> TmuxPane | None:
    """Return the pane in which a process with the environment ``environ`` was started, None if it was started
    outside of tmux."""
    socket, pane = environ.get("TMUX", "").partition(",")[0], environ.get("TMUX_PANE", "")
    is_pane = pane.startswith("%") and pane[1:].isdigit()
    return TmuxPane(socket, pane) if socket and is_pane else None


def is_in_server(pane: TmuxPane, environ: Mapping[str, str]) -> bool:
    """Return whether a process with the environment ``environ`` runs in the server of ``pane``."""
    return environ.get("TMUX", "").partition(",")[0] == pane.socket


def select_pane(pane: TmuxPane, environ: Mapping[str, str]) -> str | None:
    """Select ``pane`` in its session, and show it in the terminal of this process if both are in the same
    server. Return the reason of a failure, None on success."""
    command = ["tmux", "-S", pane.socket, "select-window", "-t", pane.id, ";", "select-pane", "-t", pane.id]
    if is_in_server(pane, environ):
        # The pane may be in another session.
        command += [";", "switch-client", "-t", pane.id]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_ANSWER_SECONDS, check=False)
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    return done.stderr.decode("utf-8", "replace").strip() if done.returncode else None
