"""The interface of a kind of sandbox, and the parts of the machine that are visible in all kinds."""

from __future__ import annotations

import os
import socket
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, Final, NamedTuple, TypeAlias

from watchroom.errors import FolderNotFound, FolderTooWide
from watchroom.platform.sandbox.limits import CgroupFactory, ResourceLimits
from watchroom.platform.sandbox.system_folders import is_within

PROGRAM_FOLDERS: Final = ("/usr", "/bin", "/lib", "/lib32", "/lib64", "/sbin")
"""Programs and their libraries."""
SETTINGS_FILES: Final = ("/etc/alternatives", "/etc/ld.so.cache", "/etc/localtime", "/etc/os-release")
"""System settings that programs need. None of them is secret. Each path costs time at every start."""
NETWORK_FILES: Final = (
    "/etc/ca-certificates/extracted",
    "/etc/gai.conf",
    "/etc/hosts",
    "/etc/nsswitch.conf",
    "/etc/pki/ca-trust/extracted",
    "/etc/pki/tls/certs",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
)
"""Files that programs need to connect to other hosts."""
TEMPORARY_FOLDER: Final = "/tmp"  # noqa: S108  # private to the sandbox

_NEVER_WITHIN: Final = ("/proc", "/sys")


class LaunchDescriptors:
    """The file descriptors of one launch: some are inherited by the new process, the others stay in this
    process."""

    def __init__(self) -> None:
        self._inherited: list[int] = []
        self._own: list[int] = []
        self._cleanups: list[Callable[[], None]] = []

    def add_cleanup(self, callback: Callable[[], None]) -> None:
        """Call ``callback`` when the command has ended."""
        self._cleanups.append(callback)

    def add_inherited(self, fd: int) -> int:
        """Let the new process inherit ``fd``. It is closed here after the start. Return ``fd``."""
        self._inherited.append(fd)
        return fd

    def add_data(self, data: bytes) -> int:
        """Let the new process inherit a file that contains ``data``. Return its descriptor."""
        fd = self.add_inherited(os.memfd_create("watchroom"))
        os.write(fd, data)
        os.lseek(fd, 0, os.SEEK_SET)
        return fd

    def add_own(self, fd: int) -> int:
        """Close ``fd`` when the command has ended. Return ``fd``."""
        self._own.append(fd)
        return fd

    def output_pipe(self) -> tuple[int, int]:
        """Create a pipe from the new process. Return our end and the inherited end."""
        read, write = os.pipe()
        return self.add_own(read), self.add_inherited(write)

    def input_pipe(self) -> tuple[int, int]:
        """Create a pipe to the new process. Return our end and the inherited end."""
        read, write = os.pipe()
        return self.add_own(write), self.add_inherited(read)

    def socket_pair(self) -> tuple[int, int]:
        """Create a connected pair of sockets. Return our end and the inherited end."""
        ours, theirs = socket.socketpair()
        return self.add_own(ours.detach()), self.add_inherited(theirs.detach())

    def inherited(self) -> tuple[int, ...]:
        """Return the descriptors that the new process inherits."""
        return tuple(self._inherited)

    def close_inherited(self) -> None:
        """Close our copies of the inherited descriptors."""
        while self._inherited:
            os.close(self._inherited.pop())

    def close(self) -> None:
        """Close all descriptors, then call the callbacks of `add_cleanup`."""
        self.close_inherited()
        while self._own:
            os.close(self._own.pop())
        while self._cleanups:
            self._cleanups.pop()()


class LaunchSpec(NamedTuple):
    """The start of a command in a sandbox.

    - ``argv``: the program and its arguments.
    - ``status_fd``: the sandbox reports the first process here, as ``"child-pid": N``. All other processes of
      the command descend from it. -1: the started process is the first process, sets its own limits, and its
      process group is killed.
    - ``start_fd``: the first process waits for one byte on this pipe. -1: it does not wait.
    - ``is_supervised``: a second byte makes the sandbox end all processes, because the kernel does not do it.
    """

    argv: tuple[str, ...]
    status_fd: int = -1
    start_fd: int = -1
    is_supervised: bool = False


class ProxySocket(NamedTuple):
    """Access to a few hosts, through a proxy. ``path``: the socket of the proxy."""

    path: str


NetworkAccess: TypeAlias = bool | ProxySocket
"""The network that a command can reach. True: the machine's network. False: none. `ProxySocket`: only the
hosts of a proxy."""


class LaunchRequest(NamedTuple):
    """A command to start.

    - ``command``: a line for ``/bin/sh``.
    - ``folder``: its working directory.
    - ``limits``, ``network``: its limits, and the network that it can reach.
    - ``descriptors``: collects the descriptors that the new process needs.
    """

    command: str
    folder: str
    limits: ResourceLimits
    network: NetworkAccess
    descriptors: LaunchDescriptors


class SandboxBackend(ABC):
    """A kind of sandbox. ``cgroups``: creates the control groups of its commands."""

    name: ClassVar[str]
    counts_own_processes: ClassVar[bool] = False
    """Whether the kernel counts a command's processes separately from other processes of the user."""
    protects_git: ClassVar[bool] = False
    """Whether a command cannot create a ``.git`` at the top of its folder."""
    supports_proxy: ClassVar[bool] = False
    """Whether a command can connect to a proxy."""

    def __init__(self, cgroups: CgroupFactory) -> None:
        self.cgroups = cgroups

    @abstractmethod
    def prepare(self, request: LaunchRequest) -> LaunchSpec:
        """Return the start of the command of ``request``. Raise `FolderNotFound`, `FolderTooWide`,
        `CommandNotStarted`, OSError."""

    @abstractmethod
    def start_failure(self, status: bytes, exit_code: int, stderr: str) -> str | None:
        """Return the reason why the command never ran, None if it did.

        - ``status``: all reports of the sandbox.
        - ``exit_code``, ``stderr``: the exit code and error output of the started process.
        """


def shell_command(command: str, *wrapper: str) -> tuple[str, ...]:
    """Return the arguments of a shell that first reads a line from standard input, and then runs ``command``.

    A sandbox can outlive the process that sets it up. The shell then reads the end of its input, and does not
    start the command. ``wrapper``: a program that executes its arguments, and its own arguments.
    """
    return "/bin/sh", "-c", _START_ON_SIGNAL, "sh", *wrapper, "/bin/sh", "-c", command


_START_ON_SIGNAL: Final = 'echo >&0; read -r _ || exit 125; exec "$@" < /dev/null'


def command_environment(folder: str, temporary: str = TEMPORARY_FOLDER) -> dict[str, str]:
    """Return all environment variables of a command. ``temporary``: the folder for its temporary files."""
    path = ["/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin"]
    python = python_prefix()
    if python:
        path.insert(0, os.path.join(python, "bin"))
    return {
        "PATH": os.pathsep.join(path),
        "HOME": temporary,
        "TMPDIR": temporary,
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "PWD": folder,
    }


def visible_python() -> str | None:
    """Return the path of a Python that every sandbox can run, None if there is none."""
    path = os.path.join(os.path.realpath(sys.base_prefix), "bin", "python3")
    is_visible = is_within(path, *PROGRAM_FOLDERS, python_prefix() or PROGRAM_FOLDERS[0])
    return path if is_visible and os.path.exists(path) else None


def python_prefix() -> str | None:
    """Return the folder in which this Python is installed.

    None if it is visible to commands anyway, or if it contains the home folder.
    """
    prefix = os.path.realpath(sys.base_prefix)
    if is_within(prefix, *PROGRAM_FOLDERS) or is_within(os.path.realpath(os.path.expanduser("~")), prefix):
        return None
    return prefix


def resolve_command_folder(folder: str) -> str:
    """Return the path of ``folder`` without symlinks.

    Raise `FolderNotFound`, and `FolderTooWide` if it contains files that no command may touch.
    """
    path = os.path.realpath(folder)
    if not os.path.isdir(path):
        raise FolderNotFound(folder=folder)
    home = os.path.realpath(os.path.expanduser("~"))
    outside = (*PROGRAM_FOLDERS, *SETTINGS_FILES, *_NEVER_WITHIN, home, os.path.realpath(sys.base_prefix))
    if any(is_within(each, path) for each in outside) or is_within(path, *_NEVER_WITHIN):
        raise FolderTooWide(folder=folder)
    return path
