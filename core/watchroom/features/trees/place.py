"""Finds a repository and its workspace by reading files. Starts no child process.

The workspace of a repository is an ordinary workspace in its common git folder. All working trees find it
there, no clone copies it, and ``git clean`` and ``git gc`` leave it alone.
"""

from __future__ import annotations

import os
from typing import Final, NamedTuple

from watchroom.kernel.checkout.location import is_workspace

FOLDER: Final = "watchroom"
"""The name of the workspace's folder in the common git folder."""
TREE_FILE: Final = "watchroom-tree"
"""The name of the file with a tree's id, in the git folder of the tree."""
ADDED_FILE: Final = "watchroom-added"
"""The name of the file about how a tree was added, in the git folder of the tree."""
_GIT: Final = ".git"
_GITDIR: Final = "gitdir:"
_WORKTREES: Final = "worktrees"
_MAX_BYTES: Final = 4096


class RepositoryPlace(NamedTuple):
    """A repository, from the point of view of one of its working trees.

    - ``folder``: the working tree; empty in a bare repository.
    - ``git``: the tree's own git folder.
    - ``common``: the git folder that all working trees share.

    All paths are absolute.
    """

    folder: str
    git: str
    common: str

    @property
    def main(self) -> str:
        """The main working tree. In a bare repository, the git folder."""
        return os.path.dirname(self.common) if os.path.basename(self.common) == _GIT else self.common

    @property
    def name(self) -> str:
        """The name of the repository's folder, without the suffix of a bare repository."""
        return os.path.basename(self.main).removesuffix(_GIT) or self.main


def find_repository(folder: str | os.PathLike[str]) -> RepositoryPlace | None:
    """Return the innermost repository that contains ``folder``; None if there is none."""
    place = os.path.abspath(folder)
    while True:
        found = repository_at(place)
        if found is not None:
            return found
        above = os.path.dirname(place)
        if above == place:
            return None
        place = above


def repository_at(folder: str | os.PathLike[str]) -> RepositoryPlace | None:
    """Return the repository whose working tree or git folder is ``folder``, None if it is neither."""
    place = os.path.abspath(folder)
    entry = os.path.join(place, _GIT)
    if os.path.isdir(entry):
        return _describe(place, entry)
    if target := _read_path(entry, _GITDIR):
        return _describe(place, target)
    if not _is_git_folder(place):
        return None
    tree = os.path.dirname(place) if os.path.basename(place) == _GIT else ""
    # The git folder of a linked working tree contains the path of the tree's ``.git``.
    linked = _read_path(os.path.join(place, "gitdir"))
    return _describe(os.path.dirname(linked) if linked else tree, place)


def workspace_root(common: str) -> str:
    """Return the root of the workspace of the repository with the common git folder ``common``."""
    return os.path.join(common, FOLDER)


def workspace_at(folder: str) -> str | None:
    """Return the workspace in ``folder``. It can be a workspace's folder, or a working tree or git folder of
    a repository with a workspace. None for other folders."""
    if is_workspace(folder):
        return folder
    place = repository_at(folder)
    root = workspace_root(place.common) if place is not None else ""
    return root if root and is_workspace(root) else None


def find_workspace(folder: str) -> str | None:
    """Return the nearest workspace around ``folder``, None if there is none.

    A workspace is found in its own folder, in the working trees of its repository, and in folders below.
    """
    while (found := workspace_at(folder)) is None:
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above
    return found


def repository_of(root: str | os.PathLike[str]) -> RepositoryPlace | None:
    """Return the repository whose workspace has the folder ``root``, as seen from its main working tree. None
    if ``root`` is the folder of another workspace."""
    path = os.path.abspath(root)
    common = os.path.dirname(path)
    if os.path.basename(path) != FOLDER or not _is_git_folder(common):
        return None
    return repository_at(common)


def display_name(root: str | os.PathLike[str]) -> str:
    """Return the display name of the workspace in the folder ``root``: the name of the folder, or of the
    repository."""
    place = repository_of(root)
    return os.path.basename(os.path.abspath(root)) if place is None else place.name


def git_folders(common: str) -> tuple[str, ...]:
    """Return the git folders of all working trees: ``common``, and the git folders of linked trees."""
    above = os.path.join(common, _WORKTREES)
    try:
        names = sorted(os.listdir(above))
    except OSError:
        names = []
    return (common, *(os.path.join(above, each) for each in names))


def _describe(folder: str, git: str) -> RepositoryPlace | None:
    if not _is_git_folder(git):
        return None
    return RepositoryPlace(folder, git, _read_path(os.path.join(git, "commondir")) or git)


def _is_git_folder(path: str) -> bool:
    """Return whether git accepts the folder ``path`` as a git folder."""

    def has(name: str) -> bool:
        return os.path.lexists(os.path.join(path, name))

    return has("HEAD") and (has("commondir") or (has("objects") and has("refs")))


def _read_path(path: str, prefix: str = "") -> str:
    """Return the absolute path after ``prefix`` in the first line of the file at ``path``; empty if there is
    none."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            text = os.fsdecode(file.read(_MAX_BYTES)).partition("\n")[0]
    except OSError:
        return ""
    given = text.removeprefix(prefix).strip()
    if not text.startswith(prefix) or not given or "\0" in given:
        return ""
    return os.path.normpath(os.path.join(os.path.dirname(path), given))
