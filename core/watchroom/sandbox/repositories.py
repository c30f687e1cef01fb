"""Git repositories in a task's folder: found, protected from commands, and moved away where a command made
one.

Git runs what a repository's settings and hooks say for whoever uses it, outside of every sandbox. So commands
may neither change a repository nor leave one: those that are there when a command starts are read-only to it,
and those that it made are moved out of the folder when it is over.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections import deque
from collections.abc import Container, Iterator, Sequence
from typing import Final, NamedTuple

from watchroom.disk import MAX_DEPTH, Parts

GIT_FOLDER: Final = ".git"
CONTROL_FOLDER: Final = ".watchroom"
"""A workspace's own folder, or that of a task's half-written files: neither is for commands."""
_HEAD: Final = "head"
_COMMON: Final = "commondir"
_BARE_ENTRIES: Final = frozenset({_HEAD, _COMMON, "objects", "refs"})
"""What git takes a folder of any name for a repository by, their case folded."""
_GITDIR: Final = "gitdir:"
_LINK: Final = "link "
_MAX_LINK_BYTES: Final = 4096
_O_STEP: Final = getattr(os, "O_PATH", os.O_RDONLY)
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY


class Repository(NamedTuple):
    """Where git finds a repository: the ``parts`` of the path of a ``.git``, or of the ``HEAD`` of a bare
    one. ``identity`` tells it from another one at the same path."""

    parts: Parts
    identity: str

    @property
    def is_link(self) -> bool:
        """Whether it is a symlink."""
        return self.identity.startswith(_LINK)


def is_git_name(name: str) -> bool:
    """Whether git looks for a repository in an entry of that ``name``, also where case does not matter."""
    return name.casefold() == GIT_FOLDER


def find_repositories(folder: int) -> list[Repository]:
    """All repositories beneath ``folder``, a descriptor, its own among them, the nearest to the top first;
    none that lies in another one, or more than 512 folders deep."""
    found: list[Repository] = []
    waiting = deque[Parts]([()])
    while waiting:
        above = waiting.popleft()
        try:
            opened = open_beneath(folder, above, _O_STEP | os.O_DIRECTORY)
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            continue
        try:
            listing = _list(opened)
            if is_git_folder(listing.bare_entries):
                found.append(Repository((*above, listing.bare_entries[_HEAD]), _identity(opened, ".")))
            for name in listing.git_names or [GIT_FOLDER]:
                # What may not be listed may have one all the same.
                with contextlib.suppress(FileNotFoundError, PermissionError):
                    found.append(Repository((*above, name), _identity(opened, name)))
            if len(above) < MAX_DEPTH and not (above and is_git_folder(listing.bare_entries)):
                waiting.extend((*above, name) for name in listing.folders)
        finally:
            os.close(opened)
    return found


def is_git_folder(names: Container[str]) -> bool:
    """Whether git takes a folder with these ``names`` of entries, their case folded, for a repository,
    whatever the folder is called."""
    return _HEAD in names and (_COMMON in names or ("objects" in names and "refs" in names))


def protected_paths(folder: int, path: str) -> list[Parts]:
    """The parts of the paths that commands may not change beneath ``folder``, a descriptor of what is at
    ``path``: its repositories, the files by which submodules and worktrees name theirs, and what those name,
    if it is beneath ``folder``."""
    found: dict[Parts, None] = {}
    for repository in find_repositories(folder):
        parts = repository.parts
        if not is_git_name(parts[-1]):
            # The folder itself has to stay writable; no task is begun in a bare repository.
            if len(parts) > 1:
                found[parts[:-1]] = None
            continue
        target = _link_target(folder, parts)
        if not repository.is_link:
            found[parts] = None
        relative = target and os.path.relpath(os.path.join(path, *parts[:-1], target), path)
        if relative and relative != os.curdir and not relative.startswith(os.pardir):
            found[tuple(relative.split(os.sep))] = None
    return [parts for parts in found if not any(parts[:depth] in found for depth in range(1, len(parts)))]


def list_entries(folder: int, parts: Parts) -> dict[str, bool]:
    """The names of what is in the folder at ``parts`` beneath ``folder``, a descriptor, and whether each is a
    symlink; none where that is gone, or may not be read."""
    try:
        opened = open_beneath(folder, parts, _FOLDER)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return {}
    try:
        with os.scandir(opened) as found:
            # Here, because not every file system tells kinds with names: some are asked by the descriptor.
            return {entry.name: entry.is_symlink() for entry in found}
    finally:
        os.close(opened)


def open_beneath(folder: int, parts: Sequence[str], flags: int) -> int:
    """A descriptor of what is at ``parts`` beneath ``folder``, a descriptor, opened with ``flags``.

    No step follows a symlink: another command may put one in the way at any moment. The last one may be the
    symlink itself with O_PATH. Raises NotADirectoryError at a symlink, and OSError.
    """
    at = os.open(".", (_O_STEP if parts else flags) | os.O_DIRECTORY, dir_fd=folder)
    for depth, name in enumerate(parts, 1):
        how = flags if depth == len(parts) else _O_STEP | os.O_DIRECTORY
        try:
            step = os.open(name, how | os.O_NOFOLLOW, dir_fd=at)
        finally:
            os.close(at)
        at = step
    return at


class _Listing(NamedTuple):
    """The entries of a folder that matter: other folders, each ``.git``, and by its folded name what a bare
    repository has."""

    folders: list[str]
    git_names: list[str]
    bare_entries: dict[str, str]


def _list(opened: int) -> _Listing:
    """The entries of an open folder that matter; none where it may not be listed."""
    found = _Listing([], [], {})
    try:
        listing = os.open(".", _FOLDER, dir_fd=opened)
    except PermissionError:
        return found
    try:
        with os.scandir(listing) as entries:
            for entry in entries:
                folded = entry.name.casefold()
                if folded == GIT_FOLDER:
                    found.git_names.append(entry.name)
                    continue
                if folded in _BARE_ENTRIES:
                    found.bare_entries[folded] = entry.name
                if entry.is_dir(follow_symlinks=False):
                    found.folders.append(entry.name)
    finally:
        os.close(listing)
    return found


def _identity(above: int, name: str) -> str:
    known = os.stat(name, dir_fd=above, follow_symlinks=False)
    if stat.S_ISLNK(known.st_mode):
        # What it leads to is protected; another link to the same place is as good.
        return f"{_LINK}{os.readlink(name, dir_fd=above)}"
    return f"{known.st_dev}:{known.st_ino}"


def _link_target(folder: int, parts: Parts) -> str | None:
    """The path by which a ``.git`` that is a link or a file names the repository; None where it is a
    folder."""
    try:
        above = open_beneath(folder, parts[:-1], _O_STEP | os.O_DIRECTORY)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        known = os.stat(parts[-1], dir_fd=above, follow_symlinks=False)
        if stat.S_ISLNK(known.st_mode):
            return os.readlink(parts[-1], dir_fd=above)
        if not stat.S_ISREG(known.st_mode):
            return None
        file = os.open(parts[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=above)
        try:
            text = os.fsdecode(os.read(file, _MAX_LINK_BYTES))
        finally:
            os.close(file)
        return text.removeprefix(_GITDIR).strip() if text.startswith(_GITDIR) and "\0" not in text else None
    except (FileNotFoundError, PermissionError):
        return None
    finally:
        os.close(above)


def _quarantine(folder: int, repositories: Sequence[Repository], to: str) -> list[str]:
    """Move ``repositories`` that were found beneath ``folder``, a descriptor, into the folder ``to``, where
    none of them is a repository any more; on another file system they stay in place under another name.
    Returns the paths beneath ``folder`` of those that were still there, in order. Raises OSError."""
    os.makedirs(to, mode=0o700, exist_ok=True)
    target = os.open(to, _FOLDER | os.O_NOFOLLOW)
    moved = []
    try:
        for number, (parts, _) in enumerate(repositories, 1):
            above = -1
            try:
                above = open_beneath(folder, parts[:-1], _O_STEP | os.O_DIRECTORY)
                if not _is_removed_empty(above, parts[-1]):
                    _move(above, parts[-1], target, f"quarantined-{number}-{parts[-1].strip('.')}")
                    moved.append("/".join(parts))
            except (FileNotFoundError, NotADirectoryError):
                # Another command took it away.
                continue
            finally:
                if above >= 0:
                    os.close(above)
    finally:
        os.close(target)
        with contextlib.suppress(OSError):
            # It stays unless it is empty.
            os.rmdir(to)
    return moved


def quarantine_new_repositories(
    path: str, to: str, *, known: Container[str], protects_git: bool
) -> list[str]:
    """Move the repositories beneath the folder ``path`` into the folder ``to`` whose identities are not among
    those ``known``. With ``protects_git`` a ``.git`` at the top stays: no command could make it. Returns the
    paths beneath ``path`` of what was moved. Raises OSError."""
    with open_folder(path) as folder:
        if folder is None:
            return []
        new = [each for each in find_repositories(folder) if each.identity not in known]
        if protects_git:
            new = [each for each in new if each.parts != (GIT_FOLDER,) or each.is_link]
        return _quarantine(folder, new, to) if new else []


def _is_removed_empty(above: int, name: str) -> bool:
    """Whether it was an empty folder, which is no repository, and is gone."""
    try:
        os.rmdir(name, dir_fd=above)
    except FileNotFoundError:
        raise
    except OSError:
        return False
    return True


def _move(above: int, name: str, target: int, new_name: str) -> None:
    try:
        folder = os.open(name, _O_STEP | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=above)
    except NotADirectoryError:
        # A file or a link is no repository by another name.
        _rename(above, name, target, new_name)
        return
    try:
        _open_up(folder)
        _rename(above, name, target, new_name)
        with contextlib.suppress(FileNotFoundError):
            os.rename("HEAD", "HEAD.quarantined", src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        os.close(folder)


def _rename(above: int, name: str, target: int, new_name: str) -> None:
    """Move it from one open folder to another; where that is on another file system, it gets another name."""
    try:
        os.rename(name, new_name, src_dir_fd=above, dst_dir_fd=target)
    except PermissionError:
        # A command has closed its folder, which is ours all the same.
        _open_up(above)
        os.rename(name, new_name, src_dir_fd=above, dst_dir_fd=target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        other = f"{new_name}-{os.urandom(4).hex()}"
        os.rename(name, other, src_dir_fd=above, dst_dir_fd=above)


def _open_up(folder: int) -> None:
    """Let us change what stands in an open folder, whatever its mode."""
    os.chmod(f"/proc/self/fd/{folder}" if hasattr(os, "O_PATH") else folder, 0o700)


def find_repositories_at(path: str) -> list[Repository]:
    """All repositories beneath the folder ``path``; none where it is gone."""
    with open_folder(path) as folder:
        return find_repositories(folder) if folder is not None else []


@contextlib.contextmanager
def open_folder(path: str) -> Iterator[int | None]:
    """A context with a descriptor of the folder ``path``, None where it is gone. Raises OSError."""
    try:
        folder = os.open(path, _O_STEP | os.O_DIRECTORY | os.O_NOFOLLOW)
    except (FileNotFoundError, NotADirectoryError):
        yield None
        return
    try:
        yield folder
    finally:
        os.close(folder)
