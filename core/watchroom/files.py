"""What is done with single files, by descriptor: read whole, told apart, replaced at one stroke."""

from __future__ import annotations

import errno
import logging
import os
import stat
import sys
import time
from contextlib import suppress
from typing import Final

from watchroom.platforms import Platform

FILE_FLAGS: Final = os.O_NOFOLLOW | os.O_CLOEXEC
_LARGEST_SPARE: Final = 64 * 1024
_ONE_READ: Final = 1 << 30
"""Up to so many bytes, a reading that gives less than was wanted has come to the end of the file."""
_log = logging.getLogger("watchroom")


class NotAFile(OSError):
    """Something other than a regular file stands at the path: a symlink, a folder, a pipe, a device."""


def write_all(file: int, data: bytes) -> None:
    """Write all of ``data`` to the descriptor ``file``. Raises OSError."""
    remaining = memoryview(data)
    while remaining:
        remaining = remaining[os.write(file, remaining) :]


def replace_durably(path: str, data: bytes) -> None:
    """Replace the file at ``path`` by one that holds ``data`` and that only this user can read.

    After a crash the file is the old one or the new one, never a part of it. Raises OSError.
    """
    folder, name = os.path.split(path)
    scratch = os.path.join(folder, f".{name}-{os.getpid():x}-{time.time_ns():x}")
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


def replace(
    platform: Platform, source_fd: int, source: str, target_fd: int, target: str
) -> tuple[bytes | None, bool]:
    """Move ``source``, in the folder ``source_fd``, over ``target``, in the folder ``target_fd``, atomically.
    Returns what was there, None if nothing was, and whether ``source`` now names that. Raises `NotAFile`
    where something other than a file was there, OSError.

    Renaming over an existing file makes ext4 flush the new file's data at once (auto_da_alloc), which
    costs over a millisecond. Exchanging the two does not, is as atomic, and leaves in our hands exactly
    what was replaced, so that a change made by someone else a moment ago cannot slip away unread. Elsewhere
    one made between the last look and the rename does.
    """
    if platform.exchange(source_fd, source, target_fd, target):
        try:
            return read_file(source_fd, source), True
        except OSError:
            platform.exchange(source_fd, source, target_fd, target)
            raise
    try:
        previous = read_file(target_fd, target)
    except FileNotFoundError:
        previous = None
    os.replace(source, target, src_dir_fd=source_fd, dst_dir_fd=target_fd)
    return previous, False


def rewrite_spare(platform: Platform, scratch_fd: int, name: str, data: bytes, mode: int) -> bool:
    """Put ``data`` into ``name``, a file in the folder ``scratch_fd`` that was replaced earlier, with the
    rights ``mode``, instead of making a new one; False if it cannot be.

    A file system without a journal gets slower with every file that was removed lately, and any is quicker
    without that. But a reader may still have the old file open, and must not see it change: the kernel
    grants a write lease only on a file that nobody else has open. Nor may anyone have linked it.
    """
    if len(data) > _LARGEST_SPARE:
        return False
    try:
        file = os.open(name, os.O_RDWR | os.O_NONBLOCK | FILE_FLAGS, dir_fd=scratch_fd)
    except OSError:
        return False
    try:
        found = os.fstat(file)
        if found.st_nlink != 1 or found.st_mode != mode or found.st_size > _LARGEST_SPARE:
            return False
        if not platform.take_write_lease(file):
            return False
        write_all(file, data)
        if found.st_size != len(data):
            os.ftruncate(file, len(data))
    except OSError:
        return False
    finally:
        os.close(file)
    return True


def read_file(fd: int, name: str, limit: int | None = None) -> bytes:
    """The bytes of the regular file ``name`` in the folder ``fd``, at most ``limit`` + 1. Raises `NotAFile`
    for anything else."""
    file, known = open_regular(fd, name)
    try:
        return read_opened(file, known.st_size, limit)
    finally:
        os.close(file)


def read_opened(file: int, size: int, limit: int | None = None) -> bytes:
    """The bytes of the open ``file`` from its start, at most ``limit`` + 1. It had ``size`` bytes a moment
    ago."""
    most = sys.maxsize if limit is None else limit + 1
    wanted = min(size + 1, most)
    data = os.read(file, wanted)
    if len(data) < wanted <= _ONE_READ:
        return data
    # A file that grows, or a large one, comes in several pieces.
    while len(data) < most and (more := os.read(file, min(1 << 20, most - len(data)))):
        data += more
    return data


def has_holes(file: int, size: int) -> bool:
    """Whether a part of the open ``file`` of ``size`` bytes was never written, where the file system says
    so."""
    if not size or not hasattr(os, "SEEK_HOLE"):
        return False
    try:
        hole = os.lseek(file, 0, os.SEEK_HOLE)
        os.lseek(file, 0, os.SEEK_SET)
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.ENXIO):
            # It cannot tell, or the file was shortened a moment ago.
            return False
        raise
    return hole < size


def open_regular(fd: int, name: str) -> tuple[int, os.stat_result]:
    """A descriptor of the regular file ``name`` in the folder ``fd``, which is the caller's to close, and
    what the file is like. Raises `NotAFile` for anything else."""
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
    """Have git ignore all of ``folder``, so that it is neither committed, nor stashed, nor cleaned away.

    A ``.gitignore`` that is there stays. If the folder cannot be written, nothing is done.
    """
    with suppress(OSError), open(os.path.join(folder, ".gitignore"), "x", encoding="ascii") as file:
        file.write("*\n")


def make_private(folder: str) -> None:
    """Let nobody but its owner into ``folder``, nor read or lock the files in it, made before or now.

    What belongs to another user stays as it is, and is logged.
    """
    with os.scandir(folder) as found:
        files = [entry.path for entry in found if entry.is_file(follow_symlinks=False)]
    for path, mode in ((folder, 0o700), *((file, 0o600) for file in files)):
        try:
            if stat.S_IMODE(os.lstat(path).st_mode) & 0o077:
                os.chmod(path, mode)
        except FileNotFoundError:
            # SQLite's files come and go with its connections.
            continue
        except OSError as error:
            _log.warning("%s is open to other users: %s", path, error.strerror)
