"""The files with git's settings for a tree. Git processes that keep running are restarted if they change."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from watchroom.features.trees.git import GitTree

SettingsStamps: TypeAlias = tuple[tuple[int, int] | None, ...]
"""The time of the last change and the inode of each file with settings, None for a missing file."""


def stamp_settings(git: GitTree, kind: str, own: str) -> SettingsStamps:
    """Return the stamps of the files with settings that apply to the whole tree of ``git``.

    - ``kind``: ``attributes`` or ``ignore``. The tree's root has a file ``.gitattributes`` or ``.gitignore``.
    - ``own``: the name of such a file in git's folder ``info``.
    """
    return tuple(_stamp(each) for each in _list_files(git, kind, own))


def _list_files(git: GitTree, kind: str, own: str) -> Iterator[str]:
    yield os.path.join(git.common, "config")
    yield os.path.join(git.git, "config.worktree")
    yield os.path.join(git.common, "info", own)
    yield os.path.join(git.folder, f".git{kind}")
    personal = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    yield os.path.join(personal, "git", "config")
    yield os.path.join(personal, "git", kind)
    yield os.environ.get("GIT_CONFIG_GLOBAL") or os.path.expanduser("~/.gitconfig")


def _stamp(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino
