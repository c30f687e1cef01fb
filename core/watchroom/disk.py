"""Files beneath a root that no symlink can lead out of, replaced whole; and a lock between processes.

This is the one seam to the operating system: everything POSIX-only is here. On POSIX every step from
the root down is opened by directory descriptor with O_NOFOLLOW, so that a symlink swapped in at the
wrong moment gets nowhere. On Windows, which has no directory descriptors, each step is checked by name.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache
from typing import Final, Literal, NamedTuple

if sys.platform != "win32":
    import fcntl

_NOFOLLOW: Final = getattr(os, "O_NOFOLLOW", 0)
_FOLDER_FLAGS: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _NOFOLLOW | getattr(os, "O_CLOEXEC", 0)
_FILE_FLAGS: Final = _NOFOLLOW | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_NONBLOCK: Final = getattr(os, "O_NONBLOCK", 0)
_HAS_DIR_FDS: Final = os.open in os.supports_dir_fd
_RENAME_EXCHANGE: Final = 2
_MOST_KEPT: Final = 128
_MOST_SPARES: Final = 8
_LARGEST_SPARE: Final = 64 * 1024

Parts = tuple[str, ...]
EntryKind = Literal["file", "folder", "symlink", "other"]


class Entry(NamedTuple):
    """Something found beneath a root, by its parts from there."""

    parts: Parts
    kind: EntryKind


class _KeptFolder(NamedTuple):
    fd: int
    identity: tuple[int, int]


class NotAFile(OSError):
    """Something other than a regular file stands at the path: a symlink, a folder, a pipe, a device."""


class Folder:
    """Reads, replaces and removes files beneath ``root``. ``scratch`` is a folder on the same file system
    where half-written files live until they are whole. Every method may raise OSError."""

    def __init__(self, root: str, scratch: str) -> None:
        self.root = root
        self.scratch = scratch
        self._numbers = itertools.count(time.time_ns())
        os.makedirs(root, exist_ok=True)
        os.makedirs(scratch, exist_ok=True)
        self._root_fd = os.open(root, _FOLDER_FLAGS & ~_NOFOLLOW) if _HAS_DIR_FDS else None
        self._scratch_fd = os.open(scratch, _FOLDER_FLAGS) if _HAS_DIR_FDS else None
        self._kept: dict[Parts, _KeptFolder] = {}
        self._spares: list[str] = []
        self._spare_mode = 0

    def close(self) -> None:
        self._let_go()
        while self._spares:
            self._drop(self._spares.pop())
        for fd in (self._root_fd, self._scratch_fd):
            if fd is not None:
                os.close(fd)
        self._root_fd = self._scratch_fd = None

    def read(self, parts: Parts, limit: int | None = None) -> bytes | None:
        """The file's bytes (at most ``limit`` + 1), None where there is none. Raises `NotAFile`."""
        try:
            with self._place(parts) as (fd, name):
                return _read_file(fd, name, limit)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def is_blocked(self, parts: Parts) -> bool:
        """Whether something other than a folder stands where a folder above ``parts`` should be."""
        try:
            with self._place(parts):
                return False
        except FileNotFoundError:
            return False
        except NotADirectoryError:
            return True

    def is_folder(self, parts: Parts) -> bool:
        """Whether a folder, and no symlink to one, stands there."""
        try:
            with self._place(parts) as (fd, name):
                return stat.S_ISDIR(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode)
        except (FileNotFoundError, NotADirectoryError):
            return False

    def write(self, parts: Parts, data: bytes, *, new: bool = False) -> bytes | None:
        """Put ``data`` at ``parts``, making folders as needed. A reader sees the old file or the new one.

        Returns what it replaced, None if there was no file; ``new`` says that there is none, or that it does
        not matter. Raises `NotAFile` where something else stands. Not for two threads at a time.
        """
        source = self._staged(data)
        try:
            if self._root_fd is None or self._scratch_fd is None:
                return _replace_by_name(source, self._checked_by_name(parts, make=True))
            folder = self._kept_folder(parts[:-1])
            if new:
                os.replace(source, parts[-1], src_dir_fd=self._scratch_fd, dst_dir_fd=folder)
                return None
            previous = _replace(self._scratch_fd, source, folder, parts[-1])
        except BaseException:
            self._drop(source)
            raise
        if previous is not None:
            self._spares.append(source)
            if len(self._spares) > _MOST_SPARES:
                self._drop(self._spares.pop(0))
        return previous

    def _staged(self, data: bytes) -> str:
        """The name of a scratch file that holds ``data``."""
        while self._spares:
            name = self._spares.pop()
            if _rewrite_spare(self._scratch_fd, name, data, self._spare_mode):
                return name
            self._drop(name)
        name = f"{os.getpid():x}-{next(self._numbers):x}"
        if self._scratch_fd is None:
            name = os.path.join(self.scratch, name)
        file = os.open(
            name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FILE_FLAGS, 0o666, dir_fd=self._scratch_fd
        )
        try:
            if not self._spare_mode:
                self._spare_mode = os.fstat(file).st_mode
            _write_all(file, data)
        except BaseException:
            self._drop(name)
            raise
        finally:
            os.close(file)
        return name

    def _drop(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self._scratch_fd)

    def _kept_folder(self, parts: Parts) -> int:
        """A descriptor of the folder ``parts``, made if missing, and kept open for the next file in it.

        Before it is used again, each step from the root must still be that very folder, and no symlink: one
        that was moved away or replaced is let go.
        """
        if not parts:
            return self._root_fd if self._root_fd is not None else -1
        parent = self._kept_folder(parts[:-1])
        kept = self._kept.get(parts)
        if kept is not None:
            try:
                found = os.stat(parts[-1], dir_fd=parent, follow_symlinks=False)
            except FileNotFoundError:
                found = None
            if found is not None and (found.st_dev, found.st_ino) == kept.identity:
                return kept.fd
            os.close(self._kept.pop(parts).fd)
        if len(self._kept) >= _MOST_KEPT:
            self._let_go()
            parent = self._kept_folder(parts[:-1])
        fd = _step(parent, parts[-1], make=True)
        identity = os.fstat(fd)
        self._kept[parts] = _KeptFolder(fd, (identity.st_dev, identity.st_ino))
        return fd

    def _let_go(self) -> None:
        for kept in self._kept.values():
            os.close(kept.fd)
        self._kept.clear()

    def remove(self, parts: Parts) -> None:
        """Remove the file, if it is there, and the folders below the second level that it leaves empty."""
        try:
            with self._place(parts) as (fd, name):
                os.unlink(name, dir_fd=fd)
        except (FileNotFoundError, NotADirectoryError):
            return
        for depth in range(len(parts) - 1, 2, -1):
            try:
                with self._place(parts[:depth]) as (fd, name):
                    os.rmdir(name, dir_fd=fd)
            except OSError as error:
                if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT):
                    return
                raise

    def make(self, parts: Parts) -> None:
        """Make the folder ``parts`` and those above it."""
        with self._place((*parts, "."), make=True):
            pass

    def walk(self, parts: Parts = ()) -> Iterator[Entry]:
        """Everything beneath the folder ``parts`` that is not a folder, in no order, following no symlink."""
        try:
            with self._place((*parts, ".")) as (fd, name), os.scandir(name if fd is None else fd) as found:
                entries = [(entry.name, _kind(entry)) for entry in found]
        except (FileNotFoundError, NotADirectoryError):
            return
        for name, kind in entries:
            if kind == "folder":
                yield from self.walk((*parts, name))
            else:
                yield Entry((*parts, name), kind)

    def clear_scratch(self, older_than: float) -> None:
        """Remove what writers that died left behind more than ``older_than`` seconds ago."""
        horizon = time.time() - older_than
        with os.scandir(self.scratch) as found:
            for entry in found:
                with contextlib.suppress(FileNotFoundError):
                    if entry.stat(follow_symlinks=False).st_mtime < horizon:
                        os.unlink(entry.path)

    @contextlib.contextmanager
    def _place(self, parts: Parts, *, make: bool = False) -> Iterator[tuple[int | None, str]]:
        """Where ``parts`` is: a descriptor of its folder and its name there, or None and its full path."""
        if self._root_fd is None:
            yield None, self._checked_by_name(parts, make=make)
            return
        fd = self._root_fd
        try:
            for part in parts[:-1]:
                below = _step(fd, part, make=make)
                if fd != self._root_fd:
                    os.close(fd)
                fd = below
            yield fd, parts[-1]
        finally:
            if fd != self._root_fd:
                os.close(fd)

    def _checked_by_name(self, parts: Parts, *, make: bool) -> str:
        path = self.root
        for part in parts[:-1]:
            path = os.path.join(path, part)
            if make and not os.path.lexists(path):
                with contextlib.suppress(FileExistsError):
                    os.mkdir(path)
            if not stat.S_ISDIR(os.lstat(path).st_mode):
                raise NotADirectoryError(errno.ENOTDIR, "not a folder", path)
        return os.path.join(path, parts[-1])


def _step(fd: int, part: str, *, make: bool) -> int:
    try:
        return os.open(part, _FOLDER_FLAGS, dir_fd=fd)
    except FileNotFoundError:
        if not make:
            raise
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise NotADirectoryError(errno.ENOTDIR, "a symlink, not a folder", part) from error
        raise
    with contextlib.suppress(FileExistsError):
        os.mkdir(part, dir_fd=fd)
    return os.open(part, _FOLDER_FLAGS, dir_fd=fd)


def _kind(entry: os.DirEntry[str]) -> EntryKind:
    if entry.is_symlink():
        return "symlink"
    if entry.is_dir(follow_symlinks=False):
        return "folder"
    return "file" if entry.is_file(follow_symlinks=False) else "other"


def _write_all(file: int, data: bytes) -> None:
    remaining = memoryview(data)
    while remaining:
        remaining = remaining[os.write(file, remaining) :]


def _replace(source_fd: int, source: str, target_fd: int, target: str) -> bytes | None:
    """Move ``source`` over ``target`` atomically and return what was there, which ``source`` may now name.

    Renaming over an existing file makes ext4 flush the new file's data at once (auto_da_alloc), which
    costs over a millisecond. Exchanging the two does not, is as atomic, and leaves in our hands exactly
    what was replaced, so that a change made by someone else a moment ago cannot slip away unread.
    """
    exchange = _exchange()
    if exchange:
        names = (os.fsencode(source), os.fsencode(target))
        if exchange(source_fd, names[0], target_fd, names[1], _RENAME_EXCHANGE) == 0:
            try:
                return _read_file(source_fd, source)
            except OSError:
                exchange(source_fd, names[0], target_fd, names[1], _RENAME_EXCHANGE)
                raise
    try:
        previous = _read_file(target_fd, target)
    except FileNotFoundError:
        previous = None
    os.replace(source, target, src_dir_fd=source_fd, dst_dir_fd=target_fd)
    return previous


def _rewrite_spare(scratch_fd: int | None, name: str, data: bytes, mode: int) -> bool:
    """Put ``data`` into a file that was replaced earlier, instead of making a new one; False if it cannot be.

    A file system without a journal gets slower with every file that was removed lately, and any is quicker
    without that. But a reader may still have the old file open, and must not see it change: the kernel
    grants a write lease only on a file that nobody else has open. Nor may anyone have linked it.
    """
    if sys.platform != "linux" or len(data) > _LARGEST_SPARE:
        return False
    try:
        file = os.open(name, os.O_RDWR | _NONBLOCK | _FILE_FLAGS, dir_fd=scratch_fd)
    except OSError:
        return False
    try:
        found = os.fstat(file)
        if found.st_nlink != 1 or found.st_mode != mode or found.st_size > _LARGEST_SPARE:
            return False
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        _write_all(file, data)
        if found.st_size != len(data):
            os.ftruncate(file, len(data))
    except OSError:
        return False
    finally:
        os.close(file)
    return True


def _replace_by_name(source: str, target: str) -> bytes | None:
    previous = _read_file(None, target) if os.path.lexists(target) else None
    os.replace(source, target)
    return previous


def _read_file(fd: int | None, name: str, limit: int | None = None) -> bytes:
    """The bytes of a regular file, at most ``limit`` + 1. Raises `NotAFile` for anything else."""
    try:
        file = os.open(name, os.O_RDONLY | _NONBLOCK | _FILE_FLAGS, dir_fd=fd)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
            raise NotAFile(error.errno, "not a regular file", name) from error
        raise
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):
            raise NotAFile(errno.EINVAL, "not a regular file", name)
        most = sys.maxsize if limit is None else limit + 1
        data = os.read(file, min(found.st_size + 1, most))
        # Usually everything has come; a file that grows, or a large one, comes in several pieces.
        while len(data) < most and (more := os.read(file, min(1 << 20, most - len(data)))):
            data += more
        return data
    finally:
        os.close(file)


@cache
def _exchange() -> Callable[[int, bytes, int, bytes, int], int] | None:
    """renameat2(2), where the C library has it."""
    if sys.platform != "linux":
        return None
    import ctypes

    function = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if function is None:
        return None
    function.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
    function.restype = ctypes.c_int
    return function  # type: ignore[no-any-return]


def boot_id() -> str:
    """What tells one run of this machine from the next; empty where the system does not say."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


class ProcessLock:
    """Held by one process of a machine at a time, and let go by the kernel when its holder dies.

    The lock's file carries a short text that only the holder reads and writes. Not re-entrant, not for
    threads. Where there are no file locks (Windows) it always is free, and SQLite's own lock remains.
    """

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o666)

    def acquire(self) -> None:
        """Wait for the lock."""
        if sys.platform != "win32":
            fcntl.flock(self._fd, fcntl.LOCK_EX)

    def release(self) -> None:
        if sys.platform != "win32":
            fcntl.flock(self._fd, fcntl.LOCK_UN)

    def text(self) -> str:
        return _read_at_start(self._fd, 200).decode("ascii", "replace").partition("\n")[0].rstrip()

    def set_text(self, text: str) -> None:
        _write_at_start(self._fd, text.ljust(80).encode("ascii") + b"\n")

    def close(self) -> None:
        os.close(self._fd)


def _read_at_start(fd: int, count: int) -> bytes:
    if hasattr(os, "pread"):
        return os.pread(fd, count, 0)
    os.lseek(fd, 0, os.SEEK_SET)
    return os.read(fd, count)


def _write_at_start(fd: int, data: bytes) -> None:
    if hasattr(os, "pwrite"):
        os.pwrite(fd, data, 0)
    else:
        os.lseek(fd, 0, os.SEEK_SET)
        os.write(fd, data)
