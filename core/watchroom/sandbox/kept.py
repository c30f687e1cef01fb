"""What stands in a task's folder and is not for its commands: histories, and what a workspace keeps."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Sequence
from typing import Final

from watchroom.disk import MAX_DEPTH, Parts

READ_ONLY: Final = ".git"
HIDDEN: Final = ".watchroom"

_MOST_FOLDERS: Final = 2000
_STEP: Final = getattr(os, "O_PATH", os.O_RDONLY)


def is_git_name(name: str) -> bool:
    """Whether git looks for a repository there, on a file system that folds case, too."""
    return name.casefold() == READ_ONLY


def histories(folder: int) -> list[Parts]:
    """Where git keeps histories beneath ``folder``, a descriptor: its own first, then those of what was
    cloned into it, and the files by which submodules name theirs. Only the 2,000 folders nearest to the top
    are looked into, so that a command does not wait long for its start, and none that is 512 deep."""
    found: list[Parts] = []
    waiting = deque[Parts]([()])
    looked = 0
    while waiting and looked < _MOST_FOLDERS:
        above = waiting.popleft()
        looked += 1
        for entry in entries(folder, above):
            parts = (*above, entry.name)
            if entry.name == READ_ONLY and not entry.is_symlink():
                found.append(parts)
            elif len(parts) < MAX_DEPTH and entry.is_dir(follow_symlinks=False) and parts != (HIDDEN,):
                waiting.append(parts)
    return found


def entries(folder: int, parts: Parts) -> list[os.DirEntry[str]]:
    """What stands in one of its folders; nothing where that is gone, or may not be looked into."""
    try:
        opened = beneath(folder, parts, os.O_RDONLY | os.O_DIRECTORY)
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
