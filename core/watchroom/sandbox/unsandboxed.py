"""No sandbox: how a command runs that a person approved on a machine that has none.

It may do whatever its user may. What still limits it: its time, the size of its output, what its processes
may use, and that all of them end with it; it gets none of our environment, and gains no right. This needs
Linux; elsewhere nothing runs without a sandbox.
"""

from __future__ import annotations

from watchroom.sandbox.backend import LaunchRequest, LaunchSpec, resolve_command_folder
from watchroom.sandbox.cgroups import CgroupFactory
from watchroom.sandbox.errors import NoSandbox
from watchroom.sandbox.seccomp import shared_calls
from watchroom.sandbox.supervised import (
    UNRESTRICTED,
    SupervisedBackend,
    create_temporary_folder,
    is_supported,
    open_folder,
)


class UnsandboxedBackend(SupervisedBackend):
    """Runs commands beneath a supervisor, without isolation. ``cgroups`` creates their control groups. Raises
    `NoSandbox` where it cannot be guaranteed that all of a command ends."""

    name = "none"

    def __init__(self, cgroups: CgroupFactory) -> None:
        calls = shared_calls()
        if calls is None or not is_supported():
            raise NoSandbox
        super().__init__(cgroups, calls.call_numbers)

    def prepare(self, request: LaunchRequest) -> LaunchSpec:
        """How to start the command of ``request``. Raises as every backend does."""
        path = resolve_command_folder(request.folder)
        fd = open_folder(path, request.descriptors)
        temporary = create_temporary_folder(request.descriptors)
        return self._supervise(request, path, fd, temporary, UNRESTRICTED)
