"""A task's folder: which folders are allowed, and access to its files. No path or symlink can lead out of it
(TASKS)."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from collections import deque
from collections.abc import Iterator
from contextlib import AbstractContextManager
from itertools import islice
from typing import Final, NamedTuple

from watchroom import validation
from watchroom.errors import FolderDenied, InvalidWorkspace, NotFound, NotText, PathTraversalBlocked
from watchroom.kernel.checkout.file_content import restored_if_refused
from watchroom.kernel.checkout.location import is_workspace
from watchroom.model import MAX_TEXT_BYTES
from watchroom.platform.disk import (
    MAX_DEPTH,
    FileStamp,
    Folder,
    Found,
    Inspected,
    OutsideFolder,
    Parts,
    ScratchUnavailable,
)
from watchroom.platform.files import NotAFile
from watchroom.platform.sandbox.repositories import CONTROL_FOLDER, is_git_folder, is_git_name, open_beneath
from watchroom.platform.sandbox.system_folders import is_system_folder

_SCRATCH: Final = (CONTROL_FOLDER, "tmp")
_IGNORE_FILE: Final = (*_SCRATCH, ".gitignore")
_DRIVE: Final = re.compile(r"[A-Za-z]:")


class FolderSummary(NamedTuple):
    """The number of files and folders, and their size in bytes.

    - ``changed``: the newest mtime in the folder, in nanoseconds since the epoch.
    - ``is_complete``: False if some entries were not counted, because there are too many or they are too
      deep.
    """

    files: int
    folders: int
    size: int
    changed: int
    is_complete: bool


class DiskUsage(NamedTuple):
    """The number of files, folders and symlinks, and the bytes that they take on disk."""

    files: int
    bytes: int


class FolderScan(NamedTuple):
    """The regular files in a task's folder by path, without git's own files.

    - ``repositories``: the folders with a ``.git``.
    - ``unreadable``: folders that cannot be read.
    - ``unnameable``: files whose paths are too deep or too long.
    - ``is_complete``: False if some folders were not read.
    """

    files: list[tuple[Parts, Found]]
    repositories: list[Parts]
    unreadable: list[Parts]
    unnameable: list[Parts]
    usage: DiskUsage
    is_complete: bool


def normalize_task_path(path: str) -> str:
    """Return ``path`` without a leading ``./``.

    Raise `PathTraversalBlocked` if it contains ``..`` or starts like an absolute path (TASKS-P1), and
    `InvalidPath` if it breaks another rule for paths.
    """
    if ".." in path:
        raise PathTraversalBlocked(given=validation.escape_unstorable(path, 120), rule="dot_part")
    if path.startswith(("/", "\\", "~")) or _DRIVE.match(path):
        raise PathTraversalBlocked(given=validation.escape_unstorable(path, 120), rule="absolute")
    while path.startswith("./"):
        path = path[2:]
    return validation.check_path(path)


def check_task_folder(given: str | os.PathLike[str], root: str) -> str:
    """Check that ``given`` can be the folder of a task in the workspace at ``root``. Return its real path.

    Nothing is created. Raise `InvalidWorkspace` in these cases:

    - The path is not absolute, is not a folder, or is a bare git repository.
    - The folder belongs to the system, contains the home folder, or shares files with this workspace.
    - The folder is in another workspace.
    """
    folder = check_unprotected(os.fspath(given), root)
    above = folder
    while True:
        if is_workspace(above):
            raise InvalidWorkspace(path=folder, rule="of_a_team")
        if above == os.path.dirname(above):
            break
        above = os.path.dirname(above)
    if os.path.exists(folder) and not os.path.isdir(folder):
        raise InvalidWorkspace(path=folder, rule="not_a_folder")
    if os.path.isdir(folder) and is_git_folder({each.casefold() for each in os.listdir(folder)}):
        # Its settings would be among the task's files, where commands can change them.
        raise InvalidWorkspace(path=folder, rule="bare_repository")
    return folder


def check_unprotected(given: str, root: str) -> str:
    """Return the real path of the folder ``given``.

    Raise `InvalidWorkspace` if the path is not absolute. Raise it as well if the folder contains the home
    folder, belongs to the system, or shares files with the workspace at ``root``.
    """
    folder = _resolve(given)
    home = os.path.realpath(os.path.expanduser("~"))
    if os.path.commonpath((folder, home)) == folder:
        raise InvalidWorkspace(path=folder, rule="too_wide")
    if is_system_folder(folder):
        raise InvalidWorkspace(path=folder, rule="of_the_system")
    if has_overlap(folder, os.path.realpath(root)):
        raise InvalidWorkspace(path=folder, rule="holds_the_journal")
    return folder


def _resolve(given: str) -> str:
    """Return the path of a folder without symlinks. The folder need not exist."""
    if not os.path.isabs(given) or "\0" in given or not validation.is_unicode(given):
        raise InvalidWorkspace(path=validation.escape_unstorable(given, 200), rule="not_absolute")
    return os.path.realpath(given)


def make_folder(folder: str) -> None:
    """Create ``folder`` if it is missing. Raise `InvalidWorkspace` if it cannot be created."""
    try:
        os.makedirs(folder, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise InvalidWorkspace(path=folder, rule="not_a_folder") from error
    except OSError as error:
        raise InvalidWorkspace(path=folder, rule="cannot_be_made") from error


def has_overlap(one: str, other: str) -> bool:
    """Return whether one of two real paths is inside the other. An empty path is inside no other."""
    return bool(one and other) and os.path.commonpath((one, other)) in (one, other)


class TaskFolder:
    """Reads, writes and lists files beneath ``path``, which is created if missing.

    Every folder on the path is opened by descriptor, so a symlink that is created between two steps is
    refused. Methods raise `FolderDenied` if the system denies access, and other OSErrors. Only one thread can
    write at a time.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        with self._access_errors(path):
            self._folder = _open(path)

    def close(self) -> None:
        """Close the folder, and remove the scratch folder in it."""
        self._folder.close()
        # Another process can have half-written files there.
        with contextlib.suppress(OSError), _opened(self.path) as root:
            _remove_scratch(root)

    def read_bytes(self, path: str, limit: int | None = None) -> bytes | None:
        """Return the bytes of the file at ``path``, at most ``limit`` + 1; None if there is no file.

        Raise `PathTraversalBlocked` at a symlink, `NotText` if it is not a regular file, and `FolderDenied`.
        """
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
        """Return the regular file at ``parts``, None if there is none.

        Its content is read only if it is at most 10 MB and not sparse. Raise `FolderDenied`.
        """
        with self._access_errors("/".join(parts)):
            return self._folder.inspect(parts, MAX_TEXT_BYTES)

    def stamp(self, parts: Parts) -> FileStamp | None:
        """Return the stamp of the regular file at ``parts``, None if there is none. Raise `FolderDenied`."""
        with self._access_errors("/".join(parts)):
            return self._folder.stamp(parts)

    def read(self, path: str) -> str:
        """Return the text of a file. Raise `NotFound`, `NotText`, `TooLarge`, and the errors of
        `read_bytes`."""
        data = self.read_bytes(path, MAX_TEXT_BYTES)
        if data is None:
            raise NotFound(path=path, zone=self.path)
        return validation.decode_text(data)

    def write(self, path: str, data: bytes, *, executable: bool = False) -> None:
        """Replace the file at ``path`` by ``data`` atomically, and create missing folders.

        ``executable``: everyone who can read the file can execute it. Raise the errors of `read_bytes`.
        """
        parts = _parts(path)
        try:
            with self._access_errors(path):
                self._put(parts, data, executable)
        except (NotADirectoryError, NotAFile) as error:
            self._check_symlinks(path, parts)
            raise NotText(rule="not_a_file") from error

    def remove(self, path: str) -> None:
        """Remove the file at ``path``, if there is one, and its empty parents. Raise `PathTraversalBlocked`,
        `FolderDenied`."""
        parts = _parts(path)
        self._check_symlinks(path, parts)
        with self._access_errors(path):
            self._folder.remove(parts, kept=0)

    def restored_if_refused(self, parts: Parts, before: Inspected | None) -> AbstractContextManager[None]:
        """Restore the file at ``parts``, which was just written, if its row, which the context commits, is
        refused. ``before``: the file before, None if there was none. Raise `FileUnrecorded`."""
        return restored_if_refused(self._folder, parts, before)

    def _put(self, parts: Parts, data: bytes, executable: bool) -> None:
        try:
            self._folder.write(parts, data, executable=executable)
        except (FileNotFoundError, ScratchUnavailable):
            # Another program or a command has removed or replaced the scratch folder.
            if not os.path.isdir(self.path):
                raise
            self._folder.close()
            self._folder = _open(self.path)
            self._folder.write(parts, data, executable=executable)

    def entries(self, path: str = ".") -> list[Found]:
        """Return the entries of the folder at ``path``. Raise `NotFound`, `PathTraversalBlocked`."""
        parts = () if path in (".", "", "./") else _parts(path)
        with self._access_errors(path):
            found = self._folder.entries(parts)
        if found is None:
            self._check_symlinks(path, parts)
            raise NotFound(path=path, zone=self.path)
        return [each for each in found if parts or each.name != CONTROL_FOLDER]

    def summary(self, max_entries: int) -> FolderSummary:
        """Count up to ``max_entries`` files and folders. Raise `FolderDenied` if a folder cannot be read."""
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
        """List at most ``max_entries`` files and folders, level by level from the top."""
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
        """Yield all entries except the control folder, level by level from the top.

        - ``unreadable``: receives the folders that cannot be read.
        - ``deeper``: receives the folders that are not read because they are ``max_parts`` deep.
        - ``max_entries``: the limit for each folder.
        - ``repositories``: receives the folders with a ``.git``. The ``.git`` itself is not yielded.
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
        """Raise `PathTraversalBlocked` if ``parts`` or a parent is a symlink."""
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
    """Open the folder, with a scratch folder for half-written files.

    If a command has put anything else at the path of the scratch folder, such as a symlink, it is renamed.
    """
    os.makedirs(path, exist_ok=True)
    with _opened(path) as root:
        _set_aside(root, _SCRATCH[:1])
        _set_aside(root, _SCRATCH)
    folder = Folder(path, os.path.join(path, *_SCRATCH))
    if folder.stamp(_IGNORE_FILE) is None:
        # Without it, `git add -A` would commit half-written files.
        folder.write(_IGNORE_FILE, b"*\n", new=True)
    return folder


@contextlib.contextmanager
def _opened(path: str) -> Iterator[int]:
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield folder
    finally:
        os.close(folder)


def _set_aside(root: int, parts: Parts) -> None:
    """Rename the entry at ``parts`` beneath ``root``, a descriptor, unless it is a folder."""
    with contextlib.suppress(FileNotFoundError):
        above = open_beneath(root, parts[:-1], os.O_RDONLY | os.O_DIRECTORY)
        try:
            if not stat.S_ISDIR(os.stat(parts[-1], dir_fd=above, follow_symlinks=False).st_mode):
                other = f"{parts[-1]}-{os.urandom(4).hex()}"
                os.rename(parts[-1], other, src_dir_fd=above, dst_dir_fd=above)
        finally:
            os.close(above)


def _remove_scratch(root: int) -> None:
    """Remove the scratch folder beneath ``root``, a descriptor. Raise OSError if it is not empty."""
    control = open_beneath(root, _SCRATCH[:1], os.O_RDONLY | os.O_DIRECTORY)
    try:
        scratch = open_beneath(root, _SCRATCH, os.O_RDONLY | os.O_DIRECTORY)
        try:
            if os.listdir(scratch) == [_IGNORE_FILE[-1]]:
                os.unlink(_IGNORE_FILE[-1], dir_fd=scratch)
        finally:
            os.close(scratch)
        os.rmdir(_SCRATCH[-1], dir_fd=control)
    finally:
        os.close(control)
    os.rmdir(CONTROL_FOLDER, dir_fd=root)


def _parts(path: str) -> Parts:
    return tuple(normalize_task_path(path).split("/"))
