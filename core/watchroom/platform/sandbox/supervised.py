"""Starts commands beneath a supervisor process: with Landlock, or without a sandbox."""

from __future__ import annotations

import marshal
import os
import sys
import tempfile
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from watchroom.errors import NoSandbox
from watchroom.platform.disk import Parts
from watchroom.platform.sandbox import supervisor
from watchroom.platform.sandbox.backend import (
    LaunchDescriptors,
    LaunchRequest,
    LaunchSpec,
    SandboxBackend,
    command_environment,
    resolve_command_folder,
)
from watchroom.platform.sandbox.limits import CgroupFactory
from watchroom.platform.sandbox.seccomp import shared_calls

if TYPE_CHECKING:
    from watchroom.platform.sandbox.supervisor import CallArguments, Job

_FAILURE: Final = b'"why": "'
_CRASHED: Final = 1
_MAIN: Final = (
    "import sys; sys.path.append(sys.argv[1]); import supervisor; sys.exit(supervisor.main(int(sys.argv[2])))"
)
"""Starts the supervisor as an imported module, so that Python caches its bytecode."""


class Restrictions(NamedTuple):
    """The restrictions of a command.

    - ``rules``: the descriptor of Landlock's rules, -1 for none.
    - ``filter_code``: the code of the seccomp filter.
    - ``notified``: the system calls that the filter passes to the supervisor.
    - ``protected``: paths in the command's folder that stay read-only.
    """

    rules: int
    filter_code: bytes
    notified: dict[int, CallArguments]
    protected: tuple[Parts, ...] = ()


UNRESTRICTED: Final = Restrictions(-1, b"", {})


def is_supported() -> bool:
    """Return whether a supervisor can find all processes left behind by a command."""
    return sys.platform == "linux" and os.path.exists(f"/proc/self/task/{os.getpid()}/children")


def create_temporary_folder(descriptors: LaunchDescriptors) -> str:
    """Create a temporary folder for a command. It is removed when ``descriptors`` are closed."""
    folder = os.path.realpath(tempfile.mkdtemp(prefix="watchroom-"))
    descriptors.add_cleanup(lambda: supervisor.remove_tree(folder))
    return folder


def open_inherited_folder(path: str, descriptors: LaunchDescriptors) -> int:
    """Open the folder ``path`` for the new process to inherit. Return the descriptor. Raise OSError."""
    return descriptors.add_inherited(os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW))


class SupervisedBackend(SandboxBackend):
    """Runs commands beneath a supervisor.

    - ``cgroups``: creates control groups.
    - ``call_numbers``: the numbers of the system calls seccomp and capset on this machine.
    """

    def __init__(self, cgroups: CgroupFactory, call_numbers: tuple[int, int]) -> None:
        super().__init__(cgroups)
        self._call_numbers = call_numbers

    def start_failure(self, status: bytes, exit_code: int, stderr: str) -> str | None:
        """Return the reason why the command never ran, None if it ran. The reason is in the supervisor's
        ``status``, or in the last line of ``stderr`` if the supervisor itself failed with ``exit_code`` 1."""
        if _FAILURE in status:
            return status.partition(_FAILURE)[2].partition(b'"')[0].decode(errors="replace")
        if b'"exit-code"' in status or exit_code != _CRASHED:
            return None
        return stderr.strip().rpartition("\n")[2] or str(exit_code)

    def _supervise(
        self, request: LaunchRequest, path: str, folder: int, temporary: str, restrictions: Restrictions
    ) -> LaunchSpec:
        """Return the start of the supervisor with the command. ``folder``: a descriptor of ``path``."""
        descriptors = request.descriptors
        status, status_write = descriptors.output_pipe()
        start, start_read = descriptors.input_pipe()
        job: Job = {
            "argv": ("/bin/sh", "-c", request.command),
            "environment": command_environment(path, temporary),
            "temporary": temporary,
            "writable": (path, temporary),
            "protected": tuple(os.path.join(path, *parts) for parts in restrictions.protected),
            "notified": restrictions.notified,
            "filter_code": restrictions.filter_code,
            "call_numbers": self._call_numbers,
            "status_fd": status_write,
            "start_fd": start_read,
            "rules": restrictions.rules,
            "folder": folder,
        }
        job_fd = descriptors.add_data(marshal.dumps(cast("dict[str, Any]", job)))
        folder_of_main = os.path.dirname(supervisor.__file__)
        argv = (sys.executable, "-I", "-S", "-c", _MAIN, folder_of_main, str(job_fd))
        return LaunchSpec(argv, status, start, is_supervised=True)


class UnsandboxedBackend(SupervisedBackend):
    """Runs commands without isolation: a person approved the command on a machine without a sandbox.

    The command has all rights of its user. These limits remain: its timeout, the size of its output, its
    resource limits, a clean environment, and no additional rights. All of its processes end with it. This
    needs Linux: on other systems, no command runs without a sandbox.

    ``cgroups``: creates control groups. Raises `NoSandbox` if the end of all processes of a command cannot be
    guaranteed.
    """

    name = "none"

    def __init__(self, cgroups: CgroupFactory) -> None:
        calls = shared_calls()
        if calls is None or not is_supported():
            raise NoSandbox
        super().__init__(cgroups, calls.call_numbers)

    def prepare(self, request: LaunchRequest) -> LaunchSpec:
        """Return the start of the command of ``request``. Raise the errors of `SandboxBackend.prepare`."""
        path = resolve_command_folder(request.folder)
        fd = open_inherited_folder(path, request.descriptors)
        temporary = create_temporary_folder(request.descriptors)
        return self._supervise(request, path, fd, temporary, UNRESTRICTED)
