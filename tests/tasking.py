"""Two tasks with an agent each, and what lies in their folders."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from watchroom import Toolbox, Workspace


class Team(NamedTuple):
    """Two tasks with an agent each."""

    workspace: Workspace
    one: Toolbox
    other: Toolbox
    folder: Path
    others: Path


def emptied(folder: Path) -> Path:
    """The folder, without what an earlier example left there."""
    for left in folder.iterdir():
        if left.is_dir() and left.name != ".watchroom":
            shutil.rmtree(left)
        elif left.is_file():
            left.unlink()
    return folder


def on_disk(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink() and ".watchroom" not in path.parts
    }


@contextmanager
def as_nobody() -> Iterator[None]:
    """Without the rights of root, whom the system denies nothing."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)
