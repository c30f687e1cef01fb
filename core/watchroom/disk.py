"""Files beneath a root that no symlink can lead out of, replaced whole.

Every step from the root down is opened by directory descriptor with O_NOFOLLOW, so that a symlink swapped in
at the wrong moment gets nowhere.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import stat
import time
from collections.abc import Callable, Iterator
from typing import Final, Literal, NamedTuple

from watchroom.files import (
    FILE_FLAGS,
    NotAFile,
    has_holes,
    open_regular,
    read_file,
    read_opened,
    replace,
    rewrite_spare,
    write_all,
)
from watchroom.platforms import Platform, detect_platform

_FOLDER_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_SPARES: Final = 8
_SCRATCH_PREFIX: Final = "w"
_BLOCK: Final = 512
"""Bytes, by which a file's place on disk is counted."""
MAX_DEPTH: Final = 512
"""No deeper than this are folders looked into. No path of ours has so many parts."""

Parts = tuple[str, ...]
EntryKind = Literal["file", "folder", "symlink", "other"]


class Entry(NamedTuple):
    """Something found beneath a root, by its parts from there."""

    parts: Parts
    kind: EntryKind


class FileStamp(NamedTuple):
    """What is another one after each change of a file. ``changed`` is its ctime, in ns since the epoch."""

    inode: int
    changed: int
    size: int


class Inspected(NamedTuple):
    """A regular file as it is. ``data`` is None where it was not read; ``modified`` its mtime in ns.
    ``executable``: whether its owner may execute it."""

    stamp: FileStamp
    modified: int
    data: bytes | None
    executable: bool


class Found(NamedTuple):
    """What stands in a folder: ``size`` in bytes (0 of what is no file), ``changed`` its mtime in ns.
    ``allocated`` is what it takes on disk, in bytes."""

    name: str
    kind: EntryKind
    size: int
    changed: int
    stamp: FileStamp
    allocated: int


class OutsideFolder(OSError):
    """The parts do not name something beneath a folder: one is empty, ``..``, or holds a separator or NUL."""

    def __init__(self, parts: Parts) -> None:
        super().__init__(errno.EINVAL, "the path leads out of the folder", "/".join(parts))


class ScratchUnavailable(OSError):
    """The folder in which files are prepared cannot be made. The place of the file itself is not at fault."""


class Folder:
    """Reads, replaces and removes files beneath ``root``.

    ``scratch`` is a folder on the same file system where half-written files live until they are whole. What
    lies in the same folder of the root as it does is for this user alone. ``platform`` is the operating
    system (default: this machine's). Every method may raise OSError: `OutsideFolder` for parts that do not
    name something beneath ``root``.
    """

    def __init__(self, root: str, scratch: str, platform: Platform | None = None) -> None:
        self.platform = platform or detect_platform()
        self.root = root
        self.scratch = scratch
        self._private = os.path.relpath(scratch, root).partition(os.sep)[0]
        self._numbers = itertools.count(time.time_ns())
        os.makedirs(root, exist_ok=True)
        self._scratch_fd = self._open_scratch()
        try:
            self._root_fd = os.open(root, _FOLDER_FLAGS & ~os.O_NOFOLLOW)
        except BaseException:
            os.close(self._scratch_fd)
            raise
        self._is_closed = False
        self._spares: list[str] = []
        self._spare_mode = 0
        self._folds_case: bool | None = None
        self._has_modes: bool | None = None

    def _open_scratch(self) -> int:
        os.makedirs(self.scratch, exist_ok=True)
        return os.open(self.scratch, _FOLDER_FLAGS)

    def _ensure_scratch(self) -> None:
        """Make the scratch folder again if it was removed, as git and cleaners remove empty folders."""
        if os.fstat(self._scratch_fd).st_nlink == 0:
            try:
                new = self._open_scratch()
            except OSError as error:
                raise ScratchUnavailable(error.errno, error.strerror, error.filename) from error
            os.dup2(new, self._scratch_fd, inheritable=False)
            os.close(new)
            self._spares.clear()

    def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        try:
            while self._spares:
                self._drop(self._spares.pop())
        finally:
            os.close(self._root_fd)
            os.close(self._scratch_fd)

    def read(self, parts: Parts, limit: int | None = None) -> bytes | None:
        """The bytes of the file at ``parts`` (at most ``limit`` + 1), None where there is none. Raises
        `NotAFile`, OSError."""
        try:
            with self._place(parts) as (fd, name):
                return read_file(fd, name, limit)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def inspect(self, parts: Parts, most: int) -> Inspected | None:
        """The regular file at ``parts``, with its bytes where they are no more than ``most`` and it has no
        holes; None where there is no regular file."""
        try:
            with self._place(parts) as (fd, name):
                file, known = open_regular(fd, name)
        except (FileNotFoundError, NotADirectoryError, NotAFile):
            return None
        try:
            data = None
            if known.st_size <= most and not has_holes(file, known.st_size):
                data = read_opened(file, known.st_size, most)
                data = data if len(data) <= most else None
            return Inspected(_stamp(known), known.st_mtime_ns, data, bool(known.st_mode & stat.S_IXUSR))
        finally:
            os.close(file)

    def stamp(self, parts: Parts) -> FileStamp | None:
        """The stamp of the regular file at ``parts``, which is not opened; None where there is none."""
        try:
            with self._place(parts) as (fd, name):
                known = os.stat(name, dir_fd=fd, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return _stamp(known) if stat.S_ISREG(known.st_mode) else None

    def modified(self) -> int:
        """The mtime of the root itself, in nanoseconds since the epoch."""
        return os.fstat(self._root_fd).st_mtime_ns

    def is_executable(self, parts: Parts) -> bool | None:
        """Whether the owner may execute the regular file at ``parts``; None if there is no regular file.
        False on a file system without modes, such as FAT, where every file looks executable."""
        try:
            with self._place(parts) as (fd, name):
                mode = os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode
        except (FileNotFoundError, NotADirectoryError):
            return None
        if not stat.S_ISREG(mode):
            return None
        return bool(mode & stat.S_IXUSR) and self._keeps_modes()

    def _keeps_modes(self) -> bool:
        if self._has_modes is None:
            name = self._staged(b"", is_private=True)
            try:
                mode = os.stat(name, dir_fd=self._scratch_fd, follow_symlinks=False).st_mode
                self._has_modes = not mode & stat.S_IXUSR
            finally:
                self._drop(name)
        return self._has_modes

    def is_blocked(self, parts: Parts) -> bool:
        """Whether something other than a folder stands where a folder above ``parts`` should be. Raises
        `NotAFile` where something other than a file stands at ``parts``, OSError where it cannot be read."""
        try:
            with self._place(parts) as (fd, name):
                os.close(open_regular(fd, name)[0])
                return False
        except FileNotFoundError:
            return False
        except NotADirectoryError:
            return True

    def is_folder(self, parts: Parts) -> bool:
        """Whether a folder, and no symlink to one, is at ``parts``."""
        try:
            with self._place(parts) as (fd, name):
                return stat.S_ISDIR(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode)
        except (FileNotFoundError, NotADirectoryError):
            return False

    def other_spelling(self, parts: Parts) -> Parts | None:
        """What is on disk at ``parts`` under the same name but for upper and lower case, where the disk takes
        both for one, as that of macOS does; None elsewhere, and where nothing is."""
        if not self._takes_cases_for_one():
            return None
        _check_beneath(parts)
        for depth, part in enumerate(parts):
            above = parts[:depth]
            known = {name for name, _ in self._listed(above)}
            if part in known:
                continue
            other = next((name for name in known if name.casefold() == part.casefold()), None)
            return None if other is None else (*above, other)
        return None

    def _takes_cases_for_one(self) -> bool:
        if self._folds_case is None:
            name = self._staged(b"", is_private=True)
            try:
                self._folds_case = self.platform.folds_case(self._scratch_fd, name)
            finally:
                self._drop(name)
        return self._folds_case

    def write(
        self,
        parts: Parts,
        data: bytes,
        *,
        new: bool = False,
        look: Callable[[bytes | None], bool] | None = None,
        executable: bool = False,
    ) -> bytes | None:
        """Put ``data`` at ``parts``, making folders as needed. A reader sees the old file or the new one.

        Returns what it replaced, None if there was no file; ``new`` says that there is none, or that it does
        not matter. ``look`` is shown what is there before it is replaced, and says whether to go on. Raises
        `NotAFile` where something else stands. Not for two threads at a time.
        """
        with self._place(parts, make=True) as (folder, name):
            if look is not None and not look(_read_if_there(folder, name)):
                return None
            source = self._staged(data, is_private=parts[0] == self._private)
            try:
                if executable:
                    self._let_execute(source)
                if new:
                    os.replace(source, name, src_dir_fd=self._scratch_fd, dst_dir_fd=folder)
                    return None
                previous, is_kept = replace(self.platform, self._scratch_fd, source, folder, name)
            except BaseException:
                self._drop(source)
                raise
        if is_kept:
            self._spares.append(source)
            if len(self._spares) > _MOST_SPARES:
                self._drop(self._spares.pop(0))
        return previous

    def replace_if_other(self, parts: Parts, data: bytes, *, executable: bool = False) -> None:
        """Put ``data`` at ``parts``, unless that is what stands there, ``executable`` or not. Raises
        OSError."""
        if self.read(parts) != data or (self.is_executable(parts) or False) != executable:
            self.write(parts, data, executable=executable)

    def _staged(self, data: bytes, *, is_private: bool) -> str:
        """The name of a scratch file that holds ``data``."""
        self._ensure_scratch()
        while self._spares and not is_private:
            name = self._spares.pop()
            if rewrite_spare(self.platform, self._scratch_fd, name, data, self._spare_mode):
                return name
            self._drop(name)
        name = self._scratch_name()
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | FILE_FLAGS
        file = os.open(name, flags, 0o600 if is_private else 0o666, dir_fd=self._scratch_fd)
        try:
            if not self._spare_mode and not is_private:
                self._spare_mode = os.fstat(file).st_mode
            write_all(file, data)
        except BaseException:
            self._drop(name)
            raise
        finally:
            os.close(file)
        return name

    def _scratch_name(self) -> str:
        return f"{_SCRATCH_PREFIX}{os.getpid():x}-{next(self._numbers):x}"

    def _let_execute(self, name: str) -> None:
        """Let whoever may read the scratch file ``name`` execute it."""
        readers = os.stat(name, dir_fd=self._scratch_fd, follow_symlinks=False).st_mode & 0o777
        os.chmod(name, readers | (readers & 0o444) >> 2, dir_fd=self._scratch_fd)

    def _drop(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self._scratch_fd)

    def remove(self, parts: Parts, *, look: Callable[[bytes | None], None] | None = None) -> None:
        """Remove the file at ``parts``, if it is there, and the folders below the second level that it leaves
        empty. ``look`` is shown what is removed, None for what is no file: nobody finds it at ``parts`` any
        more, and it is not gone yet. Raises OSError."""
        try:
            with self._place(parts) as (fd, name):
                if look is None:
                    os.unlink(name, dir_fd=fd)
                else:
                    self._take_away(fd, name, look)
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

    def _take_away(self, folder: int, name: str, look: Callable[[bytes | None], None]) -> None:
        if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
        self._ensure_scratch()
        taken = self._scratch_name()
        os.rename(name, taken, src_dir_fd=folder, dst_dir_fd=self._scratch_fd)
        try:
            look(_read_if_file(self._scratch_fd, taken))
        except BaseException:
            # Where a newer one stands already, this one stays among the scratch files for as long as any.
            with contextlib.suppress(FileExistsError):
                os.link(taken, name, src_dir_fd=self._scratch_fd, dst_dir_fd=folder, follow_symlinks=False)
                self._drop(taken)
            raise
        self._drop(taken)

    def make(self, parts: Parts) -> None:
        """Make the folder ``parts`` and those above it."""
        with self._place((*parts, "."), make=True):
            pass

    def walk(self, parts: Parts = ()) -> Iterator[Entry]:
        """Everything beneath the folder ``parts`` that is not a folder, in no order, following no symlink.

        A folder that may not be read, or that lies `MAX_DEPTH` parts deep, is yielded itself.
        """
        waiting = [parts]
        while waiting:
            above = waiting.pop()
            try:
                found = self._listed(above)
            except PermissionError:
                yield Entry(above, "folder")
                continue
            for name, kind in found:
                if kind == "folder" and len(above) + 1 < MAX_DEPTH:
                    waiting.append((*above, name))
                else:
                    yield Entry((*above, name), kind)

    def _listed(self, parts: Parts) -> list[tuple[str, EntryKind]]:
        try:
            with self._place((*parts, ".")) as (fd, _), os.scandir(fd) as found:
                return [(entry.name, _kind(entry)) for entry in found]
        except (FileNotFoundError, NotADirectoryError):
            return []

    def entries(self, parts: Parts = (), limit: int | None = None) -> list[Found] | None:
        """What stands in the folder ``parts``, or ``limit`` of it, in order of name; None where there is no
        folder, or only a symlink to one."""
        try:
            with self._place((*parts, ".")) as (fd, _), os.scandir(fd) as found:
                known = (each for entry in found if (each := _found(entry)))
                return sorted(itertools.islice(known, limit))
        except (FileNotFoundError, NotADirectoryError):
            return None

    def clear_scratch(self, older_than: float) -> None:
        """Remove what writers that died left behind more than ``older_than`` seconds ago.

        Age alone does not tell: a clock that steps makes files old that are being written. Nor does the
        process alone: in a container its number means another one.
        """
        self._ensure_scratch()
        horizon = time.time() - older_than
        with os.scandir(self.scratch) as found:
            for entry in found:
                with contextlib.suppress(FileNotFoundError):
                    is_old = entry.stat(follow_symlinks=False).st_mtime < horizon
                    writer = _writer(entry.name)
                    if is_old and (writer is None or not _may_be_running(writer)):
                        os.unlink(entry.path)

    @contextlib.contextmanager
    def _place(self, parts: Parts, *, make: bool = False) -> Iterator[tuple[int, str]]:
        """Where ``parts`` is: a descriptor of its folder, and its name there."""
        _check_beneath(parts)
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


def _check_beneath(parts: Parts) -> None:
    """Raise `OutsideFolder` unless each of ``parts`` names an entry of a folder; the last may be the folder
    itself (``.``)."""
    for number, part in enumerate(parts, start=1):
        is_folder_itself = part == "." and number == len(parts)
        if part in ("", "..") or "/" in part or "\0" in part or (part == "." and not is_folder_itself):
            raise OutsideFolder(parts)


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


def _writer(name: str) -> int | None:
    """The number of the process that made the scratch file ``name``, None where it tells of none."""
    number, separator, _ = name.removeprefix(_SCRATCH_PREFIX).partition("-")
    try:
        return int(number, 16) if separator and name.startswith(_SCRATCH_PREFIX) else None
    except ValueError:
        return None


def _may_be_running(process: int) -> bool:
    """Whether a process of the number ``process`` runs on this machine. A number may mean another process
    than before, so that only False is certain."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _read_if_there(fd: int, name: str) -> bytes | None:
    try:
        return read_file(fd, name)
    except FileNotFoundError:
        return None


def _read_if_file(fd: int, name: str) -> bytes | None:
    try:
        return read_file(fd, name)
    except NotAFile:
        return None


def _found(entry: os.DirEntry[str]) -> Found | None:
    try:
        known = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return None
    kind = _kind(entry)
    size = known.st_size if kind == "file" else 0
    return Found(entry.name, kind, size, known.st_mtime_ns, _stamp(known), known.st_blocks * _BLOCK)


def _stamp(known: os.stat_result) -> FileStamp:
    return FileStamp(known.st_ino, known.st_ctime_ns, known.st_size)


def _kind(entry: os.DirEntry[str]) -> EntryKind:
    if entry.is_symlink():
        return "symlink"
    if entry.is_dir(follow_symlinks=False):
        return "folder"
    return "file" if entry.is_file(follow_symlinks=False) else "other"
