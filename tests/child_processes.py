"""The child processes of a test."""

from __future__ import annotations

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
