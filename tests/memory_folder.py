"""The folder of the tests' files: in memory if there is space."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Final

_MEMORY: Final = Path("/dev/shm")
_PREFIX: Final = "wr-tests-"
_ROOM: Final = 4 * 1024**3
"""Min free bytes: the files of a run, and some 100 databases for each of its processes."""


def memory_folder() -> Path | None:
    """Return a folder in memory from which programs can be run, None if there is none or too little space."""
    if not os.access(_MEMORY, os.W_OK):
        return None
    found = os.statvfs(_MEMORY)
    has_room = found.f_bavail * found.f_frsize >= _ROOM
    return _MEMORY if has_room and not found.f_flag & os.ST_NOEXEC else None


def choose_base() -> Path | None:
    """Return a path in memory for the files of this run, None if there is no memory. The files of ended runs
    are removed."""
    memory = memory_folder()
    if memory is None:
        return None
    for left in memory.glob(f"{_PREFIX}*"):
        if not Path("/proc", left.name.removeprefix(_PREFIX)).exists():
            remove_tree(left)
    return memory / f"{_PREFIX}{os.getpid()}"


def remove_tree(folder: Path) -> None:
    """Remove ``folder`` of any depth. `shutil.rmtree` raises RecursionError at 1,000 levels."""
    subprocess.run(["rm", "-rf", folder], check=False)
