"""What stands in a task's folder and is not for its commands: histories, and what a workspace keeps."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Sequence
from typing import Final

READ_ONLY: Final = ".git"
HIDDEN: Final = ".watchroom"

Parts = tuple[str, ...]

_MOST_FOLDERS: Final = 2000


def histories(folder: int) -> list[Parts]:
    """Where git keeps histories beneath ``folder``, a descriptor: its own first, then those of what was
    cloned into it, and the files by which submodules name theirs. Only the 2,000 folders nearest to the top
    are looked into, so that a command does not wait long for its start."""
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
            elif entry.is_dir(follow_symlinks=False) and parts != (HIDDEN,):
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
    one in the way at any moment. Where one stands, NotADirectoryError is raised, but for the last step, which
    ``flags`` with O_PATH open as it is."""
    at = os.open(".", os.O_PATH | os.O_DIRECTORY, dir_fd=folder)
    for depth, name in enumerate(parts, 1):
        last = depth == len(parts)
        try:
            step = os.open(
                name,
                (os.O_PATH | (0 if last else os.O_DIRECTORY)) | os.O_NOFOLLOW,
                dir_fd=at,
            )
        finally:
            os.close(at)
        at = step
    if flags & os.O_PATH:
        return at
    try:
        return os.open(".", flags, dir_fd=at)
    finally:
        os.close(at)
