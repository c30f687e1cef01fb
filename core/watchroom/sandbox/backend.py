"""What every backend has in common: what it is asked, and what any of them shows of the machine."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol, TypeAlias

from watchroom.sandbox.cgroups import CgroupFactory
from watchroom.sandbox.errors import FolderNotFound, FolderTooWide
from watchroom.sandbox.limits import ResourceLimits

SYSTEM: Final = ("/usr", "/bin", "/lib", "/lib32", "/lib64", "/sbin")
"""Where programs and their libraries are."""
SETTINGS: Final = ("/etc/alternatives", "/etc/ld.so.cache", "/etc/localtime", "/etc/os-release")
"""The few of the system's settings that programs need, none of them a secret. Each one costs time at every
start, so there are no more than that."""
NETWORK_SETTINGS: Final = (
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
"""What they need to speak to others."""
TEMPORARY: Final = "/tmp"  # noqa: S108  # a private one

_NEVER_WITHIN: Final = ("/proc", "/sys")


class LaunchDescriptors:
    """The file descriptors of one start: those that the command's side takes over, and those that stay
    ours."""

    def __init__(self) -> None:
        self._theirs: list[int] = []
        self._ours: list[int] = []
        self._afterwards: list[Callable[[], None]] = []

    def add_cleanup(self, then: Callable[[], None]) -> None:
        """Have something done when the command is over."""
        self._afterwards.append(then)

    def add_inherited(self, fd: int) -> int:
        self._theirs.append(fd)
        return fd

    def add_own(self, fd: int) -> int:
        self._ours.append(fd)
        return fd

    def output_pipe(self) -> tuple[int, int]:
        """A pipe through which we read: our end, and theirs."""
        read, write = os.pipe()
        return self.add_own(read), self.add_inherited(write)

    def input_pipe(self) -> tuple[int, int]:
        """A pipe through which they read: our end, and theirs."""
        read, write = os.pipe()
        return self.add_own(write), self.add_inherited(read)

    def socket_pair(self) -> tuple[int, int]:
        """A line on which both sides speak: our end, and theirs."""
        ours, theirs = socket.socketpair()
        return self.add_own(ours.detach()), self.add_inherited(theirs.detach())

    def inherited(self) -> tuple[int, ...]:
        return tuple(self._theirs)

    def close_inherited(self) -> None:
        """Their descriptors are theirs alone from now on."""
        while self._theirs:
            os.close(self._theirs.pop())

    def close(self) -> None:
        self.close_inherited()
        while self._ours:
            os.close(self._ours.pop())
        while self._afterwards:
            self._afterwards.pop()()


class Launch(NamedTuple):
    """How to start a command behind a backend.

    Through ``told`` it says ``"child-pid": N``, the process in which all others begin; that one waits until a
    byte comes through ``gate``. Without them (-1), the process that is started is the first, sees to its own
    bounds, and its group is what can be ended. ``supervised``: another byte has it end all of them, which the
    kernel would not do with it.
    """

    argv: tuple[str, ...]
    told: int = -1
    gate: int = -1
    supervised: bool = False


class ProxySocket(NamedTuple):
    """A way to a few hosts: the socket of a proxy that lets nobody further."""

    path: str


NetworkAccess: TypeAlias = bool | ProxySocket
"""Whether a command has the machine's network, or none but through a proxy."""


class SandboxBackend(Protocol):
    """Something that a command can be run behind."""

    @property
    def name(self) -> str: ...

    @property
    def counts_own_processes(self) -> bool:
        """Whether the kernel counts its processes apart from others of the same user."""
        ...

    @property
    def protects_git(self) -> bool:
        """Whether it keeps a command from making a ``.git`` at the top of its folder."""
        ...

    @property
    def groups(self) -> CgroupFactory: ...

    @property
    def supports_proxy(self) -> bool:
        """Whether it can let a command speak to a proxy."""
        ...

    def launch(
        self,
        command: str,
        folder: str,
        limits: ResourceLimits,
        network: NetworkAccess,
        descriptors: LaunchDescriptors,
    ) -> Launch: ...

    def start_failure(self, told: bytes, exit_code: int, stderr: str) -> str | None:
        """Why the command never ran, None if it did."""
        ...


def shell(command: str, *before: str) -> tuple[str, ...]:
    """Runs ``command``, once the line on its standard input says so. A backend that is just being put up may
    outlive the one who does it; the command then hears that nobody is there, and does not begin. ``before``
    is a program that becomes the one that it is given."""
    return "/bin/sh", "-c", _WHEN_ASKED, "sh", *before, "/bin/sh", "-c", command


_WHEN_ASKED: Final = 'echo >&0; read -r _ || exit 125; exec "$@" < /dev/null'


def environment(folder: str, temporary: str = TEMPORARY) -> dict[str, str]:
    """All that a command learns of the environment."""
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
    """A Python that commands can see, whatever they use themselves."""
    path = os.path.join(os.path.realpath(sys.base_prefix), "bin", "python3")
    return path if is_within(path, *SYSTEM, python_prefix() or SYSTEM[0]) and os.path.exists(path) else None


def python_prefix() -> str | None:
    """Where the Python that runs us is installed; None if that is shown anyway, or is not a place of its
    own."""
    prefix = os.path.realpath(sys.base_prefix)
    if is_within(prefix, *SYSTEM) or is_within(os.path.realpath(os.path.expanduser("~")), prefix):
        return None
    return prefix


def resolve_command_folder(folder: str) -> str:
    """``folder`` without symlinks, if it is one that a command may be let into."""
    path = os.path.realpath(folder)
    if not os.path.isdir(path):
        raise FolderNotFound(folder=folder)
    home = os.path.realpath(os.path.expanduser("~"))
    outside = (*SYSTEM, *SETTINGS, *_NEVER_WITHIN, home, os.path.realpath(sys.base_prefix))
    if any(is_within(each, path) for each in outside) or is_within(path, *_NEVER_WITHIN):
        raise FolderTooWide(folder=folder)
    return path


def is_within(path: str, *folders: str) -> bool:
    """Whether ``path`` is one of ``folders``, or beneath one."""
    return any(path == folder or path.startswith(folder.rstrip("/") + "/") for folder in folders)
