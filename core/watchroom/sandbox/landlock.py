"""The second backend: Landlock, by which a process gives up all files but those on a list, and seccomp.

It takes neither rights nor namespaces, so it works where bubblewrap is missing or forbidden, from Linux 6.12
on. What it has less than bubblewrap:

- What is kept from a command is still there: it sees that a file exists, and when it was changed, not what
  is in it. There is no /proc, no terminal, and no /dev/shm.
- It can make no sockets, not even to itself, but pairs of them. So it reaches no allowed host, either.
- Its temporary folder is one on disk: a single file in it is bounded, all of them together are not.
- The half-written files of its task, in the folder's .watchroom, are a command's to touch like all others.
- Rights can be given to a folder, and not be taken back for what is in it. So where there is a repository,
  nothing can be put into its folder or taken away from it: what stands there may be changed, and put into
  folders beneath. Where there is none, a command can make one, which is its own until it descriptors.
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
    NETWORK_SETTINGS,
    SETTINGS,
    SYSTEM,
    Launch,
    LaunchDescriptors,
    NetworkAccess,
    python_prefix,
    resolve_command_folder,
)
from watchroom.sandbox.cgroups import CgroupFactory
from watchroom.sandbox.errors import CommandNotStarted
from watchroom.sandbox.limits import ResourceLimits
from watchroom.sandbox.repositories import HIDDEN, beneath, entries, protected_paths
from watchroom.sandbox.seccomp import INTERNET, asking, program
from watchroom.sandbox.supervised_launch import Behind, is_possible, launch, start_failure, temporary_folder

_CREATE: Final = 444
_ADD: Final = 445
_VERSION: Final = 1
_BENEATH: Final = 1
_OLDEST: Final = 6
"""The first version that keeps signals in."""

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
_OFFERED: Final = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_SCRATCH: Final = ("tmp",)


class LandlockBackend:
    """Runs commands beneath a supervisor of ours, each with files and signals of its own."""

    name = "landlock"
    counts_own_processes = False
    protects_git = False
    supports_proxy = False

    def __init__(self, groups: CgroupFactory) -> None:
        self.groups = groups
        filters = {network: program(INTERNET if network else (), shared=True) for network in (False, True)}
        self._filters = {network: code for network, code in filters.items() if code}
        asked = asking()
        if asked is None:
            raise CommandNotStarted(reason=os.uname().machine)
        self._calls, self._numbers = asked

    @classmethod
    def detect(cls, groups: CgroupFactory) -> LandlockBackend | None:
        """That of this kernel; None where it has none, or has it switched off. Raises `CommandNotStarted`
        where it lacks something that is needed."""
        if sys.platform != "linux":
            return None
        version = ctypes.CDLL(None).syscall(_CREATE, None, 0, _VERSION)
        if version < 0:
            return None
        if version < _OLDEST:
            raise CommandNotStarted(reason=f"Landlock {version} < {_OLDEST}")
        if not is_possible():
            raise CommandNotStarted(reason="/proc/PID/task/PID/children")
        return cls(groups)

    def launch(
        self,
        command: str,
        folder: str,
        limits: ResourceLimits,
        network: NetworkAccess,
        descriptors: LaunchDescriptors,
    ) -> Launch:
        path = resolve_command_folder(folder)
        temporary = temporary_folder(descriptors)
        fd = descriptors.add_inherited(os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW))
        kept = _kept(fd, path)
        is_open = network is True
        rules = descriptors.add_inherited(_ruleset(is_open))
        prefix = python_prefix()
        for each in (
            *SYSTEM,
            *SETTINGS,
            *(NETWORK_SETTINGS if is_open else ()),
            *((prefix,) if prefix else ()),
        ):
            _allow_path(rules, each, _READ)
        for each in _OFFERED:
            _allow_path(rules, each, _ON_DEVICES)
        _allow_path(rules, temporary, _WRITE)
        _allow_folder(rules, fd, kept)
        behind = Behind(rules, self._filters[is_open], dict(self._calls), tuple(kept))
        return launch(command, (path, fd), temporary, behind, self._numbers, descriptors)

    def start_failure(self, told: bytes, exit_code: int, stderr: str) -> str | None:
        return start_failure(told, exit_code, stderr)


def _kept(folder: int, path: str) -> list[Parts]:
    """What a command may read but not change, and what it may not even read: a workspace's folder, if it
    holds more than the half-written files of this task."""
    kept = protected_paths(folder, path)
    if {entry.name for entry in entries(folder, (HIDDEN,))} - set(_SCRATCH):
        kept.append((HIDDEN,))
    return kept


def _allow_folder(rules: int, folder: int, kept: Sequence[Parts]) -> None:
    if not kept:
        _allow(rules, folder, _WRITE)
        return
    for parts, rights in _rights(folder, kept):
        try:
            fd = beneath(folder, parts, os.O_PATH)
        except (FileNotFoundError, NotADirectoryError):
            continue
        try:
            _allow(rules, fd, rights)
        finally:
            os.close(fd)


def _rights(folder: int, kept: Sequence[Parts]) -> Iterator[tuple[Parts, int]]:
    """What may be done where beneath a folder in which something is kept."""
    around = {each[:depth] for each in kept for depth in range(len(each))}
    for above in around:
        for entry in entries(folder, above):
            parts = (*above, entry.name)
            if parts in kept:
                if parts != (HIDDEN,):
                    yield parts, _READ
            elif parts not in around and not entry.is_symlink():
                yield parts, _WRITE


def _ruleset(network: bool) -> int:
    """Rules by which nothing is allowed yet."""
    fields = struct.pack("=QQQ", _ALL, 0 if network else _NETWORK, _SCOPES)
    return _called(_CREATE, fields, len(fields), 0)


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
        _called(_ADD, rules, _BENEATH, struct.pack("=Qi", rights, fd), 0)
    except OSError as error:
        # Files have fewer rights than folders, and know only those.
        if error.errno != errno.EINVAL or not rights & _ON_FILES:
            raise
        _called(_ADD, rules, _BENEATH, struct.pack("=Qi", rights & _ON_FILES, fd), 0)


def _called(number: int, *arguments: int | bytes) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    result: int = libc.syscall(number, *arguments)
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result
