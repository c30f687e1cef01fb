"""Where the tests have their files: in memory, where there is room."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Final

_MEMORY: Final = Path("/dev/shm")
_PREFIX: Final = "wr-tests-"
_ROOM: Final = 4 * 1024**3
"""Bytes that have to be free: the files of a run, and some 100 databases for each of its processes."""


def memory_folder() -> Path | None:
    """A folder in memory from which programs can be run, None where there is none, or not enough room."""
    if not os.access(_MEMORY, os.W_OK):
        return None
    found = os.statvfs(_MEMORY)
    has_room = found.f_bavail * found.f_frsize >= _ROOM
    return _MEMORY if has_room and not found.f_flag & os.ST_NOEXEC else None


def choose_base() -> Path | None:
    """A folder in memory for the files of this run, yet to be made; None where there is no memory. Those of runs that
    have ended go."""
    memory = memory_folder()
    if memory is None:
        return None
    for left in memory.glob(f"{_PREFIX}*"):
        if not Path("/proc", left.name.removeprefix(_PREFIX)).exists():
            remove_tree(left)
    return memory / f"{_PREFIX}{os.getpid()}"


def remove_tree(folder: Path) -> None:
    """Remove ``folder`` with all in it, however deep: `shutil.rmtree` ends with a RecursionError at 1,000 levels."""
    subprocess.run(["rm", "-rf", folder], check=False)
