"""Copies the working state of a tree into a new tree: uncommitted, new and deleted files, byte for byte.

Ignored files are left out, and so are folders with a repository of their own. The source stays as it is.
"""

from __future__ import annotations

import filecmp
import os
import shutil
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Final, NamedTuple, TypeAlias

from watchroom.features.trees.git import GitTree
from watchroom.features.trees.git_process import run_git

_TRIES: Final = 5
"""How often the files are compared again because an agent changed them meanwhile."""
_SPARSE: Final = b"S"
"""Git's tag for a tracked file that a sparse checkout leaves out."""

_Stamp: TypeAlias = tuple[int, int, int, int] | None


class CopiedState(NamedTuple):
    """What a new tree got.

    - ``changed``: the number of files that were written or deleted.
    - ``left_out``: folders with a repository of their own.
    - ``is_stable``: whether the source was the same throughout the copy.
    """

    changed: int
    left_out: tuple[str, ...]
    is_stable: bool


def copy_working_state(source: GitTree, target: GitTree) -> CopiedState:
    """Make the files of ``target`` equal to those of ``source``, which has the same commit checked out.

    Raise `GitError`, OSError.
    """
    changed: set[bytes] = set()
    folders: set[bytes] = set()
    for _ in range(_TRIES):
        before = _read_stamps(source)
        names = {*before, *_list_names(target)}
        here, there = os.fsencode(source.folder), os.fsencode(target.folder)
        parents = {name[:at] for name in before for at in range(len(name)) if name[at : at + 1] == b"/"}
        folders = {name for name in before if name not in parents and _is_folder(os.path.join(here, name))}
        different = {name for name in names - folders if not _is_same(here, there, name)}
        # First, because a folder can be where a deleted file was, and the other way round. In order, so that
        # a link is gone before a file in the folder that replaces it.
        for name in sorted(different):
            _delete(there, name)
        for name in different:
            _copy(here, there, name)
        changed |= different
        if _read_stamps(source) == before:
            return CopiedState(len(changed), _decode(folders), is_stable=True)
    return CopiedState(len(changed), _decode(folders), is_stable=False)


def _decode(names: Iterable[bytes]) -> tuple[str, ...]:
    return tuple(sorted(os.fsdecode(each) for each in names))


def _read_stamps(tree: GitTree) -> Mapping[bytes, _Stamp]:
    """Return what shows whether a file of ``tree`` has changed, by name; None for a missing file."""
    folder = os.fsencode(tree.folder)
    return {name: _stamp(os.path.join(folder, name)) for name in _list_names(tree)}


def _stamp(path: bytes) -> _Stamp:
    try:
        found = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_mode, found.st_size, found.st_mtime_ns, found.st_ino


def _list_names(tree: GitTree) -> set[bytes]:
    """Return the tracked and the new files of ``tree``, without ignored files."""
    tracked = _run(tree, "ls-files", "-z", "-t")
    known = {each[2:] for each in tracked if not each.startswith(_SPARSE)}
    new = _run(tree, "ls-files", "-z", "--others", "--exclude-standard")
    return {*known, *(each.rstrip(b"/") for each in new)}


def _run(tree: GitTree, *arguments: str) -> list[bytes]:
    done = run_git(arguments, folder=tree.folder)
    return [each for each in done.output.split(b"\0") if each]


def _is_folder(path: bytes) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)


def _is_same(here: bytes, there: bytes, name: bytes) -> bool:
    one, other = _stamp(os.path.join(here, name)), _stamp(os.path.join(there, name))
    if one is None or other is None or one[:2] != other[:2]:
        return one is other
    source, target = os.path.join(here, name), os.path.join(there, name)
    if stat.S_ISLNK(one[0]):
        return os.readlink(source) == os.readlink(target)
    return filecmp.cmp(source, target, shallow=False)


def _delete(there: bytes, name: bytes) -> None:
    path = os.path.join(there, name)
    with suppress(FileNotFoundError, NotADirectoryError, IsADirectoryError):
        os.unlink(path)
    above = os.path.dirname(path)
    # Folders that have become empty.
    while above != there:
        try:
            os.rmdir(above)
        except OSError:
            return
        above = os.path.dirname(above)


def _copy(here: bytes, there: bytes, name: bytes) -> None:
    source, target = os.path.join(here, name), os.path.join(there, name)
    # It may have gone meanwhile. Then the files are compared again.
    with suppress(FileNotFoundError, NotADirectoryError):
        if stat.S_ISDIR(os.lstat(source).st_mode):
            return
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copy2(source, target, follow_symlinks=False)
