"""Starts commands beneath a supervisor, as Landlock and commands without a sandbox need it."""

from __future__ import annotations

import marshal
import os
import sys
import tempfile
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from watchroom.disk import Parts
from watchroom.sandbox import supervisor
from watchroom.sandbox.backend import (
    LaunchDescriptors,
    LaunchRequest,
    LaunchSpec,
    SandboxBackend,
    command_environment,
)
from watchroom.sandbox.cgroups import CgroupFactory

if TYPE_CHECKING:
    from watchroom.sandbox.supervisor import CallArguments, Job

_FAILURE: Final = b'"why": "'
_CRASHED: Final = 1
_MAIN: Final = (
    "import sys; sys.path.append(sys.argv[1]); import supervisor; sys.exit(supervisor.main(int(sys.argv[2])))"
)
"""As a module, so that Python need not compile it each time."""


class Restrictions(NamedTuple):
    """What a command is held to: the descriptor of Landlock's rules, a seccomp filter's code, the calls that
    this passes on to the supervisor, and the paths that stay read-only in the command's folder."""

    rules: int
    filter_code: bytes
    notified: dict[int, CallArguments]
    protected: tuple[Parts, ...] = ()


UNRESTRICTED: Final = Restrictions(-1, b"", {})


def is_supported() -> bool:
    """Whether a supervisor could find all that a command leaves behind."""
    return sys.platform == "linux" and os.path.exists(f"/proc/self/task/{os.getpid()}/children")


def create_temporary_folder(descriptors: LaunchDescriptors) -> str:
    """A new folder for what a command needs only while it runs; it is removed with ``descriptors``."""
    folder = os.path.realpath(tempfile.mkdtemp(prefix="watchroom-"))
    descriptors.add_cleanup(lambda: supervisor.remove_tree(folder))
    return folder


def open_folder(path: str, descriptors: LaunchDescriptors) -> int:
    """A descriptor of the folder ``path`` that the new process inherits by ``descriptors``. Raises
    OSError."""
    return descriptors.add_inherited(os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW))


class SupervisedBackend(SandboxBackend):
    """Runs commands beneath a supervisor. ``call_numbers`` are those of seccomp and capset here; ``cgroups``
    creates control groups."""

    def __init__(self, cgroups: CgroupFactory, call_numbers: tuple[int, int]) -> None:
        super().__init__(cgroups)
        self._call_numbers = call_numbers

    def start_failure(self, status: bytes, exit_code: int, stderr: str) -> str | None:
        """What the supervisor reported (``status``) of a command that never ran, None if it did; where the
        supervisor itself failed with this ``exit_code``, the last line of ``stderr``."""
        if _FAILURE in status:
            return status.partition(_FAILURE)[2].partition(b'"')[0].decode(errors="replace")
        if b'"exit-code"' in status or exit_code != _CRASHED:
            return None
        return stderr.strip().rpartition("\n")[2] or str(exit_code)

    def _supervise(
        self, request: LaunchRequest, path: str, folder: int, temporary: str, restrictions: Restrictions
    ) -> LaunchSpec:
        """How to start the supervisor with the command, in the folder at ``path``, of which ``folder`` is a
        descriptor."""
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
