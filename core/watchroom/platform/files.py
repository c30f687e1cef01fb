"""Reads and replaces single files by descriptor. Replacing is atomic."""

from __future__ import annotations

import errno
import logging
import os
import secrets
import stat
import sys
from contextlib import suppress
from typing import Final

from watchroom.platform import Platform

FILE_FLAGS: Final = os.O_NOFOLLOW | os.O_CLOEXEC
_MAX_REWRITTEN: Final = 64 * 1024
"""Maximum bytes of a spare file that are written or cut off."""
_BLOCK: Final = 4096
"""Number of bytes that are compared at a time."""
_MAX_READ: Final = 1 << 30
"""For at most this many bytes, a short read means the end of the file. Linux reads at most 2 GiB at a
time."""
_log = logging.getLogger("watchroom")


class NotAFile(OSError):
    """The path is a symlink, a folder, a pipe or a device instead of a regular file."""


def write_all(file: int, data: bytes) -> None:
    """Write all of ``data`` to the descriptor ``file``. Raise OSError."""
    remaining = memoryview(data)
    while remaining:
        remaining = remaining[os.write(file, remaining) :]


def replace_durably(path: str, data: bytes) -> None:
    """Replace the file at ``path`` by a file with ``data`` that only this user can read.

    After a crash, the file has either the old or the new content, never a part. Raise OSError.
    """
    folder, name = os.path.split(path)
    scratch = os.path.join(folder, f".{name}-{secrets.token_hex(6)}")
    file = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL | FILE_FLAGS, 0o600)
    try:
        try:
            write_all(file, data)
            os.fsync(file)
        finally:
            os.close(file)
        os.replace(scratch, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(scratch)
        raise
    entry = os.open(folder or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(entry)
    finally:
        os.close(entry)


def replace_file(
    platform: Platform, source_fd: int, source: str, target_fd: int, target: str
) -> tuple[bytes | None, bool]:
    """Move ``source`` in the folder ``source_fd`` over ``target`` in the folder ``target_fd``, atomically.

    Return the old content, None if there was no file, and whether ``source`` is now the old file. Raise
    OSError, and `NotAFile` if ``target`` was not a file.

    A rename over an existing file makes ext4 flush the new data immediately (auto_da_alloc), which takes more
    than a millisecond. An exchange does not. It also keeps exactly the replaced file, so an edit by another
    program just before it is not lost. Without an exchange, an edit between the read and the rename is lost.
    """
    if platform.exchange(source_fd, source, target_fd, target):
        try:
            return read_file(source_fd, source), True
        except OSError:
            platform.exchange(source_fd, source, target_fd, target)
            raise
    previous = read_file(target_fd, target)
    os.replace(source, target, src_dir_fd=source_fd, dst_dir_fd=target_fd)
    return previous, False


def rewrite_spare(platform: Platform, scratch_fd: int, name: str, data: bytes, mode: int) -> bool:
    """Write ``data`` into ``name``, a replaced file in the folder ``scratch_fd``, instead of a new file.

    Only differing parts are written. So for a growing file, such as a history, only the added part is
    written. Return False if this file cannot be reused: it is open or linked elsewhere, or its mode is not
    ``mode``.

    Reuse is faster on every file system than removing the old file and creating a new file. A reader with the
    old file open must not see a change. The kernel ensures this: it grants a write lease only on a file that
    is not open elsewhere.
    """
    try:
        file = os.open(name, os.O_RDWR | os.O_NONBLOCK | FILE_FLAGS, dir_fd=scratch_fd)
    except OSError:
        return False
    try:
        found = os.fstat(file)
        if found.st_nlink != 1 or found.st_mode != mode:
            return False
        if not platform.take_write_lease(file):
            return False
        same = 0
        if found.st_size > _BLOCK:
            same = _count_same(file, data)
            os.lseek(file, same, os.SEEK_SET)
        if max(len(data), found.st_size) - same > _MAX_REWRITTEN:
            return False
        write_all(file, data[same:])
        if found.st_size != len(data):
            os.ftruncate(file, len(data))
    except OSError:
        return False
    finally:
        os.close(file)
    return True


def _count_same(file: int, data: bytes) -> int:
    """Return the number of equal bytes at the start of the open ``file`` and of ``data``, in whole blocks."""
    same = 0
    while (block := os.read(file, _BLOCK)) and data[same : same + _BLOCK] == block:
        same += len(block)
    return same


def read_file(fd: int, name: str, limit: int | None = None) -> bytes | None:
    """Return the bytes of the regular file ``name`` in the folder ``fd``, at most ``limit`` + 1.

    None if there is no file. Raise `NotAFile`.
    """
    try:
        file, known = open_regular(fd, name)
    except FileNotFoundError:
        return None
    try:
        return read_opened(file, known.st_size, limit)
    finally:
        os.close(file)


def read_opened(file: int, size: int, limit: int | None = None) -> bytes:
    """Return the bytes of the open ``file``, at most ``limit`` + 1. ``size``: its last known size."""
    most = sys.maxsize if limit is None else limit + 1
    wanted = min(size + 1, most)
    data = os.read(file, wanted)
    if len(data) < wanted <= _MAX_READ:
        return data
    # The file is large, or it has grown.
    while len(data) < most and (more := os.read(file, min(1 << 20, most - len(data)))):
        data += more
    return data


def has_holes(file: int, size: int) -> bool:
    """Return whether the open ``file`` of ``size`` bytes is sparse; False if unknown."""
    if not size or not hasattr(os, "SEEK_HOLE"):
        return False
    try:
        hole = os.lseek(file, 0, os.SEEK_HOLE)
        os.lseek(file, 0, os.SEEK_SET)
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.ENXIO):
            # The file system does not report this, or the file was just truncated.
            return False
        raise
    return hole < size


def open_regular(fd: int, name: str) -> tuple[int, os.stat_result]:
    """Open the regular file ``name`` in the folder ``fd`` for reading.

    Return its descriptor, which the caller closes, and its status. Raise `NotAFile`.
    """
    try:
        file = os.open(name, os.O_RDONLY | os.O_NONBLOCK | FILE_FLAGS, dir_fd=fd)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
            raise NotAFile(error.errno, "not a regular file", name) from error
        raise
    known = os.fstat(file)
    if not stat.S_ISREG(known.st_mode):
        os.close(file)
        raise NotAFile(errno.EINVAL, "not a regular file", name)
    return file, known


def keep_from_git(folder: str) -> None:
    """Write a ``.gitignore`` that covers all of ``folder``, so that git does not commit, stash or clean it.

    An existing ``.gitignore`` is not changed. If the folder is not writable, do nothing.
    """
    with suppress(OSError), open(os.path.join(folder, ".gitignore"), "x", encoding="ascii") as file:
        file.write("*\n")


def make_private(folder: str) -> None:
    """Remove all rights of other users from ``folder`` and from the files in it.

    Files of other users keep their rights, and are logged.
    """
    with os.scandir(folder) as found:
        files = [entry.path for entry in found if entry.is_file(follow_symlinks=False)]
    for path, mode in ((folder, 0o700), *((file, 0o600) for file in files)):
        try:
            if stat.S_IMODE(os.lstat(path).st_mode) & 0o077:
                os.chmod(path, mode)
        except FileNotFoundError:
            # SQLite creates and removes files with its connections.
            continue
        except OSError as error:
            _log.warning("%s is open to other users: %s", path, error.strerror)
