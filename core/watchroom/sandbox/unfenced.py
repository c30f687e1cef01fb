"""No fence: how a command runs that a person approved of on a machine that has none.

It may do whatever its user may. What still holds it: its time, a cap on what it prints, what its processes
may use, and that all of them end with it; it is told no secret of our environment, and gains no right. This
needs Linux; elsewhere nothing runs without a fence.
"""

from __future__ import annotations

import os

from watchroom.sandbox.errors import NoSandbox
from watchroom.sandbox.fences import Ends, Launch, Network, checked_folder
from watchroom.sandbox.groups import Groups
from watchroom.sandbox.limits import Limits
from watchroom.sandbox.seccomp import asking
from watchroom.sandbox.supervised import NOTHING, is_possible, launch, temporary_folder, why_not_started


class Unfenced:
    """Runs commands beneath a supervisor, behind nothing."""

    name = "none"
    counts_apart = False
    holds_git = False
    reaches_hosts = False

    def __init__(self, groups: Groups) -> None:
        """Raises `NoSandbox` where it cannot be seen to that all of a command ends."""
        asked = asking()
        if asked is None or not is_possible():
            raise NoSandbox
        self.groups = groups
        self._numbers = asked[1]

    def launch(self, command: str, folder: str, limits: Limits, network: Network, ends: Ends) -> Launch:
        path = checked_folder(folder)
        fd = ends.theirs(os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW))
        return launch(command, (path, fd), temporary_folder(ends), NOTHING, self._numbers, ends)

    def why_not_started(self, told: bytes, exit_code: int, stderr: str) -> str | None:
        return why_not_started(told, exit_code, stderr)
