"""The files of a new working tree. Tracked files are checked out, or cloned from another tree. Ignored files
that ``.worktreeinclude`` names are cloned, linked or copied from there.

A clone shares its blocks on disk with the original until one of them is changed. Only some file systems have
clones, such as Btrfs, XFS and ZFS.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from watchroom.features.trees.git import GitTree, IndexEntry
from watchroom.features.trees.git_process import run_git
from watchroom.features.trees.place import ADDED_FILE
from watchroom.kernel.rules.details import get_list
from watchroom.model import parse_object
from watchroom.platform import Platform
from watchroom.platform.child_process import ChildResult

INCLUDE_FILE: Final = ".worktreeinclude"
"""The file with patterns of the ignored files that a new tree gets, in the root of the repository."""
GIT_SECONDS: Final = 3600.0
"""Timeout for git to write a tree."""
_GIT: Final = ".git"
_ATTRIBUTES: Final = ".gitattributes"
_MIN_CLONED_BYTES: Final = 256 * 1024
"""Size from which a tracked file is cloned. Git writes 10,000 small files in less time than cloning takes."""
_PROBE: Final = ".watchroom-clone"
CHECKOUT_VARIABLES: Final = {"GIT_LFS_SKIP_SMUDGE": "0", "GIT_NO_LAZY_FETCH": "0"}
"""Unlike other calls of git, a checkout fetches the files of LFS and of partial clones, because people work
with them."""
CHECKOUT_SETTINGS: Final = tuple(
    f"protocol.{name}.allow={value}"
    for name, value in (("https", "always"), ("ssh", "always"), ("file", "user"))
)

OnProgress = Callable[[int, int], object]
"""Called with the number of files that are done, and with the total."""


class Included(NamedTuple):
    """The ignored files and folders that a new tree got, by name. Names of folders end with a slash.

    - ``copied``: as clones or copies.
    - ``linked``: as symbolic links to the other tree.
    - ``left_out``: they are too large to be copied.
    """

    copied: tuple[str, ...] = ()
    linked: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


class AddedFiles(NamedTuple):
    """The ignored files that a tree got when it was added. Their names are in the tree's git folder, because
    the journal records nothing about ignored files.

    - ``included``, ``linked``: see `Included`.
    - ``made``: the ignored files that existed after the setup command.
    - ``is_complete``: the tree has all of its files.
    """

    included: tuple[str, ...] = ()
    linked: tuple[str, ...] = ()
    made: tuple[str, ...] = ()
    is_complete: bool = True

    @classmethod
    def read(cls, git: str) -> AddedFiles:
        """Read the record in the git folder ``git`` of a tree, empty if there is none."""
        try:
            with open(os.path.join(git, ADDED_FILE), encoding="utf-8") as file:
                found = parse_object(file.read()) or {}
        except (OSError, ValueError):
            return cls()
        included, linked, made = (
            tuple(each for each in get_list(found, name) if isinstance(each, str))
            for name in ("included", "linked", "made")
        )
        return cls(included, linked, made, found.get("is_complete") is not False)

    def write(self, git: str) -> None:
        """Write this record into the git folder ``git`` of a tree. Raise OSError."""
        path = os.path.join(git, ADDED_FILE)
        with open(f"{path}.new", "w", encoding="utf-8") as file:
            json.dump(self._asdict(), file)
        os.replace(f"{path}.new", path)


class TreeFiller:
    """Fills the new working tree in ``folder`` with files of the tree ``source``.

    ``platform``: clones files.

    Methods raise `GitError`, OSError.
    """

    def __init__(self, source: GitTree, folder: str, platform: Platform) -> None:
        self._source = source
        self._folder = folder
        self._platform = platform
        self.can_clone = self._probe()
        """Whether the file system clones files."""

    def _probe(self) -> bool:
        place = os.path.join(self._folder, _PROBE)
        try:
            return self._clone(os.path.join(self._source.common, "HEAD"), place)
        finally:
            if os.path.lexists(place):
                os.unlink(place)

    def _clone(self, source: str, target: str) -> bool:
        """Make the file ``target`` as a clone of ``source``. Return whether that was possible; else
        ``target`` is empty."""
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(source, flags), "rb") as original:
            found = os.fstat(original.fileno())
            if not stat.S_ISREG(found.st_mode):
                return False
            made = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            mode = stat.S_IMODE(found.st_mode)
            with open(os.open(target, made, mode), "wb") as copy:
                if found.st_size and not self._platform.clone_file(original.fileno(), copy.fileno()):
                    return False
                os.utime(copy.fileno(), ns=(found.st_atime_ns, found.st_mtime_ns))
        return True

    # -- tracked files

    def clone_tracked(self, tree: GitTree, on_progress: OnProgress = lambda done, of: None) -> int:
        """Clone the large files of HEAD that are the same in the other tree into ``tree``, which has no files
        yet. Return their number. Git writes all other files with the next checkout."""
        known = self._source.list_index()
        large = {name for name in known if self._size(name) >= _MIN_CLONED_BYTES}
        if not large:
            return 0
        _git(tree, "read-tree", "HEAD")
        same = [each for each in self._find_same(tree.list_index(), known) if each in large]
        made: set[str] = set()
        count = 0
        for number, name in enumerate(same):
            target = os.path.join(self._folder, name)
            above = os.path.dirname(target)
            if above not in made:
                os.makedirs(above, exist_ok=True)
                made.add(above)
            try:
                if not self._clone(os.path.join(self._source.folder, name), target):
                    os.unlink(target)
                    break
            except FileNotFoundError:
                # It was removed meanwhile. Git writes it.
                continue
            count += 1
            if not number % 100:
                on_progress(number, len(same))
        # Git compares the clones with the index, so that it does not write them again.
        _git(tree, "update-index", "-q", "--refresh", accepted=(0, 1))
        return count

    def _size(self, name: str) -> int:
        """Return the size of a file of the other tree, 0 if there is none."""
        try:
            return os.lstat(os.path.join(self._source.folder, name)).st_size
        except OSError:
            return 0

    def _find_same(self, entries: Mapping[str, IndexEntry], known: Mapping[str, IndexEntry]) -> list[str]:
        """Return the files that are the same in both trees. Empty if git may write them differently here.
        ``entries``: the index of the new tree. ``known``: the index of the other tree."""
        if any(each.is_absent for each in known.values()):
            return []
        changed = {*self._source.list_changed(), *list_hidden(self._source)}
        names = {each for each in (*entries, *known) if os.path.basename(each) == _ATTRIBUTES}
        if any(entries.get(each) != known.get(each) or each in changed for each in names):
            return []
        return [
            name
            for name, entry in entries.items()
            if entry == known.get(name)
            and entry.blob
            and not (entry.is_link or entry.is_submodule)
            and name not in changed
        ]

    # -- ignored files

    def include(
        self,
        names: Sequence[str],
        linked: Collection[str],
        max_bytes: int,
        on_progress: OnProgress = lambda done, of: None,
    ) -> Included:
        """Bring the ignored files and folders ``names`` of the other tree. See `list_included`.

        - ``linked``: folders that are linked if they cannot be cloned.
        - ``max_bytes``: the maximum size of the files that are copied and not cloned.

        Existing files of the new tree are not replaced.
        """
        copied: list[str] = []
        links: list[str] = []
        left_out: list[str] = []
        left = max_bytes
        wanted = {each.strip("/") for each in linked}
        for number, name in enumerate(names):
            on_progress(number, len(names))
            source, target = (os.path.join(each, name.rstrip("/")) for each in self._folders)
            if not _is_safe(self._folder, name) or os.path.lexists(target):
                continue
            os.makedirs(os.path.dirname(target), exist_ok=True)
            if name.strip("/") in wanted and not self.can_clone:
                _link(source, target)
                links.append(name)
                continue
            size = 0 if self.can_clone else _size_of(source, left)
            if size > left:
                left_out.append(name)
                continue
            left -= size
            self._copy(source, target)
            copied.append(name)
        return Included(tuple(copied), tuple(links), tuple(left_out))

    @property
    def _folders(self) -> tuple[str, str]:
        return self._source.folder, self._folder

    def _copy(self, source: str, target: str) -> None:
        """Copy a file, a link or a folder. Other repositories and special files are left out."""
        found = os.lstat(source)
        if stat.S_ISLNK(found.st_mode):
            os.symlink(os.readlink(source), target)
        elif stat.S_ISREG(found.st_mode):
            if not (self.can_clone and self._clone(source, target)):
                shutil.copy2(source, target, follow_symlinks=False)
        elif stat.S_ISDIR(found.st_mode) and not os.path.lexists(os.path.join(source, _GIT)):
            os.mkdir(target)
            with os.scandir(source) as entries:
                for each in entries:
                    self._copy(each.path, os.path.join(target, each.name))
            shutil.copystat(source, target)


def list_included(source: GitTree) -> list[str]:
    """Return the names of the ignored files and folders of ``source`` that its ``.worktreeinclude`` names.

    The file has the syntax of ``.gitignore``. A folder is returned as one name, with a slash at the end, if
    git ignores everything in it, and a pattern matches it. Raise `GitError`.
    """
    path = os.path.join(source.folder, INCLUDE_FILE)
    if not os.path.isfile(path):
        return []
    matched = _list_others(source, f"--exclude-from={path}")
    return intersect_names(matched, list_ignored_names(source)) if matched else []


def list_ignored_names(tree: GitTree) -> list[str]:
    """Return the names of the files and folders of ``tree`` that git ignores. Folders end with a slash."""
    return _list_others(tree, "--exclude-standard")


def intersect_names(one: Iterable[str], other: Iterable[str]) -> list[str]:
    """Return the names that are in both lists. A name with a slash at the end is a folder with everything in
    it.

        >>> intersect_names(["a/", "b/c"], ["a/x", "b/"])
        ['a/x', 'b/c']
    """
    lists = ({*one}, {*other})
    found = {
        name
        for mine, theirs in (lists, lists[::-1])
        for name in mine
        if name in theirs or any(above in theirs for above in _folders_above(name))
    }
    return _without_nested(found)


def _without_nested(names: Iterable[str]) -> list[str]:
    """Return ``names`` without the names in folders that are also in ``names``."""
    found = {*names}
    return sorted(name for name in found if found.isdisjoint(_folders_above(name)))


def _folders_above(name: str) -> list[str]:
    parts = name.rstrip("/").split("/")[:-1]
    return ["/".join(parts[: depth + 1]) + "/" for depth in range(len(parts))]


def _list_others(tree: GitTree, exclude: str) -> list[str]:
    asked = ("ls-files", "--others", "--ignored", "--directory", "-z", exclude)
    return _without_nested(os.fsdecode(each) for each in _git(tree, *asked).output.split(b"\0") if each)


def list_hidden(tree: GitTree) -> list[str]:
    """Return the files that git does not compare, because they are marked as unchanged."""
    printed = _git(tree, "ls-files", "-v", "-z").output
    return [os.fsdecode(each[2:]) for each in printed.split(b"\0") if each[:1].islower() or each[:1] == b"S"]


def _is_safe(folder: str, name: str) -> bool:
    """Return whether ``name`` is in ``folder``, and not behind a symbolic link."""
    above = os.path.realpath(os.path.dirname(os.path.join(folder, name.rstrip("/"))))
    return f"{above}/".startswith(f"{os.path.realpath(folder)}/")


def _link(source: str, target: str) -> None:
    """Link a file, or each entry of a folder. The folder itself is not linked: a pattern such as
    ``node_modules/`` does not match a link, so git would not ignore it."""
    if os.path.islink(source) or not os.path.isdir(source):
        os.symlink(source, target)
        return
    os.mkdir(target)
    for name in os.listdir(source):
        os.symlink(os.path.join(source, name), os.path.join(target, name))


def _size_of(path: str, limit: int) -> int:
    """Return the bytes of the files at ``path``. Stops above ``limit``."""
    found = os.lstat(path)
    if not stat.S_ISDIR(found.st_mode):
        return found.st_size
    total = 0
    for folder, _, files in os.walk(path):
        for name in files:
            total += os.lstat(os.path.join(folder, name)).st_size
        if total > limit:
            break
    return total


def _git(tree: GitTree, *arguments: str, accepted: Sequence[int] = (0,)) -> ChildResult:
    return run_git(
        arguments,
        folder=tree.folder,
        variables={"GIT_DIR": tree.git, "GIT_WORK_TREE": tree.folder, **CHECKOUT_VARIABLES},
        settings=CHECKOUT_SETTINGS,
        timeout=GIT_SECONDS,
        accepted=accepted,
    )
