"""Landlock: a process gives up all files but those on a list; and seccomp.

It needs neither rights nor namespaces, so it works where bubblewrap is missing or forbidden, from Linux 6.12
on. What it has less than bubblewrap:

- What is hidden from a command is still there: it sees that a file exists, and when it was changed, not what
  is in it. There is no /proc, no terminal, and no /dev/shm.
- It can make no sockets, not even to itself, but pairs of them. So it reaches no allowed host, either.
- Its temporary folder is on disk: the size of a single file in it is limited, not of all of them together.
- A command can change the half-written files of its task, in the folder's .watchroom, like all others.
- Rights can be given to a folder, and not be taken back for what is in it. So where there is a repository,
  nothing can be created in its folder or removed from it: what is there may be changed, and things created in
  folders beneath. Where there is none, a command can make one, which is its own until it ends.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys
from collections.abc import Iterator, Sequence
from typing import Final

from watchroom.disk import Parts
from watchroom.sandbox.backend import (
    NETWORK_FILES,
    PROGRAM_FOLDERS,
    SETTINGS_FILES,
    LaunchRequest,
    LaunchSpec,
    python_prefix,
    resolve_command_folder,
)
from watchroom.sandbox.cgroups import CgroupFactory
from watchroom.sandbox.errors import CommandNotStarted
from watchroom.sandbox.repositories import CONTROL_FOLDER, list_entries, open_beneath, protected_paths
from watchroom.sandbox.seccomp import INTERNET, build_filter, shared_calls
from watchroom.sandbox.supervised import (
    Restrictions,
    SupervisedBackend,
    create_temporary_folder,
    is_supported,
    open_folder,
)

_CREATE: Final = 444
_ADD_RULE: Final = 445
_VERSION: Final = 1
_PATH_BENEATH: Final = 1
_MINIMUM_VERSION: Final = 6
"""The first version that limits signals."""

_ON_FILES: Final = 0b1100_0000_0000_0111
"""Run, write, read, shorten, and speak to devices: all that can be done with a file."""
_ALL: Final = (1 << 16) - 1
_READ: Final = 0b1101
"""Run, read, and list."""
_DEVICES: Final = (1 << 6) | (1 << 11) | (1 << 15)
"""Make devices, of characters and of blocks, and speak to them."""
_WRITE: Final = _ALL & ~_DEVICES
_ON_DEVICES: Final = 0b110
_NETWORK: Final = 0b11
"""Bind and connect, both of TCP."""
_SCOPES: Final = 0b11
"""Abstract sockets, and signals."""
_DEVICE_FILES: Final = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_SCRATCH_ENTRY: Final = "tmp"


class LandlockBackend(SupervisedBackend):
    """Runs commands beneath a supervisor, each with files and signals of its own. ``cgroups`` creates their
    control groups. Raises `CommandNotStarted` on a machine whose system calls are not known here."""

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
        """The backend of this kernel, with control groups of ``cgroups``; None where it has none, or has it
        switched off. Raises `CommandNotStarted` where it lacks something that is needed."""
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
        """How to start the command of ``request``. Raises as every backend does."""
        descriptors = request.descriptors
        path = resolve_command_folder(request.folder)
        temporary = create_temporary_folder(descriptors)
        fd = open_folder(path, descriptors)
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
    """What a command may read but not change, and what it may not even read: a workspace's folder, if it
    holds more than the half-written files of this task."""
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
    """The rights to each entry of a folder in which something is protected."""
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
    """A descriptor of rules that allow nothing yet."""
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
        # Files have fewer rights than folders, and know only those.
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
