"""The files in a task's folder: no path and no symlink leads out of it (TASKS)."""

from __future__ import annotations

import contextlib
import errno
import os
import re
from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import Final, NamedTuple

from watchroom import validation
from watchroom.disk import MAX_DEPTH, FileStamp, Folder, Found, Inspected, OutsideFolder, Parts
from watchroom.errors import NotFound, NotText
from watchroom.files import NotAFile
from watchroom.model import MAX_TEXT_BYTES
from watchroom.sandbox.errors import FolderDenied, PathTraversalBlocked
from watchroom.sandbox.repositories import CONTROL_FOLDER, is_git_name

_IGNORE_FILE: Final = ".gitignore"
_DRIVE: Final = re.compile(r"[A-Za-z]:")


class FolderSummary(NamedTuple):
    """How many files and folders there are, and their size in bytes. ``changed``: when the task's folder or
    anything in it was last modified, in nanoseconds since the epoch. ``is_complete``: whether all were
    counted; there may be more of them, or they may lie deeper, than is looked at."""

    files: int
    folders: int
    size: int
    changed: int
    is_complete: bool


class DiskUsage(NamedTuple):
    """The number of files, folders and links, and the bytes that they take on disk."""

    files: int
    bytes: int


class FolderScan(NamedTuple):
    """The regular files in a task's folder, by the parts of their paths, without git's own.

    - ``repositories``: the folders that have a ``.git``.
    - ``unreadable``: folders that cannot be read.
    - ``unnameable``: files that no path can name, because they are too deep or their names are too long.
    - ``is_complete``: whether everything was looked at.
    """

    files: list[tuple[Parts, Found]]
    repositories: list[Parts]
    unreadable: list[Parts]
    unnameable: list[Parts]
    usage: DiskUsage
    is_complete: bool


def normalize_task_path(path: str) -> str:
    """``path`` without a leading ``./``, if it is a safe path beneath a task's folder. Raises
    `PathTraversalBlocked` for whatever holds ``..`` or begins like an absolute path (TASKS-P1),
    `InvalidPath` for other rules of names."""
    if ".." in path:
        raise PathTraversalBlocked(given=validation.escape_unstorable(path, 120), rule="dot_part")
    if path.startswith(("/", "\\", "~")) or _DRIVE.match(path):
        raise PathTraversalBlocked(given=validation.escape_unstorable(path, 120), rule="absolute")
    while path.startswith("./"):
        path = path[2:]
    return validation.check_path(path)


class TaskFolder:
    """Reads, writes and lists files beneath ``path``, which is created if missing. Every step is opened by
    directory descriptor, so that a symlink that is swapped in at the wrong moment leads nowhere.

    Raises `FolderDenied` where the system refuses access, else OSError. Only one thread may write at a time.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        with self._access_errors(path):
            self._folder = _open(path)

    def close(self) -> None:
        """Close the folder, and remove the scratch folder in it."""
        self._folder.close()
        ignore = os.path.join(self._folder.scratch, _IGNORE_FILE)
        with contextlib.suppress(OSError):
            if os.listdir(self._folder.scratch) == [_IGNORE_FILE]:
                os.unlink(ignore)
        for own in (self._folder.scratch, os.path.dirname(self._folder.scratch)):
            # Another process may have its half-written files there.
            with contextlib.suppress(OSError):
                os.rmdir(own)

    def read_bytes(self, path: str, limit: int | None = None) -> bytes | None:
        """The bytes of the file at ``path``, at most ``limit`` + 1; None where there is none. Raises
        `PathTraversalBlocked` where a symlink is in the way, `NotText` where it is no regular file, and
        `FolderDenied`."""
        parts = _parts(path)
        try:
            with self._access_errors(path):
                found = self._folder.read(parts, limit)
        except NotAFile as error:
            self._check_symlinks(path, parts)
            raise NotText(rule="not_a_file") from error
        if found is None and self._folder.is_blocked(parts):
            self._check_symlinks(path, parts)
        return found

    def inspect(self, parts: Parts) -> Inspected | None:
        """The regular file at ``parts``, with its bytes if there are at most 10 MB and no holes; None where
        there is none. Raises `FolderDenied`."""
        with self._access_errors("/".join(parts)):
            return self._folder.inspect(parts, MAX_TEXT_BYTES)

    def stamp(self, parts: Parts) -> FileStamp | None:
        """The stamp of the regular file at ``parts``, by which a change is noticed; None where there is none.
        Raises `FolderDenied`."""
        with self._access_errors("/".join(parts)):
            return self._folder.stamp(parts)

    def read(self, path: str) -> str:
        """The text of the file at ``path``. Raises `NotFound`, `NotText`, `TooLarge`, and as `read_bytes`
        does."""
        data = self.read_bytes(path, MAX_TEXT_BYTES)
        if data is None:
            raise NotFound(path=path, zone=self.path)
        return validation.decode_text(data)

    def write(self, path: str, data: bytes, *, executable: bool = False) -> None:
        """Replace the file at ``path`` by ``data`` atomically, creating folders as needed; it may be executed
        afterwards if it is to be ``executable``. Raises as `read_bytes` does."""
        parts = _parts(path)
        try:
            with self._access_errors(path):
                self._put(parts, data, executable)
        except (NotADirectoryError, NotAFile) as error:
            self._check_symlinks(path, parts)
            raise NotText(rule="not_a_file") from error

    def remove(self, path: str) -> None:
        """Remove the file at ``path``, if it is there. Raises `PathTraversalBlocked`, `FolderDenied`."""
        parts = _parts(path)
        self._check_symlinks(path, parts)
        with self._access_errors(path):
            self._folder.remove(parts)

    def _put(self, parts: Parts, data: bytes, executable: bool) -> None:
        try:
            self._folder.write(parts, data, executable=executable)
        except FileNotFoundError:
            # Somebody cleaned up, and removed the scratch folder.
            if os.path.isdir(self._folder.scratch) or not os.path.isdir(self.path):
                raise
            self._folder.close()
            self._folder = _open(self.path)
            self._folder.write(parts, data, executable=executable)

    def entries(self, path: str = ".") -> list[Found]:
        """The entries of the folder at ``path``, in order of name. Raises `NotFound`,
        `PathTraversalBlocked`."""
        parts = () if path in (".", "", "./") else _parts(path)
        with self._access_errors(path):
            found = self._folder.entries(parts)
        if found is None:
            self._check_symlinks(path, parts)
            raise NotFound(path=path, zone=self.path)
        return [each for each in found if parts or each.name != CONTROL_FOLDER]

    def summary(self, max_entries: int) -> FolderSummary:
        """What there is, counted up to ``max_entries`` files and folders. Raises `FolderDenied` where a
        folder cannot be read."""
        files = folders = size = 0
        changed = self._folder.modified()
        unreadable: list[Parts] = []
        deeper: list[Parts] = []
        for _, entry in islice(self._walk(unreadable, deeper, max_entries, MAX_DEPTH), max_entries):
            if entry.kind == "folder":
                folders += 1
            else:
                files += 1
                size += entry.size
            changed = max(changed, entry.changed)
        if unreadable:
            path = validation.escape_unstorable("/".join(unreadable[0]), 200)
            raise FolderDenied(path=path, reason=os.strerror(errno.EACCES))
        is_complete = not deeper and files + folders < max_entries
        return FolderSummary(files, folders, size, changed, is_complete)

    def scan(self, max_entries: int) -> FolderScan:
        """What there is now, at most ``max_entries`` files and folders, those nearest to the top first."""
        unreadable: list[Parts] = []
        unnameable: list[Parts] = []
        files: list[tuple[Parts, Found]] = []
        repositories: list[Parts] = []
        count = allocated = 0
        walked = self._walk(
            unreadable, unnameable, max_entries, validation.MAX_PATH_PARTS, repositories=repositories
        )
        for parts, entry in islice(walked, max_entries):
            count += 1
            allocated += entry.allocated
            if len(os.fsencode("/".join(parts))) > validation.MAX_PATH_BYTES:
                unnameable.append(parts)
            elif entry.kind == "file":
                files.append((parts, entry))
        usage = DiskUsage(count, allocated)
        return FolderScan(files, repositories, unreadable, unnameable, usage, count < max_entries)

    def _walk(
        self,
        unreadable: list[Parts],
        deeper: list[Parts],
        max_entries: int,
        max_parts: int,
        *,
        repositories: list[Parts] | None = None,
    ) -> Iterator[tuple[Parts, Found]]:
        """Yield everything but the control folder, those nearest to the top first.

        - ``unreadable``: gets the folders that cannot be read.
        - ``deeper``: gets the folders that are not read because they are ``max_parts`` deep.
        - ``max_entries``: of a single folder.
        - ``repositories``: gets the folders that have a ``.git``, which is then left out.
        """
        waiting = deque[Parts]([()])
        while waiting:
            above = waiting.popleft()
            try:
                entries = self._folder.entries(above, max_entries) or ()
            except PermissionError:
                unreadable.append(above)
                continue
            for entry in entries:
                parts = (*above, entry.name)
                if parts == (CONTROL_FOLDER,):
                    continue
                if repositories is not None and is_git_name(entry.name):
                    repositories.append(above)
                    continue
                yield parts, entry
                if entry.kind == "folder":
                    (waiting if len(parts) < max_parts else deeper).append(parts)

    def _check_symlinks(self, path: str, parts: Parts) -> None:
        """Raise `PathTraversalBlocked` if a symlink is among the steps to ``parts``."""
        for depth in range(len(parts)):
            above = self._folder.entries(parts[:depth]) or ()
            if any(each.name == parts[depth] and each.kind == "symlink" for each in above):
                raise PathTraversalBlocked(given=path, rule="symlink")

    @contextlib.contextmanager
    def _access_errors(self, path: str) -> Iterator[None]:
        try:
            yield
        except OutsideFolder as error:
            given = validation.escape_unstorable(path, 120)
            raise PathTraversalBlocked(given=given, rule="dot_part") from error
        except PermissionError as error:
            raise FolderDenied(
                path=validation.escape_unstorable(path, 200), reason=error.strerror or ""
            ) from error


def _open(path: str) -> Folder:
    """The folder with a scratch folder for half-written files. What a command put there instead, such as a
    link that leads out, is renamed."""
    scratch = os.path.join(path, CONTROL_FOLDER, "tmp")
    for own in (os.path.dirname(scratch), scratch):
        if os.path.lexists(own) and (os.path.islink(own) or not os.path.isdir(own)):
            os.rename(own, f"{own}-{os.urandom(4).hex()}")
    folder = Folder(path, scratch)
    _ignore_all(scratch)
    return folder


def _ignore_all(scratch: str) -> None:
    """Have git ignore the folder ``scratch``: a person's ``git add -A`` would commit half-written files."""
    opened = os.open(scratch, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        file = os.open(_IGNORE_FILE, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=opened)
    except FileExistsError:
        return
    finally:
        os.close(opened)
    with os.fdopen(file, "w") as ignore:
        ignore.write("*\n")


def _parts(path: str) -> Parts:
    return tuple(normalize_task_path(path).split("/"))
