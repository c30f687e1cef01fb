"""The first backend: bubblewrap, which gives a command namespaces of its own, and only the paths on a list.

A repository that is there when a command starts is read-only to it; what stands around one beneath the top
can be moved away with it, or deleted but for it. Where there is none at the top, an empty folder that is
read-only takes its place. One that the command makes deeper is its own until it descriptors.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from watchroom.sandbox import forwarder
from watchroom.sandbox.backend import (
    NETWORK_SETTINGS,
    SETTINGS,
    SYSTEM,
    TEMPORARY,
    Launch,
    LaunchDescriptors,
    NetworkAccess,
    ProxySocket,
    environment,
    is_within,
    python_prefix,
    resolve_command_folder,
    shell,
    visible_python,
)
from watchroom.sandbox.cgroups import CgroupFactory
from watchroom.sandbox.errors import CommandNotStarted
from watchroom.sandbox.limits import ResourceLimits
from watchroom.sandbox.repositories import HIDDEN, READ_ONLY, beneath, protected_paths
from watchroom.sandbox.seccomp import INTERNET, UNIX_ONLY, program

if sys.platform != "win32":
    import fcntl

_ASKING: Final = 10.0
_TRIES: Final = 100
_COMPLAINT: Final = "bwrap: "
_PROXY: Final = "/run/watchroom/proxy"
_FORWARDER: Final = "/run/watchroom/forwarder.py"
_PORT: Final = 3128
_FORWARDING: Final = (visible_python() or "", "-I", "-S", _FORWARDER, _PROXY, str(_PORT))
_SHARED_MEMORY: Final = "/dev/shm"  # noqa: S108  # a private one


class BubblewrapBackend:
    """Runs commands through ``bwrap``, each in namespaces of its own."""

    name = "bubblewrap"
    counts_own_processes = True
    protects_git = True
    supports_proxy = visible_python() is not None

    def __init__(self, bwrap: str, options: str, groups: CgroupFactory) -> None:
        """``options`` is what this bubblewrap says of itself: older ones lack a few."""
        self.groups = groups
        self._options = options
        self._fixed = (bwrap, *_NAMESPACES, *self._if_known("--disable-userns"), *_system())
        self._network = ("--share-net", *_settings(NETWORK_SETTINGS))
        self._python = _python()
        self._filters = {network: _filter(network) for network in (False, True)}

    @classmethod
    def detect(cls, groups: CgroupFactory) -> BubblewrapBackend | None:
        """The installed one; None where there is none. Whether it works here is another question."""
        bwrap = shutil.which("bwrap")
        if bwrap is None:
            return None
        done = subprocess.run(
            [bwrap, "--help"], capture_output=True, text=True, check=False, timeout=_ASKING, env={}
        )
        return cls(bwrap, done.stdout + done.stderr, groups)

    def launch(
        self,
        command: str,
        folder: str,
        limits: ResourceLimits,
        network: NetworkAccess,
        descriptors: LaunchDescriptors,
    ) -> Launch:
        path = resolve_command_folder(folder)
        told, telling = descriptors.output_pipe()
        gate, waiting = descriptors.input_pipe()
        argv = [
            *self._fixed,
            *(self._network if network is True else ()),
            *_people(descriptors),
            *(*self._sized(limits), "--tmpfs", _SHARED_MEMORY, "--remount-ro", "/dev"),
            *(*self._sized(limits), "--tmpfs", TEMPORARY),
            *self._python,
            *self._folder(path, descriptors),
            *(_proxy(network, descriptors) if isinstance(network, ProxySocket) else ()),
            *("--remount-ro", "/", "--chdir", path),
            *_variables(path),
            *_filtered(self._filters[network is True], descriptors),
            *("--json-status-fd", str(telling), "--block-fd", str(waiting)),
            *("--", *shell(command, *(_FORWARDING if isinstance(network, ProxySocket) else ()))),
        ]
        return Launch(tuple(argv), told, gate)

    def start_failure(self, told: bytes, exit_code: int, stderr: str) -> str | None:
        if b'"exit-code"' in told or exit_code != 1 or not stderr.startswith(_COMPLAINT):
            return None
        return stderr.removeprefix(_COMPLAINT).strip()

    def _folder(self, path: str, descriptors: LaunchDescriptors) -> Iterator[str]:
        """The command's folder, as it is now: opened here, so that no other command can put a symlink to
        somewhere else in its place before it is mounted."""
        fd = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW)
        yield from self._bind("--bind", fd, path, descriptors)
        self._hold_place(fd, descriptors)
        for parts in protected_paths(fd, path):
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                kept = beneath(fd, parts, os.O_PATH)
                if stat.S_ISLNK(os.fstat(kept).st_mode):
                    os.close(kept)
                else:
                    yield from self._bind("--ro-bind", kept, os.path.join(path, *parts), descriptors)
        hidden = os.path.join(path, HIDDEN)
        if os.path.isdir(hidden) and not os.path.islink(hidden):
            yield from ("--tmpfs", hidden, "--remount-ro", hidden)

    @staticmethod
    def _hold_place(folder: int, descriptors: LaunchDescriptors) -> None:
        """Have an empty folder where a repository would be, for as long as any command runs there: then it is
        mounted like one. A person who begins a repository meanwhile does so in that very folder, which then
        stays. Whoever holds it has it locked, and is forgotten by the kernel when it is killed."""
        for _ in range(_TRIES):
            held = _locked_place(folder)
            if held is None:
                return
            if _is_there(folder, held):
                descriptors.add_own(held)
                descriptors.add_cleanup(partial(_give_up_place, os.dup(folder)))
                return
            # Whoever held it before has just taken it away.
            os.close(held)
        raise CommandNotStarted(reason=READ_ONLY)

    def _bind(self, how: str, fd: int, path: str, descriptors: LaunchDescriptors) -> Sequence[str]:
        """Mount what ``fd`` is. It goes to bubblewrap only if that takes it and closes it: a command that
        inherited it could walk out of its folder."""
        if f"{how}-fd" in self._options:
            return f"{how}-fd", str(descriptors.add_inherited(fd)), path
        descriptors.add_own(fd)
        return how, path, path

    def _sized(self, limits: ResourceLimits) -> Sequence[str]:
        return ("--size", str(limits.tmp_bytes)) if "--size" in self._options else ()

    def _if_known(self, option: str) -> Sequence[str]:
        return (option,) if option in self._options else ()


def _locked_place(folder: int) -> int | None:
    """A descriptor of the folder that is or would be a repository, made if missing, and locked; None where a
    link or a file stands there, or where nobody may make anything."""
    try:
        with contextlib.suppress(FileExistsError):
            os.mkdir(READ_ONLY, dir_fd=folder)
        held = beneath(folder, (READ_ONLY,), os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP, errno.EACCES, errno.EPERM, errno.EROFS):
            return None
        raise
    fcntl.flock(held, fcntl.LOCK_SH)
    return held


def _is_there(folder: int, held: int) -> bool:
    try:
        return os.path.samestat(os.stat(READ_ONLY, dir_fd=folder, follow_symlinks=False), os.fstat(held))
    except FileNotFoundError:
        return False


def _give_up_place(folder: int) -> None:
    """Take away the folder that held a repository's place, if it is empty and no other command needs it."""
    try:
        held = beneath(folder, (READ_ONLY,), os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.rmdir(READ_ONLY, dir_fd=folder)
        finally:
            os.close(held)
    except OSError as error:
        # Somebody else's command runs there, or a person has begun a repository, or took it away.
        if error.errno not in (errno.EWOULDBLOCK, errno.ENOTEMPTY, errno.ENOENT, errno.ENOTDIR, errno.EEXIST):
            raise
    finally:
        os.close(folder)


_NAMESPACES: Final = (
    *("--unshare-all", "--unshare-user", "--die-with-parent", "--new-session"),
    *("--clearenv", "--cap-drop", "ALL"),
)


def _system() -> Iterator[str]:
    for path in SYSTEM:
        if os.path.islink(path):
            yield from ("--symlink", os.readlink(path), path)
        elif os.path.isdir(path):
            yield from ("--ro-bind", path, path)
    yield from _settings(SETTINGS)
    # Root in a namespace still is root to the settings of the kernel, one of which names a program to be run
    # outside; bubblewrap itself covers only those that everybody may write.
    yield from ("--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev")


def _settings(paths: Sequence[str]) -> Iterator[str]:
    for path in paths:
        if os.path.islink(path) and is_within(os.path.realpath(path), *SYSTEM):
            yield from ("--symlink", os.path.realpath(path), path)
        elif os.path.exists(path):
            yield from ("--ro-bind", path, path)


def _proxy(network: ProxySocket, descriptors: LaunchDescriptors) -> Iterator[str]:
    """The proxy's socket, and what makes programs use it."""
    yield from _settings(NETWORK_SETTINGS)
    yield from ("--bind", network.path, _PROXY)
    with open(forwarder.__file__, "rb") as file:
        yield from ("--ro-bind-data", str(descriptors.add_inherited(_in_memory(file.read()))), _FORWARDER)
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        yield from ("--setenv", name, f"http://127.0.0.1:{_PORT}")
    for name in ("no_proxy", "NO_PROXY"):
        yield from ("--setenv", name, "localhost,127.0.0.1")


def _people(descriptors: LaunchDescriptors) -> Iterator[str]:
    """One user and one group, whose names tell nobody anything."""
    user, group = os.getuid(), os.getgid()
    for path, line in (
        ("/etc/passwd", f"agent:x:{user}:{group}::/tmp:/bin/sh\n"),
        ("/etc/group", f"agent:x:{group}:\n"),
    ):
        yield from ("--file", str(descriptors.add_inherited(_in_memory(line.encode()))), path)


def _python() -> Sequence[str]:
    prefix = python_prefix()
    return ("--ro-bind", prefix, prefix) if prefix else ()


def _variables(folder: str) -> Iterator[str]:
    for name, value in environment(folder).items():
        yield from ("--setenv", name, value)


def _filter(network: bool) -> bytes | None:
    """With the machine's network come its abstract sockets, behind which services listen: none of those."""
    return program(INTERNET if network else INTERNET | UNIX_ONLY)


def _filtered(code: bytes | None, descriptors: LaunchDescriptors) -> Sequence[str]:
    return ("--seccomp", str(descriptors.add_inherited(_in_memory(code)))) if code else ()


def _in_memory(data: bytes) -> int:
    """A file descriptor from which ``data`` can be read."""
    fd = os.memfd_create("watchroom")
    os.write(fd, data)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd
