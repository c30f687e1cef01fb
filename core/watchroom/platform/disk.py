"""Files beneath a root folder: no symlink leads out of it, and writes are atomic.

Every folder from the root down is opened by descriptor with O_NOFOLLOW. So a symlink that is created between
two steps is refused.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import re
import stat
import time
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Final, Literal, NamedTuple

from watchroom.platform import Platform, detect_platform
from watchroom.platform.files import (
    FILE_FLAGS,
    NotAFile,
    has_holes,
    open_regular,
    read_file,
    read_opened,
    replace_file,
    rewrite_spare,
    write_all,
)

_FOLDER_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MAX_SPARES: Final = 8
_SCRATCH_PREFIX: Final = "w"
_SEPARATOR: Final = re.compile("[/\0]")
_BLOCK: Final = 512
"""Bytes of a block, the unit of `st_blocks`."""
MAX_DEPTH: Final = 512
"""Maximum depth of folders that are read. No path of Watchroom has as many parts."""

Parts = tuple[str, ...]
EntryKind = Literal["file", "folder", "symlink", "other"]


class Entry(NamedTuple):
    """A directory entry. ``parts``: its path from the root."""

    parts: Parts
    kind: EntryKind


class FileStamp(NamedTuple):
    """Identifies one state of a file. ``changed``: its ctime, in nanoseconds since the epoch."""

    inode: int
    changed: int
    size: int


class Inspected(NamedTuple):
    """A regular file.

    - ``modified``: its mtime, in nanoseconds since the epoch.
    - ``data``: its content, None if it was not read.
    - ``executable``: whether its owner can execute it.
    """

    stamp: FileStamp
    modified: int
    data: bytes | None
    executable: bool


class Found(NamedTuple):
    """An entry of a folder.

    - ``size``: bytes, 0 unless it is a file.
    - ``changed``: its mtime, in nanoseconds since the epoch.
    - ``allocated``: its disk usage in bytes.
    """

    name: str
    kind: EntryKind
    size: int
    changed: int
    stamp: FileStamp
    allocated: int


class OutsideFolder(OSError):
    """A path leads out of the folder: a part is empty or ``..``, or contains a separator or NUL."""

    def __init__(self, parts: Parts) -> None:
        super().__init__(errno.EINVAL, "the path leads out of the folder", "/".join(parts))


class ScratchUnavailable(OSError):
    """The scratch folder cannot be created. The path of the file is not the reason."""


class Folder:
    """Reads, replaces and removes files beneath ``root``.

    - ``scratch``: a folder on the same file system for half-written files. Files in the same top-level folder
      of the root as the scratch folder are readable only by this user.
    - ``platform``: the operating system, default this machine's.
    - ``is_made``: make ``root`` if it does not exist, default True.

    Every method can raise OSError, and `OutsideFolder` for parts that lead out of ``root``.
    """

    def __init__(
        self, root: str, scratch: str, platform: Platform | None = None, *, is_made: bool = True
    ) -> None:
        self.platform = platform or detect_platform()
        self.root = root
        self.scratch = scratch
        self._private = os.path.relpath(scratch, root).partition(os.sep)[0]
        self._numbers = itertools.count(time.time_ns())
        if is_made:
            os.makedirs(root, exist_ok=True)
        self._scratch_fd = self._open_scratch()
        try:
            self._root_fd = os.open(root, _FOLDER_FLAGS & ~os.O_NOFOLLOW)
        except BaseException:
            os.close(self._scratch_fd)
            raise
        self._is_closed = False
        self._spares: dict[Parts, str] = {}
        """Replaced files that are kept among the scratch files, by their former place, oldest first."""
        self._spare_mode = 0

    def _open_scratch(self) -> int:
        """Open the scratch folder, and create it if it is missing. Beneath the root, no symlink is
        followed."""
        parts = os.path.relpath(self.scratch, self.root).split(os.sep)
        if parts[0] == os.pardir:
            os.makedirs(self.scratch, exist_ok=True)
            return os.open(self.scratch, _FOLDER_FLAGS)
        fd = os.open(self.root, _FOLDER_FLAGS & ~os.O_NOFOLLOW)
        for part in parts:
            above = fd
            try:
                fd = _step(above, part, make=True)
            finally:
                os.close(above)
        return fd

    def _ensure_scratch(self) -> None:
        """Create the scratch folder again if it was removed, because git and cleaning programs remove empty
        folders."""
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
                self._drop(self._spares.popitem()[1])
        finally:
            os.close(self._root_fd)
            os.close(self._scratch_fd)
            # The kernel gives these numbers to the folders that are opened next.
            self._root_fd = self._scratch_fd = -1

    def read(self, parts: Parts, limit: int | None = None) -> bytes | None:
        """Return the bytes of the file at ``parts``, at most ``limit`` + 1; None if there is no file. Raise
        `NotAFile`."""
        try:
            with self._place(parts) as (fd, name):
                return read_file(fd, name, limit)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def inspect(self, parts: Parts, most: int) -> Inspected | None:
        """Return the regular file at ``parts``, None if there is none.

        Its content is read only if it has at most ``most`` bytes and is not sparse.
        """
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
        """Return the stamp of the regular file at ``parts`` without opening it; None if there is none."""
        try:
            with self._place(parts) as (fd, name):
                known = os.stat(name, dir_fd=fd, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return _stamp(known) if stat.S_ISREG(known.st_mode) else None

    def modified(self) -> int:
        """Return the mtime of the root in nanoseconds since the epoch."""
        return os.fstat(self._root_fd).st_mtime_ns

    def is_executable(self, parts: Parts) -> bool | None:
        """Return whether the owner can execute the regular file at ``parts``; None if there is none.

        On a file system without modes, such as FAT, every file looks executable: this returns False.
        """
        try:
            with self._place(parts) as (fd, name):
                mode = os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode
        except (FileNotFoundError, NotADirectoryError):
            return None
        if not stat.S_ISREG(mode):
            return None
        return bool(mode & stat.S_IXUSR) and self._keeps_modes

    @cached_property
    def _keeps_modes(self) -> bool:
        name = self._staged(b"", is_private=True)
        try:
            mode = os.stat(name, dir_fd=self._scratch_fd, follow_symlinks=False).st_mode
            return not mode & stat.S_IXUSR
        finally:
            self._drop(name)

    def is_blocked(self, parts: Parts) -> bool:
        """Return whether a parent of ``parts`` exists and is not a folder. Raise `NotAFile` if ``parts``
        itself is not a file."""
        try:
            with self._place(parts) as (fd, name):
                os.close(open_regular(fd, name)[0])
                return False
        except FileNotFoundError:
            return False
        except NotADirectoryError:
            return True

    def is_folder(self, parts: Parts) -> bool:
        """Return whether ``parts`` is a folder. A symlink to a folder is not."""
        try:
            with self._place(parts) as (fd, name):
                return stat.S_ISDIR(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode)
        except (FileNotFoundError, NotADirectoryError):
            return False

    def other_spelling(self, parts: Parts) -> Parts | None:
        """Return the path on disk that differs from ``parts`` only in case.

        None if there is none. Only for file systems that do not distinguish case: see `folds_case`.
        """
        for depth, part in enumerate(parts):
            above = parts[:depth]
            known = {name for name, _ in self._listed(above)}
            if part in known:
                continue
            other = next((name for name in known if name.casefold() == part.casefold()), None)
            return None if other is None else (*above, other)
        return None

    @cached_property
    def folds_case(self) -> bool:
        """Whether the file system does not distinguish case, as on macOS."""
        name = self._staged(b"", is_private=True)
        try:
            return self.platform.folds_case(self._scratch_fd, name)
        finally:
            self._drop(name)

    def write(
        self,
        parts: Parts,
        data: bytes,
        *,
        new: bool = False,
        look: Callable[[bytes | None], bool] | None = None,
        executable: bool = False,
    ) -> bytes | None:
        """Replace the file at ``parts`` by ``data`` atomically, and create missing folders.

        - ``new``: do not read the old file, because it does not exist or does not matter.
        - ``look``: called with the old content, None if there is no file. If it returns False, nothing is
          written.
        - ``executable``: whether everyone who can read the file can execute it.

        Return the old content, None if there was no file. Raise `NotAFile` if the path is not a file. Only
        one thread can write at a time.
        """
        is_private = parts[0] == self._private
        with self._place(parts, make=True) as (folder, name):
            if look is not None and not look(read_file(folder, name)):
                return None
            source = self._staged(data, is_private=is_private, parts=parts)
            try:
                if executable:
                    self._let_execute(source)
                if new:
                    os.replace(source, name, src_dir_fd=self._scratch_fd, dst_dir_fd=folder)
                    return None
                previous, is_kept = replace_file(self.platform, self._scratch_fd, source, folder, name)
            except BaseException:
                self._drop(source)
                raise
        if is_kept and is_private:
            self._drop(source)
        elif is_kept:
            self._spares[parts] = source
            if len(self._spares) > _MAX_SPARES:
                self._drop(self._spares.pop(next(iter(self._spares))))
        return previous

    def put_back(self, parts: Parts) -> bool:
        """Put the file back that the last `write` at ``parts`` replaced. Return False if it is not at hand.

        The file itself returns, with its mode. So a full disk does not matter.
        """
        spare = self._spares.pop(parts, None)
        if spare is None:
            return False
        try:
            with self._place(parts) as (folder, name):
                os.replace(spare, name, src_dir_fd=self._scratch_fd, dst_dir_fd=folder)
        except FileNotFoundError:
            # Another program has removed the scratch file, or the folder.
            return False
        return True

    def replace_if_other(self, parts: Parts, data: bytes, *, executable: bool = False) -> None:
        """Write ``data`` to ``parts`` unless the file has this content and this ``executable`` bit."""
        if self.read(parts) != data or (self.is_executable(parts) or False) != executable:
            self.write(parts, data, executable=executable)

    def _staged(self, data: bytes, *, is_private: bool, parts: Parts = ()) -> str:
        """Return the name of a scratch file that contains ``data``, for the file at ``parts``."""
        self._ensure_scratch()
        # For a growing file, only the end must be written. A spare of another path would be as fast, but if
        # the power fails before it is synced, this path would have a text of the other path.
        spare = None if is_private else self._spares.pop(parts, None)
        if spare is not None:
            if rewrite_spare(self.platform, self._scratch_fd, spare, data, self._spare_mode):
                return spare
            self._drop(spare)
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
        """Let everyone who can read the scratch file ``name`` execute it."""
        readers = os.stat(name, dir_fd=self._scratch_fd, follow_symlinks=False).st_mode & 0o777
        os.chmod(name, readers | (readers & 0o444) >> 2, dir_fd=self._scratch_fd)

    def _drop(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self._scratch_fd)

    def remove(
        self, parts: Parts, *, look: Callable[[bytes | None], None] | None = None, kept: int = 2
    ) -> None:
        """Remove the file at ``parts``, if there is one, and its empty parents. The parents on the first
        ``kept`` levels stay.

        ``look`` is called with the content, None if it is not a regular file. At that moment, the file is no
        longer at ``parts``. If ``look`` raises, the file is restored.
        """
        if (spare := self._spares.pop(parts, None)) is not None:
            self._drop(spare)
        try:
            with self._place(parts) as (fd, name):
                if look is None:
                    os.unlink(name, dir_fd=fd)
                else:
                    self._take_away(fd, name, look)
        except (FileNotFoundError, NotADirectoryError):
            return
        for depth in range(len(parts) - 1, kept, -1):
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
            # If a newer file is already at the path, this file stays in the scratch folder.
            with contextlib.suppress(FileExistsError):
                os.link(taken, name, src_dir_fd=self._scratch_fd, dst_dir_fd=folder, follow_symlinks=False)
                self._drop(taken)
            raise
        self._drop(taken)

    def make(self, parts: Parts) -> None:
        """Create the folder ``parts`` and its parents."""
        with self._place((*parts, "."), make=True):
            pass

    def walk(self, parts: Parts = ()) -> Iterator[Entry]:
        """Yield all entries beneath the folder ``parts`` that are not folders, in any order.

        Symlinks are not followed. A folder that cannot be read, or that is `MAX_DEPTH` deep, is itself
        yielded.
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
        """Return the entries of the folder ``parts`` by name, at most ``limit``; None if it is not a
        folder."""
        try:
            with self._place((*parts, ".")) as (fd, _), os.scandir(fd) as found:
                known = (each for entry in found if (each := _found(entry)))
                return sorted(itertools.islice(known, limit))
        except (FileNotFoundError, NotADirectoryError):
            return None

    def clear_scratch(self, older_than: float) -> None:
        """Remove scratch files of dead writers that are older than ``older_than`` seconds.

        Age alone is not enough: if the clock is changed, a file that is being written looks old. The writer's
        process id alone is also not enough: in a container, the same id is another process.
        """
        self._ensure_scratch()
        horizon = time.time() - older_than
        with os.scandir(self._scratch_fd) as found:
            for entry in found:
                with contextlib.suppress(FileNotFoundError):
                    is_old = entry.stat(follow_symlinks=False).st_mtime < horizon
                    writer = _writer(entry.name)
                    if is_old and (writer is None or not _may_be_running(writer)):
                        os.unlink(entry.name, dir_fd=self._scratch_fd)

    @contextlib.contextmanager
    def _place(self, parts: Parts, *, make: bool = False) -> Iterator[tuple[int, str]]:
        """Yield a descriptor of the folder of ``parts``, and the name in it. ``.`` is the folder itself."""
        *folders, name = parts
        if "" in parts or ".." in parts or "." in folders or _SEPARATOR.search("".join(parts)):
            raise OutsideFolder(parts)
        fd = self._root_fd
        try:
            for part in folders:
                below = _step(fd, part, make=make)
                if fd != self._root_fd:
                    os.close(fd)
                fd = below
            yield fd, name
        finally:
            if fd != self._root_fd:
                os.close(fd)


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
    """Return the id of the process that created the scratch file ``name``, None if the name does not contain
    one."""
    number, separator, _ = name.removeprefix(_SCRATCH_PREFIX).partition("-")
    try:
        return int(number, 16) if separator and name.startswith(_SCRATCH_PREFIX) else None
    except ValueError:
        return None


def _may_be_running(process: int) -> bool:
    """Return whether a process with this id is running. Only False is certain, because ids are reused."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


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
