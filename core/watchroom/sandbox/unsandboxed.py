"""No backend: how a command runs that a person approved of on a machine that has none.

It may do whatever its user may. What still holds it: its time, a cap on what it prints, what its processes
may use, and that all of them end with it; it is told no secret of our environment, and gains no right. This
needs Linux; elsewhere nothing runs without a backend.
"""

from __future__ import annotations

import os

from watchroom.sandbox.backend import Launch, LaunchDescriptors, NetworkAccess, resolve_command_folder
from watchroom.sandbox.cgroups import CgroupFactory
from watchroom.sandbox.errors import NoSandbox
from watchroom.sandbox.limits import ResourceLimits
from watchroom.sandbox.seccomp import asking
from watchroom.sandbox.supervised_launch import NOTHING, is_possible, launch, start_failure, temporary_folder


class UnsandboxedBackend:
    """Runs commands beneath a supervisor, behind nothing."""

    name = "none"
    counts_own_processes = False
    protects_git = False
    supports_proxy = False

    def __init__(self, groups: CgroupFactory) -> None:
        """Raises `NoSandbox` where it cannot be seen to that all of a command descriptors."""
        asked = asking()
        if asked is None or not is_possible():
            raise NoSandbox
        self.groups = groups
        self._numbers = asked[1]

    def launch(
        self,
        command: str,
        folder: str,
        limits: ResourceLimits,
        network: NetworkAccess,
        descriptors: LaunchDescriptors,
    ) -> Launch:
        path = resolve_command_folder(folder)
        fd = descriptors.add_inherited(os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW))
        return launch(command, (path, fd), temporary_folder(descriptors), NOTHING, self._numbers, descriptors)

    def start_failure(self, told: bytes, exit_code: int, stderr: str) -> str | None:
        return start_failure(told, exit_code, stderr)
