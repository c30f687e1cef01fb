"""The files of one task, beneath its folder: no path and no symlink leads out (spec 2, WorkspaceManager)."""

from __future__ import annotations

import contextlib
import errno
import os
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from watchroom import names
from watchroom.disk import Folder, Found, Parts
from watchroom.errors import NotFound, NotText
from watchroom.files import Digest, NotAFile
from watchroom.model import MAX_TEXT_BYTES
from watchroom.sandbox.errors import FolderDenied, PathTraversalBlocked

OWN: Final = ".watchroom"
"""The folder in a task's folder where half-written files live; it is no part of the workspace."""

_DRIVE: Final = re.compile(r"[A-Za-z]:")


class Info(NamedTuple):
    """What there is in all. ``changed``: when the newest file was, nanoseconds since the epoch."""

    files: int
    folders: int
    size: int
    changed: int


class Seen(NamedTuple):
    """All regular files, by their parts, but what git keeps for itself; and the folders that nobody here may
    look into."""

    files: list[tuple[Parts, Found]]
    closed: list[Parts]


def task_path(given: str) -> str:
    """``given``, if it is a safe path beneath a task's folder; a leading ``./`` is left out. Raises
    `PathTraversalBlocked` for whatever holds ``..`` or begins like an absolute path (spec 2, property 1),
    `InvalidPath` for other rules of names."""
    if ".." in given:
        raise PathTraversalBlocked(given=names.storable(given, 120), rule="dot_part")
    if given.startswith(("/", "\\", "~")) or _DRIVE.match(given):
        raise PathTraversalBlocked(given=names.storable(given, 120), rule="absolute")
    while given.startswith("./"):
        given = given[2:]
    return names.relative_path(given)


class TaskFolder:
    """Reads, writes and lists beneath ``path``, which is made if missing. Every step is opened by directory
    descriptor, so that a symlink that is swapped in at the wrong moment gets nowhere.

    Raises `FolderDenied` where the system refuses, OSError for the rest. Writes not for two at a time.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        with self._refusals(path):
            self._folder = Folder(path, os.path.join(path, OWN, "tmp"))

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

    def seen(self, parts: Parts, limit: int) -> bytes:
        """The bytes of a file that `look` has found, at most ``limit`` + 1: whatever it is called."""
        with self._refusals("/".join(parts)):
            return self._folder.read(parts, limit) or b""

    def digest(self, parts: Parts) -> Digest | None:
        """What tells a regular file of any size and name from others, None where there is none. Raises
        `FolderDenied`."""
        try:
            with self._refusals("/".join(parts)):
                return self._folder.digest(parts)
        except NotAFile:
            return None

    def read(self, path: str) -> str:
        """The text of a file. Raises `NotFound`, `NotText`, `TooLarge`, and what `data` raises."""
        data = self.data(path, MAX_TEXT_BYTES)
        if data is None:
            raise NotFound(path=path, zone=self.path)
        return names.decoded(data)

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
            scratch = self._folder.scratch
            self._folder.close()
            self._folder = Folder(self.path, scratch)
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

    def info(self) -> Info:
        """Raises `FolderDenied` where a folder cannot be looked into."""
        files = folders = size = changed = 0
        closed: list[Parts] = []
        for _, entry in self._walk((), closed):
            if entry.kind == "folder":
                folders += 1
            else:
                files += 1
                size += entry.size
            changed = max(changed, entry.changed)
        if closed:
            raise FolderDenied(
                path=names.storable("/".join(closed[0]), 200), reason=os.strerror(errno.EACCES)
            )
        return Info(files, folders, size, changed)

    def look(self) -> Seen:
        """What there is now."""
        closed: list[Parts] = []
        walked = self._walk((), closed)
        files = [(parts, each) for parts, each in walked if each.kind == "file" and parts[0] != ".git"]
        return Seen(files, closed)

    def _walk(self, above: Parts, closed: list[Parts]) -> Iterator[tuple[Parts, Found]]:
        """Everything beneath a folder; ``closed`` is told which of them cannot be looked into."""
        try:
            entries = self._folder.entries(above) or ()
        except PermissionError:
            closed.append(above)
            return
        for entry in entries:
            parts = (*above, entry.name)
            if parts == (OWN,):
                continue
            yield parts, entry
            if entry.kind == "folder":
                yield from self._walk(parts, closed)

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
            raise FolderDenied(path=names.storable(path, 200), reason=error.strerror or "") from error


def _parts(path: str) -> Parts:
    return tuple(task_path(path).split("/"))
