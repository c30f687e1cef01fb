"""What a kind of sandbox implements, and what all of them show of the machine."""

from __future__ import annotations

import os
import socket
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, Final, NamedTuple, TypeAlias

from watchroom.sandbox.cgroups import CgroupFactory
from watchroom.sandbox.errors import FolderNotFound, FolderTooWide
from watchroom.sandbox.limits import ResourceLimits
from watchroom.sandbox.system_folders import is_within

PROGRAM_FOLDERS: Final = ("/usr", "/bin", "/lib", "/lib32", "/lib64", "/sbin")
"""Where programs and their libraries are."""
SETTINGS_FILES: Final = ("/etc/alternatives", "/etc/ld.so.cache", "/etc/localtime", "/etc/os-release")
"""The few of the system's settings that programs need, none of them a secret. Each one costs time at every
start, so there are no more than that."""
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
"""What they need to reach other hosts."""
TEMPORARY_FOLDER: Final = "/tmp"  # noqa: S108  # a private one

_NEVER_WITHIN: Final = ("/proc", "/sys")


class LaunchDescriptors:
    """The file descriptors of one launch: those that the new process inherits, and those that stay ours."""

    def __init__(self) -> None:
        self._inherited: list[int] = []
        self._own: list[int] = []
        self._cleanups: list[Callable[[], None]] = []

    def add_cleanup(self, callback: Callable[[], None]) -> None:
        """Have ``callback`` called when the command is over."""
        self._cleanups.append(callback)

    def add_inherited(self, fd: int) -> int:
        """Have the new process inherit ``fd``, which is closed here after the start. Returns ``fd``."""
        self._inherited.append(fd)
        return fd

    def add_data(self, data: bytes) -> int:
        """Have the new process inherit a file from which ``data`` can be read. Returns its descriptor."""
        fd = self.add_inherited(os.memfd_create("watchroom"))
        os.write(fd, data)
        os.lseek(fd, 0, os.SEEK_SET)
        return fd

    def add_own(self, fd: int) -> int:
        """Have ``fd`` closed when the command is over. Returns ``fd``."""
        self._own.append(fd)
        return fd

    def output_pipe(self) -> tuple[int, int]:
        """A pipe through which we read: our end, and the inherited one."""
        read, write = os.pipe()
        return self.add_own(read), self.add_inherited(write)

    def input_pipe(self) -> tuple[int, int]:
        """A pipe through which the new process reads: our end, and the inherited one."""
        read, write = os.pipe()
        return self.add_own(write), self.add_inherited(read)

    def socket_pair(self) -> tuple[int, int]:
        """A connection in both directions: our end, and the inherited one."""
        ours, theirs = socket.socketpair()
        return self.add_own(ours.detach()), self.add_inherited(theirs.detach())

    def inherited(self) -> tuple[int, ...]:
        """The descriptors that the new process inherits."""
        return tuple(self._inherited)

    def close_inherited(self) -> None:
        """Close our copies of what the new process has inherited."""
        while self._inherited:
            os.close(self._inherited.pop())

    def close(self) -> None:
        """Close all descriptors and call what was given to `add_cleanup`."""
        self.close_inherited()
        while self._own:
            os.close(self._own.pop())
        while self._cleanups:
            self._cleanups.pop()()


class LaunchSpec(NamedTuple):
    """How to start a command in a sandbox.

    Through ``status_fd`` the sandbox reports ``"child-pid": N``, the process in which all others begin; that
    one waits until a byte comes through ``start_fd``. Without them (-1), the process that is started is the
    first, sets its own limits, and its process group is what can be killed. ``is_supervised``: another byte
    has the sandbox end all of them, which the kernel would not do with it.
    """

    argv: tuple[str, ...]
    status_fd: int = -1
    start_fd: int = -1
    is_supervised: bool = False


class ProxySocket(NamedTuple):
    """Access to a few hosts: ``path`` is the socket of a proxy that connects to no others."""

    path: str


NetworkAccess: TypeAlias = bool | ProxySocket
"""Whether a command has the machine's network, or none but through a proxy."""


class LaunchRequest(NamedTuple):
    """A ``command``, a line for ``/bin/sh``, to be started in ``folder`` with these ``limits`` and this
    ``network`` access. What the new process needs is put into ``descriptors``."""

    command: str
    folder: str
    limits: ResourceLimits
    network: NetworkAccess
    descriptors: LaunchDescriptors


class SandboxBackend(ABC):
    """A kind of sandbox that commands can be run in. ``cgroups`` creates their control groups."""

    name: ClassVar[str]
    counts_own_processes: ClassVar[bool] = False
    """Whether the kernel counts a command's processes apart from others of the same user."""
    protects_git: ClassVar[bool] = False
    """Whether a command cannot make a ``.git`` at the top of its folder."""
    supports_proxy: ClassVar[bool] = False
    """Whether a command can connect to a proxy."""

    def __init__(self, cgroups: CgroupFactory) -> None:
        self.cgroups = cgroups

    @abstractmethod
    def prepare(self, request: LaunchRequest) -> LaunchSpec:
        """How to start the command of ``request`` in this sandbox. Raises `FolderNotFound`, `FolderTooWide`,
        `CommandNotStarted`, OSError."""

    @abstractmethod
    def start_failure(self, status: bytes, exit_code: int, stderr: str) -> str | None:
        """Why the command never ran, None if it did, by all that the sandbox reported (``status``), its
        ``exit_code`` and what it printed to ``stderr``."""


def shell_command(command: str, *wrapper: str) -> tuple[str, ...]:
    """The arguments by which a shell runs ``command``, once the line on its standard input says so.

    A sandbox that is just being set up may outlive whoever does it; the command then reads that nobody is
    there, and does not begin. ``wrapper`` is a program that becomes the one that it is given.
    """
    return "/bin/sh", "-c", _START_WHEN_TOLD, "sh", *wrapper, "/bin/sh", "-c", command


_START_WHEN_TOLD: Final = 'echo >&0; read -r _ || exit 125; exec "$@" < /dev/null'


def command_environment(folder: str, temporary: str = TEMPORARY_FOLDER) -> dict[str, str]:
    """All environment variables of a command that runs in ``folder`` and has ``temporary`` for its
    temporary files."""
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
    """The path of a Python that can be run in every sandbox; None where there is none."""
    path = os.path.join(os.path.realpath(sys.base_prefix), "bin", "python3")
    is_visible = is_within(path, *PROGRAM_FOLDERS, python_prefix() or PROGRAM_FOLDERS[0])
    return path if is_visible and os.path.exists(path) else None


def python_prefix() -> str | None:
    """The folder where the Python that runs us is installed; None if commands see that anyway, or if it
    holds other things, too."""
    prefix = os.path.realpath(sys.base_prefix)
    if is_within(prefix, *PROGRAM_FOLDERS) or is_within(os.path.realpath(os.path.expanduser("~")), prefix):
        return None
    return prefix


def resolve_command_folder(folder: str) -> str:
    """The path of ``folder`` without symlinks. Raises `FolderNotFound`, and `FolderTooWide` where it holds
    what no command may touch."""
    path = os.path.realpath(folder)
    if not os.path.isdir(path):
        raise FolderNotFound(folder=folder)
    home = os.path.realpath(os.path.expanduser("~"))
    outside = (*PROGRAM_FOLDERS, *SETTINGS_FILES, *_NEVER_WITHIN, home, os.path.realpath(sys.base_prefix))
    if any(is_within(each, path) for each in outside) or is_within(path, *_NEVER_WITHIN):
        raise FolderTooWide(folder=folder)
    return path
