"""This user's folder for states: what is kept there of workspaces, and how."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from typing import Final

_FOLDER: Final = "checkpoints"


def state_folder() -> str:
    """This user's folder for states."""
    from platformdirs import user_state_path

    return str(user_state_path("watchroom", appauthor=False))


def checkpoint_folder(state: str) -> str:
    """Where in the folder ``state`` checkpoints are kept, and the keys that sign them."""
    return os.path.join(state, _FOLDER)


def replace_text(path: str, text: str) -> None:
    """Put ``text`` (ASCII) into the file at ``path``, at one stroke and durably. Raises OSError."""
    folder = os.path.dirname(path) or "."
    fd, scratch = tempfile.mkstemp(prefix=".checkpoint-", dir=folder)
    try:
        with open(fd, "w", encoding="ascii") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(scratch, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(scratch)
        raise
