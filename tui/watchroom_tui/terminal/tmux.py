"""Detect whether a person types in the tmux of this process, or a program sends keys to it."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Mapping
from typing import Final

_RECENT_SECONDS: Final = 2
"""Seconds within which typing counts as recent. tmux reports whole seconds."""
_ANSWER_SECONDS: Final = 2.0


def has_recent_typing(environ: Mapping[str, str]) -> bool:
    """Return whether a client of the tmux session in ``environ`` was typed into just now.

    Keys that a program sends (``send-keys``) do not count. True outside of tmux, and if tmux does not answer:
    the check is a tripwire, not a proof.
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
