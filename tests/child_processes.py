"""The processes that a test starts."""

from __future__ import annotations

import time
from contextlib import suppress

import psutil


def children(part: str = "", *, are_all: bool = False) -> set[psutil.Process]:
    """Return the children of this process.

    - ``part``: a part of their command. Then children that have ended, which have no command, are left out.
    - ``are_all``: whether to include the children of children.
    """
    found: set[psutil.Process] = set()
    for each in psutil.Process().children(recursive=are_all):
        with suppress(psutil.NoSuchProcess):
            if not part or part in " ".join(each.cmdline()):
                found.add(each)
    return found


def is_running(pid: int) -> bool:
    """Return whether process ``pid`` exists and has not ended."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def ends(pid: int, seconds: float) -> bool:
    """Return whether process ``pid`` ends within ``seconds``. It need not be a child of this process."""
    deadline = time.monotonic() + seconds
    while is_running(pid):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True
