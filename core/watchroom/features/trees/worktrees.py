"""The working trees of a git repository, found by reading its files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

MAX_WORKTREES: Final = 1000
"""Maximum number of linked working trees that are read."""
_MAX_BYTES: Final = 4096


def find_worktrees(folder: str) -> tuple[str, ...]:
    """Return the folders that correspond to ``folder`` in the other working trees of its repository.

    ``folder``: an absolute path. If it is ``app`` in one tree, the result has ``app`` of every other tree,
    main or linked. The result is empty outside of a repository.

        >>> find_worktrees("/repo/app")
        ('/repo/.claude/worktrees/a/app',)
    """
    root = folder
    while not os.path.lexists(os.path.join(root, ".git")):
        parent = os.path.dirname(root)
        if parent == root:
            return ()
        root = parent
    inner = os.path.relpath(folder, root)
    common = _common_folder(os.path.join(root, ".git"))
    trees = [os.path.normpath(os.path.join(tree, inner)) for tree in _trees(common)]
    return tuple(dict.fromkeys(tree for tree in trees if tree != os.path.normpath(folder)))


def list_worktrees(common: str) -> list[str]:
    """Return the folders of all working trees of the repository whose shared git folder is ``common``.
    Removed folders are left out."""
    return [tree for tree in dict.fromkeys(_trees(common)) if os.path.lexists(os.path.join(tree, ".git"))]


def _common_folder(git: str) -> str:
    """Return the git folder that all working trees share. ``git``: the ``.git`` of any of them."""
    if os.path.isdir(git):
        return git
    own = _read_path(git, prefix="gitdir: ")
    return (own and _read_path(os.path.join(own, "commondir"))) or own


def _trees(common: str) -> Iterator[str]:
    if os.path.basename(common) == ".git":
        yield os.path.dirname(common)
    administration = os.path.join(common, "worktrees")
    try:
        names = sorted(os.listdir(administration))
    except (FileNotFoundError, NotADirectoryError):
        return
    for name in names[:MAX_WORKTREES]:
        git = _read_path(os.path.join(administration, name, "gitdir"))
        if git:
            yield os.path.dirname(git)


def _read_path(path: str, prefix: str = "") -> str:
    """Return the absolute path in the file at ``path``; empty if there is none."""
    try:
        with open(path, "rb") as file:
            line = os.fsdecode(file.read(_MAX_BYTES)).partition("\n")[0]
    except (FileNotFoundError, NotADirectoryError):
        return ""
    if not line.startswith(prefix) or line == prefix:
        return ""
    return os.path.normpath(os.path.join(os.path.dirname(path), line.removeprefix(prefix)))
