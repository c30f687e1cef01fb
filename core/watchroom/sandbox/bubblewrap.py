"""Bubblewrap: a command gets namespaces of its own, and sees only the paths on a list.

A repository that is there when a command starts is read-only to it; a folder around one that lies deeper can
be moved with it, or emptied but for it. Where there is none at the top, an empty read-only folder takes its
place. One that the command makes deeper is its own until it ends."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import subprocess
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from watchroom.platforms import detect_platform
from watchroom.sandbox import forwarder
from watchroom.sandbox.backend import (
    NETWORK_FILES,
    PROGRAM_FOLDERS,
    SETTINGS_FILES,
    TEMPORARY_FOLDER,
    LaunchDescriptors,
    LaunchRequest,
    LaunchSpec,
    ProxySocket,
    SandboxBackend,
    command_environment,
    python_prefix,
    resolve_command_folder,
    shell_command,
    visible_python,
)
from watchroom.sandbox.cgroups import CgroupFactory
from watchroom.sandbox.errors import CommandNotStarted
from watchroom.sandbox.limits import ResourceLimits
from watchroom.sandbox.repositories import CONTROL_FOLDER, GIT_FOLDER, open_beneath, protected_paths
from watchroom.sandbox.seccomp import INTERNET, UNIX_ONLY, build_filter
from watchroom.sandbox.system_folders import is_within

_HELP_SECONDS: Final = 10.0
_LOCK_ATTEMPTS: Final = 100
_ERROR_PREFIX: Final = "bwrap: "
_PROXY_SOCKET: Final = "/run/watchroom/proxy"
_FORWARDER: Final = "/run/watchroom/forwarder.py"
_PORT: Final = 3128
_FORWARDER_ARGV: Final = (visible_python() or "", "-I", "-S", _FORWARDER, _PROXY_SOCKET, str(_PORT))
_SHARED_MEMORY: Final = "/dev/shm"  # noqa: S108  # a private one


class BubblewrapBackend(SandboxBackend):
    """Runs commands through the program ``bwrap``, each in namespaces of its own. ``options`` is what this
    version prints as its help: older ones lack a few. ``cgroups`` creates control groups."""

    name = "bubblewrap"
    counts_own_processes = True
    protects_git = True
    supports_proxy = visible_python() is not None

    def __init__(self, bwrap: str, options: str, cgroups: CgroupFactory) -> None:
        super().__init__(cgroups)
        self._options = options
        self._fixed = (bwrap, *_NAMESPACES, *self._if_known("--disable-userns"), *_mount_system())
        self._network = ("--share-net", *_mount_files(NETWORK_FILES))
        self._python = _mount_python()
        self._filters = {network: _filter_code(network) for network in (False, True)}

    @classmethod
    def detect(cls, cgroups: CgroupFactory) -> BubblewrapBackend | None:
        """The backend of the installed version, with control groups of ``cgroups``; None where there is none.
        It may not work on this machine. Raises OSError."""
        bwrap = shutil.which("bwrap")
        if bwrap is None:
            return None
        done = subprocess.run(
            [bwrap, "--help"], capture_output=True, text=True, check=False, timeout=_HELP_SECONDS, env={}
        )
        return cls(bwrap, done.stdout + done.stderr, cgroups)

    def prepare(self, request: LaunchRequest) -> LaunchSpec:
        """How to start the command of ``request``. Raises as every backend does."""
        limits, network, descriptors = request.limits, request.network, request.descriptors
        path = resolve_command_folder(request.folder)
        status, status_write = descriptors.output_pipe()
        start, start_read = descriptors.input_pipe()
        argv = [
            *self._fixed,
            *(self._network if network is True else ()),
            *_user_files(descriptors),
            *(*self._size(limits), "--tmpfs", _SHARED_MEMORY, "--remount-ro", "/dev"),
            *(*self._size(limits), "--tmpfs", TEMPORARY_FOLDER),
            *self._python,
            *self._folder(path, descriptors),
            *(_mount_proxy(network, descriptors) if isinstance(network, ProxySocket) else ()),
            *("--remount-ro", "/", "--chdir", path),
            *_set_variables(path),
            *_filter_options(self._filters[network is True], descriptors),
            *("--json-status-fd", str(status_write), "--block-fd", str(start_read)),
            *(
                "--",
                *shell_command(
                    request.command, *(_FORWARDER_ARGV if isinstance(network, ProxySocket) else ())
                ),
            ),
        ]
        return LaunchSpec(tuple(argv), status, start)

    def start_failure(self, status: bytes, exit_code: int, stderr: str) -> str | None:
        """What bubblewrap printed to ``stderr`` where it ended itself with ``exit_code`` 1 and its ``status``
        names no code of the command."""
        if b'"exit-code"' in status or exit_code != 1 or not stderr.startswith(_ERROR_PREFIX):
            return None
        return stderr.removeprefix(_ERROR_PREFIX).strip()

    def _folder(self, path: str, descriptors: LaunchDescriptors) -> Iterator[str]:
        """The command's folder, as it is now: opened here, so that no other command can put a symlink to
        somewhere else in its place before it is mounted."""
        fd = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW)
        yield from self._bind("--bind", fd, path, descriptors)
        self._reserve_git_folder(fd, descriptors)
        for parts in protected_paths(fd, path):
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                protected = open_beneath(fd, parts, os.O_PATH)
                if stat.S_ISLNK(os.fstat(protected).st_mode):
                    os.close(protected)
                else:
                    yield from self._bind("--ro-bind", protected, os.path.join(path, *parts), descriptors)
        control = os.path.join(path, CONTROL_FOLDER)
        if os.path.isdir(control) and not os.path.islink(control):
            yield from ("--tmpfs", control, "--remount-ro", control)

    @staticmethod
    def _reserve_git_folder(folder: int, descriptors: LaunchDescriptors) -> None:
        """Keep an empty folder where a repository would be, for as long as any command runs there: it is then
        mounted like one. A person who begins a repository meanwhile does so in that very folder, which then
        stays. Each command holds a lock on it, which the kernel releases when its process is killed."""
        for _ in range(_LOCK_ATTEMPTS):
            held = _lock_git_folder(folder)
            if held is None:
                return
            if _is_git_folder(folder, held):
                descriptors.add_own(held)
                descriptors.add_cleanup(partial(_remove_git_folder, os.dup(folder)))
                return
            # The process that held it before has just removed it.
            os.close(held)
        raise CommandNotStarted(reason=GIT_FOLDER)

    def _bind(self, option: str, fd: int, path: str, descriptors: LaunchDescriptors) -> Sequence[str]:
        """Mount what ``fd`` is. It is inherited only by a bubblewrap that closes it: a command that had it
        could leave its folder by it."""
        if f"{option}-fd" in self._options:
            return f"{option}-fd", str(descriptors.add_inherited(fd)), path
        descriptors.add_own(fd)
        return option, path, path

    def _size(self, limits: ResourceLimits) -> Sequence[str]:
        return ("--size", str(limits.tmp_bytes)) if "--size" in self._options else ()

    def _if_known(self, option: str) -> Sequence[str]:
        return (option,) if option in self._options else ()


def _lock_git_folder(folder: int) -> int | None:
    """A descriptor of the folder that is or would be a repository, created if missing, and locked; None where
    a link or a file is in its place, or where nobody may create anything."""
    try:
        with contextlib.suppress(FileExistsError):
            os.mkdir(GIT_FOLDER, dir_fd=folder)
        held = open_beneath(folder, (GIT_FOLDER,), os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP, errno.EACCES, errno.EPERM, errno.EROFS):
            return None
        raise
    detect_platform().lock_shared(held)
    return held


def _is_git_folder(folder: int, held: int) -> bool:
    try:
        return os.path.samestat(os.stat(GIT_FOLDER, dir_fd=folder, follow_symlinks=False), os.fstat(held))
    except FileNotFoundError:
        return False


def _remove_git_folder(folder: int) -> None:
    """Remove the folder that was kept where a repository would be, if it is empty and no other command needs
    it."""
    try:
        held = open_beneath(folder, (GIT_FOLDER,), os.O_RDONLY | os.O_DIRECTORY)
        try:
            if detect_platform().try_lock(held):
                os.rmdir(GIT_FOLDER, dir_fd=folder)
        finally:
            os.close(held)
    except OSError as error:
        # A person has begun a repository, or removed the folder.
        if error.errno not in (errno.ENOTEMPTY, errno.ENOENT, errno.ENOTDIR, errno.EEXIST):
            raise
    finally:
        os.close(folder)


_NAMESPACES: Final = (
    *("--unshare-all", "--unshare-user", "--die-with-parent", "--new-session"),
    *("--clearenv", "--cap-drop", "ALL"),
)


def _mount_system() -> Iterator[str]:
    for path in PROGRAM_FOLDERS:
        if os.path.islink(path):
            yield from ("--symlink", os.readlink(path), path)
        elif os.path.isdir(path):
            yield from ("--ro-bind", path, path)
    yield from _mount_files(SETTINGS_FILES)
    # Root in a namespace still is root to the settings of the kernel, one of which names a program to be run
    # outside; bubblewrap itself covers only those that everybody may write.
    yield from ("--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev")


def _mount_files(paths: Sequence[str]) -> Iterator[str]:
    for path in paths:
        if os.path.islink(path) and is_within(os.path.realpath(path), *PROGRAM_FOLDERS):
            yield from ("--symlink", os.path.realpath(path), path)
        elif os.path.exists(path):
            yield from ("--ro-bind", path, path)


def _mount_proxy(network: ProxySocket, descriptors: LaunchDescriptors) -> Iterator[str]:
    """The proxy's socket, and the variables by which programs use it."""
    yield from _mount_files(NETWORK_FILES)
    yield from ("--bind", network.path, _PROXY_SOCKET)
    with open(forwarder.__file__, "rb") as file:
        yield from ("--ro-bind-data", str(descriptors.add_data(file.read())), _FORWARDER)
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        yield from ("--setenv", name, f"http://127.0.0.1:{_PORT}")
    for name in ("no_proxy", "NO_PROXY"):
        yield from ("--setenv", name, "localhost,127.0.0.1")


def _user_files(descriptors: LaunchDescriptors) -> Iterator[str]:
    """Files that name one user and one group, with names that reveal nothing."""
    user, group = os.getuid(), os.getgid()
    for path, line in (
        ("/etc/passwd", f"agent:x:{user}:{group}::/tmp:/bin/sh\n"),
        ("/etc/group", f"agent:x:{group}:\n"),
    ):
        yield from ("--file", str(descriptors.add_data(line.encode())), path)


def _mount_python() -> Sequence[str]:
    prefix = python_prefix()
    return ("--ro-bind", prefix, prefix) if prefix else ()


def _set_variables(folder: str) -> Iterator[str]:
    for name, value in command_environment(folder).items():
        yield from ("--setenv", name, value)


def _filter_code(network: bool) -> bytes | None:
    """The seccomp filter's code. With the machine's network come its abstract sockets, on which services
    listen: those are excluded."""
    return build_filter(INTERNET if network else INTERNET | UNIX_ONLY)


def _filter_options(code: bytes | None, descriptors: LaunchDescriptors) -> Sequence[str]:
    return ("--seccomp", str(descriptors.add_data(code))) if code else ()
