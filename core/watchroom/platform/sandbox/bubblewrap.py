"""Bubblewrap: a command gets its own namespaces, in which only listed paths are visible.

A repository that exists when the command starts is read-only for it. The command can still move a folder that
contains a repository, and remove all other entries of that folder. If the top folder has no repository, an
empty read-only folder takes its place. The command can create repositories in subfolders, and controls them
until it ends.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from watchroom.errors import CommandNotStarted
from watchroom.platform import detect_platform
from watchroom.platform.child_process import run_child
from watchroom.platform.sandbox import forwarder
from watchroom.platform.sandbox.backend import (
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
from watchroom.platform.sandbox.limits import CgroupFactory, ResourceLimits
from watchroom.platform.sandbox.repositories import CONTROL_FOLDER, GIT_FOLDER, open_beneath, protected_paths
from watchroom.platform.sandbox.seccomp import INTERNET, UNIX_ONLY, build_filter
from watchroom.platform.sandbox.system_folders import is_within

_HELP_SECONDS: Final = 10.0
_LOCK_ATTEMPTS: Final = 100
_ERROR_PREFIX: Final = "bwrap: "
_PROXY_SOCKET: Final = "/run/watchroom/proxy"
_FORWARDER: Final = "/run/watchroom/forwarder.py"
_PORT: Final = 3128
_FORWARDER_ARGV: Final = (visible_python() or "", "-I", "-S", _FORWARDER, _PROXY_SOCKET, str(_PORT))
_SHARED_MEMORY: Final = "/dev/shm"  # noqa: S108  # private to the sandbox


class BubblewrapBackend(SandboxBackend):
    """Runs each command in its own namespaces.

    - ``bwrap``: the path of the program.
    - ``options``: its help text. Older versions lack some options.
    - ``cgroups``: creates control groups.
    """

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
        """Return the backend, None if bubblewrap is not installed.

        The program may not work on this machine: see `SandboxProbe`. Raise OSError.
        """
        bwrap = shutil.which("bwrap")
        if bwrap is None:
            return None
        done = run_child([bwrap, "--help"], timeout=_HELP_SECONDS, environment={})
        return cls(bwrap, (done.output + done.errors).decode(errors="replace"), cgroups)

    def prepare(self, request: LaunchRequest) -> LaunchSpec:
        """Return the start of the command of ``request``. Raise the errors of `SandboxBackend.prepare`."""
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
        """Return the error that bubblewrap printed to ``stderr``; None if the command ran.

        Bubblewrap failed if ``exit_code`` is 1 and ``status`` has no exit code of the command.
        """
        if b'"exit-code"' in status or exit_code != 1 or not stderr.startswith(_ERROR_PREFIX):
            return None
        return stderr.removeprefix(_ERROR_PREFIX).strip()

    def _folder(self, path: str, descriptors: LaunchDescriptors) -> Iterator[str]:
        """Yield the options that mount the command's folder.

        It is opened here, so that no other command can replace it by a symlink before it is mounted.
        """
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
        """Create an empty ``.git`` folder while commands run. It is mounted read-only, like a repository.

        If a person creates a repository in the meantime, git uses this folder, which then stays. Each command
        holds a lock on the folder. The kernel releases the lock if this process is killed.
        """
        for _ in range(_LOCK_ATTEMPTS):
            held = _lock_git_folder(folder)
            if held is None:
                return
            if _is_git_folder(folder, held):
                descriptors.add_own(held)
                descriptors.add_cleanup(partial(_remove_git_folder, os.dup(folder)))
                return
            # Another process has just removed the folder.
            os.close(held)
        raise CommandNotStarted(reason=GIT_FOLDER)

    def _bind(self, option: str, fd: int, path: str, descriptors: LaunchDescriptors) -> Sequence[str]:
        """Return the options that mount ``fd`` at ``path``.

        The descriptor is only passed to versions of bubblewrap that close it, because a command could use it
        to leave its folder.
        """
        if f"{option}-fd" in self._options:
            return f"{option}-fd", str(descriptors.add_inherited(fd)), path
        descriptors.add_own(fd)
        return option, path, path

    def _size(self, limits: ResourceLimits) -> Sequence[str]:
        return ("--size", str(limits.tmp_bytes)) if "--size" in self._options else ()

    def _if_known(self, option: str) -> Sequence[str]:
        return (option,) if option in self._options else ()


def _lock_git_folder(folder: int) -> int | None:
    """Open the ``.git`` folder, and lock it. Create it if it is missing. Return its descriptor.

    None if a symlink or a file is at its path, or if it cannot be created.
    """
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
    """Remove the ``.git`` folder if it is empty and no other command needs it. Closes ``folder``."""
    try:
        held = open_beneath(folder, (GIT_FOLDER,), os.O_RDONLY | os.O_DIRECTORY)
        try:
            if detect_platform().try_lock(held):
                os.rmdir(GIT_FOLDER, dir_fd=folder)
        finally:
            os.close(held)
    except OSError as error:
        # A person has created a repository, or removed the folder.
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
    # Root in a namespace can still write kernel settings. One of them sets a program that the kernel runs
    # outside. Bubblewrap itself covers only the settings that every user can write.
    yield from ("--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev")


def _mount_files(paths: Sequence[str]) -> Iterator[str]:
    for path in paths:
        if os.path.islink(path) and is_within(os.path.realpath(path), *PROGRAM_FOLDERS):
            yield from ("--symlink", os.path.realpath(path), path)
        elif os.path.exists(path):
            yield from ("--ro-bind", path, path)


def _mount_proxy(network: ProxySocket, descriptors: LaunchDescriptors) -> Iterator[str]:
    """Yield the options for the proxy's socket, and for the environment variables with which programs find
    it."""
    yield from _mount_files(NETWORK_FILES)
    yield from ("--bind", network.path, _PROXY_SOCKET)
    with open(forwarder.__file__, "rb") as file:
        yield from ("--ro-bind-data", str(descriptors.add_data(file.read())), _FORWARDER)
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        yield from ("--setenv", name, f"http://127.0.0.1:{_PORT}")
    for name in ("no_proxy", "NO_PROXY"):
        yield from ("--setenv", name, "localhost,127.0.0.1")


def _user_files(descriptors: LaunchDescriptors) -> Iterator[str]:
    """Yield the options for files that list one user and one group, with neutral names."""
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
    """Return the code of the seccomp filter.

    With the machine's network, a command could reach abstract sockets of services. Therefore Unix sockets are
    excluded.
    """
    return build_filter(INTERNET if network else INTERNET | UNIX_ONLY)


def _filter_options(code: bytes | None, descriptors: LaunchDescriptors) -> Sequence[str]:
    return ("--seccomp", str(descriptors.add_data(code))) if code else ()
