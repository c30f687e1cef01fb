"""The numbers of commits by which a working tree is ahead of a branch and behind it. Starts git, so do not
call it on an event loop."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from watchroom.errors import GitError
from watchroom.features.trees.git_process import run_git
from watchroom.features.trees.rows import Tree
from watchroom.features.trees.view import is_linked


class Standing(NamedTuple):
    """A tree compared with a branch.

    - ``target``: the name of the branch.
    - ``ahead``: the number of commits that only HEAD has.
    - ``behind``: the number of commits that only ``target`` has.
    """

    target: str
    ahead: int
    behind: int


def read_standing(tree: Tree, trees: Iterable[Tree]) -> Standing | None:
    """Compare ``tree`` with its upstream, else with the branch of the main tree in ``trees``.

    None if the tree has no commit, or there is no branch to compare it with. Raise `GitError`, OSError.
    """
    if not tree.head:
        return None
    target = _find_upstream(tree)
    if not target:
        main = next((each for each in trees if not is_linked(each)), None)
        if main is None or not main.branch or main.branch == tree.branch:
            return None
        target = main.branch
    try:
        counts = _git(tree, "rev-list", "--left-right", "--count", f"HEAD...{target}", "--").split()
    except GitError:
        # The upstream was removed, or the main branch has no commit yet.
        return None
    return Standing(target, int(counts[0]), int(counts[1]))


def _find_upstream(tree: Tree) -> str:
    if not tree.branch:
        return ""
    return _git(tree, "for-each-ref", "--format=%(upstream:short)", f"refs/heads/{tree.branch}").strip()


def _git(tree: Tree, *arguments: str) -> str:
    done = run_git(arguments, folder=tree.folder, variables={"GIT_DIR": tree.git})
    return done.output.decode("utf-8", "surrogateescape")
