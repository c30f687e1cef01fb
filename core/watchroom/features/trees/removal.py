"""Removes Watchroom's files from the git folders of a repository."""

from __future__ import annotations

import os
import shutil

from watchroom.features.trees.git import GitTree
from watchroom.features.trees.place import ADDED_FILE, TREE_FILE, git_folders, workspace_root
from watchroom.features.trees.trials import is_trial, remove_trials, trials_folder
from watchroom.features.trees.worktrees import list_worktrees

_LEAVING = ".leaving"


def remove_traces(common: str) -> list[str]:
    """Remove the workspace of the repository with the common git folder ``common``, the copies in which work
    was tried, and the files of Watchroom in the git folders of its trees.

    The workspace is renamed first, so that no other process opens it half removed. The next call continues an
    interrupted removal. Return the paths that were removed. Raise OSError, `GitError`.
    """
    root = workspace_root(common)
    leaving = root + _LEAVING
    removed = _remove_trials(common)
    if os.path.lexists(leaving):
        shutil.rmtree(leaving)
    if os.path.isdir(root) and not os.path.islink(root):
        os.rename(root, leaving)
        shutil.rmtree(leaving)
        removed.append(root)
    for folder in git_folders(common):
        for path in (os.path.join(folder, name) for name in (TREE_FILE, ADDED_FILE)):
            if os.path.lexists(path):
                os.unlink(path)
                removed.append(path)
    return removed


def _remove_trials(common: str) -> list[str]:
    removed = []
    for folder in list_worktrees(common):
        tree = GitTree.find(folder)
        # A tree without an id has no copies, and reading the id would create it.
        if tree is None or is_trial(tree) or not os.path.lexists(os.path.join(tree.git, TREE_FILE)):
            continue
        copies = trials_folder(tree)
        if os.path.isdir(copies):
            remove_trials(tree)
            removed.append(copies)
    return removed
