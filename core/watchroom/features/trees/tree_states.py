"""The working trees of a repository and the states that they can be in, as git's own files describe them.

A tree whose folder is gone is listed too: git knows its branch, its commit and its index until it is removed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final, Literal, NamedTuple, TypeAlias, cast

from watchroom.features.trees.git import GitTree
from watchroom.features.trees.git_process import run_git
from watchroom.features.trees.place import TREE_FILE, repository_at
from watchroom.features.trees.tree_files import AddedFiles
from watchroom.features.trees.trials import is_trial

Word: TypeAlias = Literal[
    "gone",
    "replaced",
    "locked",
    "branch_deleted",
    "detached",
    "rebase",
    "am",
    "merge",
    "cherry-pick",
    "revert",
    "bisect",
    "index_locked",
    "submodules",
    "incomplete",
    "setup_failed",
]
"""An unusual state of a tree.

- ``gone``: its folder was removed by hand, or is on a disk that is not there.
- ``replaced``: another repository or tree is in its folder.
- ``locked``: a person has locked it (``git worktree lock``).
- ``branch_deleted``: the branch that it has checked out does not exist.
- ``detached``: it has checked out a commit, and no branch.
- ``rebase``, ``am``, ``merge``, ``cherry-pick``, ``revert``, ``bisect``: the operation is not finished.
- ``index_locked``: git is changing its index, or was killed.
- ``submodules``: it has checked out submodules.
- ``incomplete``: the command that added it was killed, so files are missing.
- ``setup_failed``: its setup command failed.
"""
UNFINISHED: Final[tuple[Word, ...]] = ("rebase", "am", "merge", "cherry-pick", "revert", "bisect")
_GIT: Final = ".git"
_LINK: Final = "gitdir"
_MAX_BYTES: Final = 4096


class TreePlace(NamedTuple):
    """A working tree.

    - ``folder``: its absolute path, whether it exists or not.
    - ``git``: its own git folder.
    - ``common``: the git folder that all trees share.
    - ``id``: its id; empty if it has none yet.
    - ``branch``: empty if HEAD is detached.
    - ``head``: the id of the commit; empty if there is none.
    - ``words``: its unusual states.
    """

    folder: str
    git: str
    common: str
    id: str
    branch: str
    head: str
    words: tuple[Word, ...]

    @property
    def is_main(self) -> bool:
        """Whether it is the repository's main tree."""
        return self.git == self.common

    @property
    def is_there(self) -> bool:
        """Whether its folder exists and belongs to it."""
        return "gone" not in self.words and "replaced" not in self.words

    @property
    def tree(self) -> GitTree:
        """Git's view of the tree."""
        return GitTree(self.folder, self.git, self.common)


def list_places(common: str) -> list[TreePlace]:
    """Return the working trees of the repository with the shared git folder ``common``, the main one first.
    Copies in which work is tried are left out. Raise `GitError`, OSError."""
    return [_describe(folder, git, common) for folder, git in _find_folders(common)]


def is_shallow(common: str) -> bool:
    """Return whether the repository lacks older commits, so that commits cannot all be counted."""
    return os.path.exists(os.path.join(common, "shallow"))


def has_submodules(git: str) -> bool:
    """Return whether the linked tree with the git folder ``git`` has submodules. Their repositories are in
    that folder."""
    try:
        return bool(os.listdir(os.path.join(git, "modules")))
    except (FileNotFoundError, NotADirectoryError):
        return False


def _find_folders(common: str) -> Iterator[tuple[str, str]]:
    """Yield the folder and the git folder of each tree."""
    main = os.path.dirname(common)
    if os.path.basename(common) == _GIT and os.path.isdir(main):
        yield main, common
    above = os.path.join(common, "worktrees")
    try:
        names = sorted(os.listdir(above))
    except (FileNotFoundError, NotADirectoryError):
        return
    for name in names:
        git = os.path.join(above, name)
        link = _read(os.path.join(git, _LINK))
        folder = os.path.dirname(os.path.normpath(os.path.join(git, link)))
        if link and not is_trial(GitTree(folder, git, common)):
            yield folder, git


def _describe(folder: str, git: str, common: str) -> TreePlace:
    words: list[Word] = []
    if git != common:
        words += _find_place_words(folder, git)
    is_there = not words or words == ["locked"]
    state = GitTree(folder if is_there else common, git, common).read_state()
    if not state.branch:
        words.append("detached")
    elif not state.head and _has_commits(common, git):
        words.append("branch_deleted")
    if state.operation:
        words.append(cast("Word", state.operation))
    if state.is_index_locked:
        words.append("index_locked")
    if git != common and has_submodules(git):
        words.append("submodules")
    if not AddedFiles.read(git).is_complete:
        words.append("incomplete")
    found = _read(os.path.join(git, TREE_FILE))
    return TreePlace(os.path.realpath(folder), git, common, found, state.branch, state.head, tuple(words))


def _find_place_words(folder: str, git: str) -> Iterator[Word]:
    if not os.path.isdir(folder):
        yield "gone"
    else:
        place = repository_at(folder)
        if place is None or os.path.realpath(place.git) != os.path.realpath(git):
            yield "replaced"
    if os.path.exists(os.path.join(git, "locked")):
        yield "locked"


def _has_commits(common: str, git: str) -> bool:
    """Return whether the tree had a commit: a new repository has a branch without one."""
    if os.path.exists(os.path.join(git, "logs", "HEAD")):
        return True
    done = run_git(("for-each-ref", "--count=1"), folder=common, variables={"GIT_DIR": common})
    return bool(done.output)


def _read(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return os.fsdecode(file.read(_MAX_BYTES)).partition("\n")[0].strip()
    except OSError:
        return ""
