"""What stands in a task's folder and is not for its commands: git's repositories, and what a workspace keeps.

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

READ_ONLY: Final = ".git"
HIDDEN: Final = ".watchroom"
_HEAD: Final = "head"
_COMMON: Final = "commondir"
_MARKS: Final = frozenset({_HEAD, _COMMON, "objects", "refs"})
"""What git takes a folder of any name for a repository by, their case folded."""
_GITDIR: Final = "gitdir:"
_LINK: Final = "link "
_LONGEST_LINK: Final = 4096
_STEP: Final = getattr(os, "O_PATH", os.O_RDONLY)
_FOLDER: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)


class Repository(NamedTuple):
    """Where git finds a repository: a ``.git``, or the ``HEAD`` of a bare one, by its parts. ``identity``
    tells it from another one at the same place."""

    parts: Parts
    identity: str

    @property
    def is_link(self) -> bool:
        return self.identity.startswith(_LINK)


def is_git_name(name: str) -> bool:
    """Whether git looks for a repository there, on a file system that folds case, too."""
    return name.casefold() == READ_ONLY


def find_repositories(folder: int) -> list[Repository]:
    """All repositories beneath ``folder``, a descriptor, its own among them, the nearest to the top first;
    none that lies in another one, or 512 folders deep."""
    found: list[Repository] = []
    waiting = deque[Parts]([()])
    while waiting:
        above = waiting.popleft()
        try:
            opened = beneath(folder, above, _STEP | os.O_DIRECTORY)
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            continue
        try:
            listing = _list(opened)
            if is_git_folder(listing.marks):
                found.append(Repository((*above, listing.marks[_HEAD]), _identity(opened, ".")))
            for name in listing.git_names or [READ_ONLY]:
                # What may not be listed may have one all the same.
                with contextlib.suppress(FileNotFoundError, PermissionError):
                    found.append(Repository((*above, name), _identity(opened, name)))
            if len(above) < MAX_DEPTH and not (above and is_git_folder(listing.marks)):
                waiting.extend((*above, name) for name in listing.folders)
        finally:
            os.close(opened)
    return found


def is_git_folder(names: Container[str]) -> bool:
    """Whether git takes a folder in which these stand, their case folded, for a repository, whatever it is
    called."""
    return _HEAD in names and (_COMMON in names or ("objects" in names and "refs" in names))


def protected_paths(folder: int, path: str) -> list[Parts]:
    """What commands may not change beneath ``folder``, a descriptor, which is at ``path``: its repositories,
    the files by which submodules and worktrees name theirs, and what those name, if it is beneath it, too."""
    found: dict[Parts, None] = {}
    for repository in find_repositories(folder):
        parts = repository.parts
        if not is_git_name(parts[-1]):
            # Of the folder itself nothing can be taken back; no task is begun in such a one.
            if len(parts) > 1:
                found[parts[:-1]] = None
            continue
        named = _named(folder, parts)
        if not repository.is_link:
            found[parts] = None
        target = named and os.path.relpath(os.path.join(path, *parts[:-1], named), path)
        if target and target != os.curdir and not target.startswith(os.pardir):
            found[tuple(target.split(os.sep))] = None
    return [parts for parts in found if not any(parts[:depth] in found for depth in range(1, len(parts)))]


def entries(folder: int, parts: Parts) -> list[os.DirEntry[str]]:
    """What stands in one of its folders; nothing where that is gone, or may not be looked into."""
    try:
        opened = beneath(folder, parts, _FOLDER)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return []
    try:
        with os.scandir(opened) as found:
            return list(found)
    finally:
        os.close(opened)


def beneath(folder: int, parts: Sequence[str], flags: int) -> int:
    """A descriptor of what stands there, by steps of which none follows a symlink: another command may put
    one in the way at any moment. Raises NotADirectoryError there; at the last step ``flags`` say what is
    opened, which with O_PATH may be the symlink itself."""
    at = os.open(".", (_STEP if parts else flags) | os.O_DIRECTORY, dir_fd=folder)
    for depth, name in enumerate(parts, 1):
        how = flags if depth == len(parts) else _STEP | os.O_DIRECTORY
        try:
            step = os.open(name, how | os.O_NOFOLLOW, dir_fd=at)
        finally:
            os.close(at)
        at = step
    return at


class _Listing(NamedTuple):
    """What of a folder's entries matters: other folders, each ``.git``, and by its folded name what git takes
    a folder for a repository by."""

    folders: list[str]
    git_names: list[str]
    marks: dict[str, str]


def _list(opened: int) -> _Listing:
    """What matters in an open folder; nothing where that may not be listed."""
    found = _Listing([], [], {})
    try:
        listing = os.open(".", _FOLDER, dir_fd=opened)
    except PermissionError:
        return found
    try:
        with os.scandir(listing) as entries:
            for entry in entries:
                folded = entry.name.casefold()
                if folded == READ_ONLY:
                    found.git_names.append(entry.name)
                    continue
                if folded in _MARKS:
                    found.marks[folded] = entry.name
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


def _named(folder: int, parts: Parts) -> str | None:
    """The path by which a ``.git`` that is a link or a file names the repository; None where it is one."""
    try:
        above = beneath(folder, parts[:-1], _STEP | os.O_DIRECTORY)
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
            said = os.fsdecode(os.read(file, _LONGEST_LINK))
        finally:
            os.close(file)
        return said.removeprefix(_GITDIR).strip() if said.startswith(_GITDIR) and "\0" not in said else None
    except (FileNotFoundError, PermissionError):
        return None
    finally:
        os.close(above)


def quarantine(folder: int, repositories: Sequence[Repository], to: str) -> list[str]:
    """Move repositories that were found beneath ``folder`` into the folder ``to``, where none of them is one
    any more; on another file system, beside where they were. Returns their paths beneath ``folder``, in that
    order, of those that were still there. Raises OSError."""
    os.makedirs(to, mode=0o700, exist_ok=True)
    target = os.open(to, _FOLDER | os.O_NOFOLLOW)
    moved = []
    try:
        for number, (parts, _) in enumerate(repositories, 1):
            above = -1
            try:
                above = beneath(folder, parts[:-1], _STEP | os.O_DIRECTORY)
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


def _is_removed_empty(above: int, name: str) -> bool:
    """Whether it was an empty folder, which is no repository, and is gone."""
    try:
        os.rmdir(name, dir_fd=above)
    except FileNotFoundError:
        raise
    except OSError:
        return False
    return True


def _move(above: int, name: str, target: int, called: str) -> None:
    try:
        folder = os.open(name, _STEP | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=above)
    except NotADirectoryError:
        # A file or a link is no repository by another name.
        _rename(above, name, target, called)
        return
    try:
        _open_up(folder)
        _rename(above, name, target, called)
        with contextlib.suppress(FileNotFoundError):
            os.rename("HEAD", "HEAD.quarantined", src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        os.close(folder)


def _rename(above: int, name: str, target: int, called: str) -> None:
    """Move it from one open folder to another; where that is on another file system, it gets another name."""
    try:
        os.rename(name, called, src_dir_fd=above, dst_dir_fd=target)
    except PermissionError:
        # A command has closed its folder, which is ours all the same.
        _open_up(above)
        os.rename(name, called, src_dir_fd=above, dst_dir_fd=target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        other = f"{called}-{os.urandom(4).hex()}"
        os.rename(name, other, src_dir_fd=above, dst_dir_fd=above)


def _open_up(folder: int) -> None:
    """Let us change what stands in an open folder, whatever its mode."""
    os.chmod(f"/proc/self/fd/{folder}" if hasattr(os, "O_PATH") else folder, 0o700)


def repositories_at(path: str) -> list[Repository]:
    """All repositories beneath the folder ``path``; none where it is gone."""
    with open_folder(path) as folder:
        return find_repositories(folder) if folder is not None else []


@contextlib.contextmanager
def open_folder(path: str) -> Iterator[int | None]:
    """A descriptor of the folder, None where it is gone."""
    try:
        folder = os.open(path, _STEP | os.O_DIRECTORY | os.O_NOFOLLOW)
    except (FileNotFoundError, NotADirectoryError):
        yield None
        return
    try:
        yield folder
    finally:
        os.close(folder)
