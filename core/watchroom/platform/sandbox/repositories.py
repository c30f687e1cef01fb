"""Git repositories in a task's folder: finds and protects them, and moves away repositories that a command
created.

Git runs the programs in a repository's settings and hooks for every user of the repository, outside of any
sandbox. So commands must neither change a repository nor leave one behind. Existing repositories are
read-only for a command, and repositories that it created are moved out of the folder when it has ended.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections import deque
from collections.abc import Container, Iterator, Sequence
from typing import Final, NamedTuple

from watchroom.platform.disk import MAX_DEPTH, Parts

GIT_FOLDER: Final = ".git"
CONTROL_FOLDER: Final = ".watchroom"
"""A workspace's own folder, or the folder of a task's half-written files. Commands must not use these
folders."""
_HEAD: Final = "head"
_COMMON: Final = "commondir"
_BARE_ENTRIES: Final = frozenset({_HEAD, _COMMON, "objects", "refs"})
"""The entries, in lower case, from which git recognizes a repository in a folder of any name."""
_GITDIR: Final = "gitdir:"
_LINK: Final = "link "
_MAX_LINK_BYTES: Final = 4096
_O_STEP: Final = getattr(os, "O_PATH", os.O_RDONLY)
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY


class Repository(NamedTuple):
    """A repository.

    - ``parts``: the path of its ``.git``, or of the ``HEAD`` of a bare repository.
    - ``identity``: a value that differs for another repository at the same path.
    """

    parts: Parts
    identity: str

    @property
    def is_link(self) -> bool:
        """Whether the repository's ``.git`` is a symlink."""
        return self.identity.startswith(_LINK)


def is_git_name(name: str) -> bool:
    """Return whether ``name`` is ``.git``, in any case: some file systems ignore case."""
    return name.casefold() == GIT_FOLDER


def find_repositories(folder: int) -> list[Repository]:
    """Return the repositories in and beneath ``folder``, a descriptor, level by level from the top.

    Repositories inside another repository, or more than 512 folders deep, are left out.
    """
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
                # A folder that cannot be listed may still contain a repository.
                with contextlib.suppress(FileNotFoundError, PermissionError):
                    found.append(Repository((*above, name), _identity(opened, name)))
            if len(above) < MAX_DEPTH and not (above and is_git_folder(listing.bare_entries)):
                waiting.extend((*above, name) for name in listing.folders)
        finally:
            os.close(opened)
    return found


def is_git_folder(names: Container[str]) -> bool:
    """Return whether git recognizes a folder with the entries ``names`` (in lower case) as a repository."""
    return _HEAD in names and (_COMMON in names or ("objects" in names and "refs" in names))


def protected_paths(folder: int, path: str) -> list[Parts]:
    """Return the paths beneath ``folder`` that commands cannot change.

    These are repositories, the ``.git`` files of submodules and worktrees, and the repositories to which such
    files refer. ``folder`` is a descriptor of ``path``.
    """
    found: dict[Parts, None] = {}
    for repository in find_repositories(folder):
        parts = repository.parts
        if not is_git_name(parts[-1]):
            # The top folder stays writable: no task can start in a bare repository.
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
    """Return the names in the folder ``parts`` beneath ``folder``, and whether each is a symlink.

    ``folder`` is a descriptor. Return an empty result if the folder was removed or cannot be read.
    """
    try:
        opened = open_beneath(folder, parts, _FOLDER)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return {}
    try:
        with os.scandir(opened) as found:
            # While the descriptor is open, because some file systems need it to determine whether an entry is
            # a symlink.
            return {entry.name: entry.is_symlink() for entry in found}
    finally:
        os.close(opened)


def open_beneath(folder: int, parts: Sequence[str], flags: int) -> int:
    """Open ``parts`` beneath ``folder``, a descriptor, with ``flags``. Return the new descriptor.

    No step follows a symlink, because another command can create a symlink at any moment. With O_PATH, the
    last part can be a symlink; the symlink itself is opened. Raise NotADirectoryError at a symlink, and
    OSError.
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
    """The relevant entries of a folder: subfolders, every ``.git``, and entries of a bare repository.

    ``bare_entries``: the names on disk, by the names in lower case.
    """

    folders: list[str]
    git_names: list[str]
    bare_entries: dict[str, str]


def _list(opened: int) -> _Listing:
    """Return the relevant entries of an open folder, none if it cannot be listed."""
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
        # Its target is protected. Another link to the same target is equivalent.
        return f"{_LINK}{os.readlink(name, dir_fd=above)}"
    return f"{known.st_dev}:{known.st_ino}"


def _link_target(folder: int, parts: Parts) -> str | None:
    """Return the path to which a ``.git`` refers if it is a symlink or a file; None if it is a folder."""
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
    """Move ``repositories`` beneath ``folder``, a descriptor, into the folder ``to``.

    They are renamed, so that git no longer recognizes them. If ``to`` is on another file system, they stay in
    their folder under a new name. Return the paths of the repositories that still existed, in order. Raise
    OSError.
    """
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
                # Another command has removed it.
                continue
            finally:
                if above >= 0:
                    os.close(above)
    finally:
        os.close(target)
        with contextlib.suppress(OSError):
            # This succeeds only if it is empty.
            os.rmdir(to)
    return moved


def quarantine_new_repositories(
    path: str, to: str, *, known: Container[str], protects_git: bool
) -> list[str]:
    """Move the new repositories beneath the folder ``path`` into the folder ``to``.

    - ``known``: the identities of the existing repositories.
    - ``protects_git``: whether a ``.git`` at the top stays, because no command can have created it.

    Return the paths of the moved repositories. Raise OSError.
    """
    with open_folder(path) as folder:
        if folder is None:
            return []
        new = [each for each in find_repositories(folder) if each.identity not in known]
        if protects_git:
            new = [each for each in new if each.parts != (GIT_FOLDER,) or each.is_link]
        return _quarantine(folder, new, to) if new else []


def _is_removed_empty(above: int, name: str) -> bool:
    """Remove ``name`` if it is an empty folder, and therefore not a repository. Return whether it was
    removed."""
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
        # A file or a symlink with another name is not a repository.
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
    """Move ``name`` between open folders. On another file system, rename it in its own folder."""
    try:
        os.rename(name, new_name, src_dir_fd=above, dst_dir_fd=target)
    except PermissionError:
        # A command has removed the permissions of the folder, which belongs to our user.
        _open_up(above)
        os.rename(name, new_name, src_dir_fd=above, dst_dir_fd=target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        other = f"{new_name}-{os.urandom(4).hex()}"
        os.rename(name, other, src_dir_fd=above, dst_dir_fd=above)


def _open_up(folder: int) -> None:
    """Give our user all rights to an open folder."""
    os.chmod(f"/proc/self/fd/{folder}" if hasattr(os, "O_PATH") else folder, 0o700)


def find_repositories_at(path: str) -> list[Repository]:
    """Return all repositories beneath the folder ``path``; empty if the folder was removed."""
    with open_folder(path) as folder:
        return find_repositories(folder) if folder is not None else []


@contextlib.contextmanager
def open_folder(path: str) -> Iterator[int | None]:
    """Yield a descriptor of the folder ``path``, None if it does not exist. Raise OSError."""
    try:
        folder = os.open(path, _O_STEP | os.O_DIRECTORY | os.O_NOFOLLOW)
    except (FileNotFoundError, NotADirectoryError):
        yield None
        return
    try:
        yield folder
    finally:
        os.close(folder)
