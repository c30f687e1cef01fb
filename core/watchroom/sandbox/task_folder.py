"""The files of one task, beneath its folder: no path and no symlink leads out (spec 2, WorkspaceManager)."""

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
from watchroom.disk import MAX_DEPTH, FileStamp, Folder, Found, Inspected, Parts
from watchroom.errors import NotFound, NotText
from watchroom.files import NotAFile
from watchroom.model import MAX_TEXT_BYTES
from watchroom.sandbox.errors import FolderDenied, PathTraversalBlocked
from watchroom.sandbox.repositories import is_git_name

OWN: Final = ".watchroom"
"""The folder in a task's folder where half-written files live; it is no part of the workspace."""

_DRIVE: Final = re.compile(r"[A-Za-z]:")


class Info(NamedTuple):
    """What there is in all. ``changed``: when the newest file was, nanoseconds since the epoch. ``is_whole``:
    whether all of it was counted; there may be more, or it may lie deeper, than anybody looks."""

    files: int
    folders: int
    size: int
    changed: int
    is_whole: bool


class DiskUsage(NamedTuple):
    """Files, folders and links, and the bytes that they take on disk."""

    files: int
    bytes: int


class FolderScan(NamedTuple):
    """The regular files in a task's folder, by their parts, but what git keeps for itself.

    ``closed`` are folders that nobody here may look into; ``beyond`` what no path can name, because it lies
    too deep or its name is too long. ``is_whole``: whether all was looked at, and not only as much as wanted.
    """

    files: list[tuple[Parts, Found]]
    closed: list[Parts]
    beyond: list[Parts]
    usage: DiskUsage
    is_whole: bool


def task_path(given: str) -> str:
    """``given``, if it is a safe path beneath a task's folder; a leading ``./`` is left out. Raises
    `PathTraversalBlocked` for whatever holds ``..`` or begins like an absolute path (spec 2, property 1),
    `InvalidPath` for other rules of names."""
    if ".." in given:
        raise PathTraversalBlocked(given=validation.escape_unstorable(given, 120), rule="dot_part")
    if given.startswith(("/", "\\", "~")) or _DRIVE.match(given):
        raise PathTraversalBlocked(given=validation.escape_unstorable(given, 120), rule="absolute")
    while given.startswith("./"):
        given = given[2:]
    return validation.check_path(given)


class TaskFolder:
    """Reads, writes and lists beneath ``path``, which is made if missing. Every step is opened by directory
    descriptor, so that a symlink that is swapped in at the wrong moment gets nowhere.

    Raises `FolderDenied` where the system refuses, OSError for the rest. Writes not for two at a time.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        with self._refusals(path):
            self._folder = _opened(path)

    def close(self) -> None:
        """Let go of the folder, and take away what was ours in it."""
        self._folder.close()
        for own in (self._folder.scratch, os.path.dirname(self._folder.scratch)):
            # Another process may have its half-written files there.
            with contextlib.suppress(OSError):
                os.rmdir(own)

    def data(self, path: str, limit: int | None = None) -> bytes | None:
        """The bytes of a file, at most ``limit`` + 1; None where there is none. Raises
        `PathTraversalBlocked` where a symlink stands in the way, `NotText` where it is no regular file."""
        parts = _parts(path)
        try:
            with self._refusals(path):
                found = self._folder.read(parts, limit)
        except NotAFile as error:
            self._check_steps(path, parts)
            raise NotText(rule="not_a_file") from error
        if found is None and self._folder.is_blocked(parts):
            self._check_steps(path, parts)
        return found

    def inspect(self, parts: Parts) -> Inspected | None:
        """A regular file of any name, with its bytes if there are at most 10 MB and no holes; None where
        there is none. Raises `FolderDenied`."""
        with self._refusals("/".join(parts)):
            return self._folder.inspect(parts, MAX_TEXT_BYTES)

    def stamp(self, parts: Parts) -> FileStamp | None:
        """What tells a regular file from what it was and will be; None where there is none. Raises
        `FolderDenied`."""
        with self._refusals("/".join(parts)):
            return self._folder.stamp(parts)

    def read(self, path: str) -> str:
        """The text of a file. Raises `NotFound`, `NotText`, `TooLarge`, and what `data` raises."""
        data = self.data(path, MAX_TEXT_BYTES)
        if data is None:
            raise NotFound(path=path, zone=self.path)
        return validation.decode_text(data)

    def write(self, path: str, data: bytes) -> None:
        """Put a file there whole, making folders as needed. Raises what `data` raises."""
        parts = _parts(path)
        try:
            with self._refusals(path):
                self._put(parts, data)
        except (NotADirectoryError, NotAFile) as error:
            self._check_steps(path, parts)
            raise NotText(rule="not_a_file") from error

    def _put(self, parts: Parts, data: bytes) -> None:
        try:
            self._folder.write(parts, data)
        except FileNotFoundError:
            # Somebody cleaned up, and took our own folder away.
            if os.path.isdir(self._folder.scratch) or not os.path.isdir(self.path):
                raise
            self._folder.close()
            self._folder = _opened(self.path)
            self._folder.write(parts, data)

    def entries(self, path: str = ".") -> list[Found]:
        """What stands in a folder, in order of name. Raises `NotFound`, `PathTraversalBlocked`."""
        parts = () if path in (".", "", "./") else _parts(path)
        with self._refusals(path):
            found = self._folder.entries(parts)
        if found is None:
            self._check_steps(path, parts)
            raise NotFound(path=path, zone=self.path)
        return [each for each in found if parts or each.name != OWN]

    def info(self, most: int) -> Info:
        """What there is, counted up to ``most`` files and folders. Raises `FolderDenied` where a folder
        cannot be looked into."""
        files = folders = size = changed = 0
        closed: list[Parts] = []
        deeper: list[Parts] = []
        for _, entry in islice(self._walk(closed, deeper, most, MAX_DEPTH), most):
            if entry.kind == "folder":
                folders += 1
            else:
                files += 1
                size += entry.size
            changed = max(changed, entry.changed)
        if closed:
            raise FolderDenied(
                path=validation.escape_unstorable("/".join(closed[0]), 200), reason=os.strerror(errno.EACCES)
            )
        return Info(files, folders, size, changed, not deeper and files + folders < most)

    def scan(self, most: int) -> FolderScan:
        """What there is now, at most so many files and folders, those nearest to the top first."""
        closed: list[Parts] = []
        beyond: list[Parts] = []
        files: list[tuple[Parts, Found]] = []
        count = allocated = 0
        walked = self._walk(closed, beyond, most, validation.MAX_PATH_PARTS, histories=False)
        for parts, entry in islice(walked, most):
            count += 1
            allocated += entry.allocated
            if len(os.fsencode("/".join(parts))) > validation.MAX_PATH_BYTES:
                beyond.append(parts)
            elif entry.kind == "file":
                files.append((parts, entry))
        return FolderScan(files, closed, beyond, DiskUsage(count, allocated), count < most)

    def _walk(
        self,
        closed: list[Parts],
        deeper: list[Parts],
        most: int,
        most_parts: int,
        *,
        histories: bool = True,
    ) -> Iterator[tuple[Parts, Found]]:
        """Everything but what is ours and, unless wanted, what git keeps for itself, the nearest to the top
        first; of a single folder at most ``most``. ``closed`` is told which folders cannot be looked into,
        ``deeper`` which were not, because they are ``most_parts`` deep."""
        waiting = deque[Parts]([()])
        while waiting:
            above = waiting.popleft()
            try:
                entries = self._folder.entries(above, most) or ()
            except PermissionError:
                closed.append(above)
                continue
            for entry in entries:
                parts = (*above, entry.name)
                if parts == (OWN,) or (is_git_name(entry.name) and not histories):
                    continue
                yield parts, entry
                if entry.kind == "folder":
                    (waiting if len(parts) < most_parts else deeper).append(parts)

    def _check_steps(self, path: str, parts: Parts) -> None:
        """Raise `PathTraversalBlocked` if a symlink is among the steps to ``parts``."""
        for depth in range(len(parts)):
            above = self._folder.entries(parts[:depth]) or ()
            if any(each.name == parts[depth] and each.kind == "symlink" for each in above):
                raise PathTraversalBlocked(given=path, rule="symlink")

    @contextlib.contextmanager
    def _refusals(self, path: str) -> Iterator[None]:
        try:
            yield
        except PermissionError as error:
            raise FolderDenied(
                path=validation.escape_unstorable(path, 200), reason=error.strerror or ""
            ) from error


def _opened(path: str) -> Folder:
    """The folder with a place for half-written files. What a command put there instead, such as a link that
    leads out, gets another name."""
    scratch = os.path.join(path, OWN, "tmp")
    for own in (os.path.dirname(scratch), scratch):
        if os.path.lexists(own) and (os.path.islink(own) or not os.path.isdir(own)):
            os.rename(own, f"{own}-{os.urandom(4).hex()}")
    return Folder(path, scratch)


def _parts(path: str) -> Parts:
    return tuple(task_path(path).split("/"))
