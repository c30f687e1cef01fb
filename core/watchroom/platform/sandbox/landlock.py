"""Landlock and seccomp: a process gives up access to all files except listed files.

This needs no rights and no namespaces. It works from Linux 6.12 on, even if bubblewrap is missing or
forbidden. It isolates less than bubblewrap:

- Hidden files still exist: their names and times are visible, their content is not. There is no /proc, no
  terminal and no /dev/shm.
- A command cannot create sockets, except socket pairs. So it also cannot reach allowed hosts.
- The temporary folder is on disk. The size of each file is limited, the total size is not.
- A command can change half-written files of its task, in the folder's .watchroom.
- Landlock can give rights to a folder, but cannot remove them for one of its entries. So in a folder with a
  repository, a command cannot create or remove entries. It can change existing entries, and create entries in
  subfolders. In a folder without a repository, a command can create one, and controls it until it ends.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys
from collections.abc import Iterator, Sequence
from typing import Final

from watchroom.errors import CommandNotStarted
from watchroom.platform.disk import Parts
from watchroom.platform.sandbox.backend import (
    NETWORK_FILES,
    PROGRAM_FOLDERS,
    SETTINGS_FILES,
    LaunchRequest,
    LaunchSpec,
    python_prefix,
    resolve_command_folder,
)
from watchroom.platform.sandbox.limits import CgroupFactory
from watchroom.platform.sandbox.repositories import (
    CONTROL_FOLDER,
    list_entries,
    open_beneath,
    protected_paths,
)
from watchroom.platform.sandbox.seccomp import INTERNET, build_filter, shared_calls
from watchroom.platform.sandbox.supervised import (
    Restrictions,
    SupervisedBackend,
    create_temporary_folder,
    is_supported,
    open_inherited_folder,
)

_CREATE: Final = 444
_ADD_RULE: Final = 445
_VERSION: Final = 1
_PATH_BENEATH: Final = 1
_MINIMUM_VERSION: Final = 6
"""The first version of Landlock that limits signals."""

_ON_FILES: Final = 0b1100_0000_0000_0111
"""Execute, write, read, truncate, ioctl: all rights of a file."""
_ALL: Final = (1 << 16) - 1
_READ: Final = 0b1101
"""Execute, read, list."""
_DEVICES: Final = (1 << 6) | (1 << 11) | (1 << 15)
"""Create character and block devices, and use ioctl on them."""
_WRITE: Final = _ALL & ~_DEVICES
_ON_DEVICES: Final = 0b110
_NETWORK: Final = 0b11
"""Bind and connect TCP sockets."""
_SCOPES: Final = 0b11
"""Abstract sockets and signals."""
_DEVICE_FILES: Final = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_SCRATCH_ENTRY: Final = "tmp"


class LandlockBackend(SupervisedBackend):
    """Runs commands beneath a supervisor, isolated by Landlock and seccomp.

    ``cgroups``: creates control groups. Raises `CommandNotStarted` on an architecture without a list of
    system calls in this package.
    """

    name = "landlock"

    def __init__(self, cgroups: CgroupFactory) -> None:
        calls = shared_calls()
        if calls is None:
            raise CommandNotStarted(reason=os.uname().machine)
        super().__init__(cgroups, calls.call_numbers)
        self._notified = dict(calls.notified)
        families = {False: (), True: INTERNET}
        filters = {network: build_filter(each, shared=True) for network, each in families.items()}
        self._filters = {network: code for network, code in filters.items() if code}

    @classmethod
    def detect(cls, cgroups: CgroupFactory) -> LandlockBackend | None:
        """Return the backend, None if this kernel has no Landlock or has disabled it.

        Raise `CommandNotStarted` if the kernel lacks a required feature.
        """
        if sys.platform != "linux":
            return None
        version = ctypes.CDLL(None).syscall(_CREATE, None, 0, _VERSION)
        if version < 0:
            return None
        if version < _MINIMUM_VERSION:
            raise CommandNotStarted(reason=f"Landlock {version} < {_MINIMUM_VERSION}")
        if not is_supported():
            raise CommandNotStarted(reason="/proc/PID/task/PID/children")
        return cls(cgroups)

    def prepare(self, request: LaunchRequest) -> LaunchSpec:
        """Return the start of the command of ``request``. Raise the errors of `SandboxBackend.prepare`."""
        descriptors = request.descriptors
        path = resolve_command_folder(request.folder)
        temporary = create_temporary_folder(descriptors)
        fd = open_inherited_folder(path, descriptors)
        protected = _protected_and_hidden(fd, path)
        has_network = request.network is True
        rules = descriptors.add_inherited(_ruleset(has_network))
        prefix = python_prefix()
        for each in (
            *PROGRAM_FOLDERS,
            *SETTINGS_FILES,
            *(NETWORK_FILES if has_network else ()),
            *((prefix,) if prefix else ()),
        ):
            _allow_path(rules, each, _READ)
        for each in _DEVICE_FILES:
            _allow_path(rules, each, _ON_DEVICES)
        _allow_path(rules, temporary, _WRITE)
        _allow_folder(rules, fd, protected)
        restrictions = Restrictions(rules, self._filters[has_network], self._notified, tuple(protected))
        return self._supervise(request, path, fd, temporary, restrictions)


def _protected_and_hidden(folder: int, path: str) -> list[Parts]:
    """Return the paths in ``folder`` that a command cannot change, among them a path that it cannot read.

    The path that it cannot read is a workspace's own folder. This path is included if the folder contains
    more than half-written files of this task.
    """
    protected = protected_paths(folder, path)
    if list_entries(folder, (CONTROL_FOLDER,)).keys() - {_SCRATCH_ENTRY}:
        protected.append((CONTROL_FOLDER,))
    return protected


def _allow_folder(rules: int, folder: int, protected: Sequence[Parts]) -> None:
    if not protected:
        _allow(rules, folder, _WRITE)
        return
    for parts, rights in _rights(folder, protected):
        try:
            fd = open_beneath(folder, parts, os.O_PATH)
        except (FileNotFoundError, NotADirectoryError):
            continue
        try:
            _allow(rules, fd, rights)
        finally:
            os.close(fd)


def _rights(folder: int, protected: Sequence[Parts]) -> Iterator[tuple[Parts, int]]:
    """Yield the rights to each entry of a folder with protected paths."""
    around = {each[:depth] for each in protected for depth in range(len(each))}
    for above in around:
        for name, is_symlink in list_entries(folder, above).items():
            parts = (*above, name)
            if parts in protected:
                if parts != (CONTROL_FOLDER,):
                    yield parts, _READ
            elif parts not in around and not is_symlink:
                yield parts, _WRITE


def _ruleset(network: bool) -> int:
    """Create rules that allow no access. Return their descriptor."""
    fields = struct.pack("=QQQ", _ALL, 0 if network else _NETWORK, _SCOPES)
    return _syscall(_CREATE, fields, len(fields), 0)


def _allow_path(rules: int, path: str, rights: int) -> None:
    try:
        fd = os.open(path, os.O_PATH)
    except FileNotFoundError:
        return
    try:
        _allow(rules, fd, rights)
    finally:
        os.close(fd)


def _allow(rules: int, fd: int, rights: int) -> None:
    try:
        _syscall(_ADD_RULE, rules, _PATH_BENEATH, struct.pack("=Qi", rights, fd), 0)
    except OSError as error:
        # The kernel refuses rights of folders for a file.
        if error.errno != errno.EINVAL or not rights & _ON_FILES:
            raise
        _syscall(_ADD_RULE, rules, _PATH_BENEATH, struct.pack("=Qi", rights & _ON_FILES, fd), 0)


def _syscall(number: int, *arguments: int | bytes) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    result: int = libc.syscall(number, *arguments)
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result
