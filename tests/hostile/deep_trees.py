"""Folders in folders, deeper than a path can name."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from watchroom.platform.sandbox.supervisor import remove_tree


@contextmanager
def deep_tree(top: Path, depth: int) -> Iterator[None]:
    """``depth`` folders named ``d`` below ``top``, with a file at the end; removed afterwards."""
    top.mkdir()
    folder = os.open(top, os.O_RDONLY)
    try:
        for _ in range(depth):
            os.mkdir("d", dir_fd=folder)
            above, folder = folder, os.open("d", os.O_RDONLY, dir_fd=folder)
            os.close(above)
        os.close(os.open("end", os.O_CREAT | os.O_WRONLY, dir_fd=folder))
        yield
    finally:
        os.close(folder)
        remove_tree(str(top))
