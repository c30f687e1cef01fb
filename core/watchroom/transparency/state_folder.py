"""The folder in which this user keeps the state of workspaces."""

from __future__ import annotations

import os
from typing import Final

_FOLDER: Final = "checkpoints"


def state_folder() -> str:
    """This user's folder for states."""
    from platformdirs import user_state_path

    return str(user_state_path("watchroom", appauthor=False))


def checkpoint_folder(state: str) -> str:
    """Where in the folder ``state`` checkpoints are kept, and the keys that sign them."""
    return os.path.join(state, _FOLDER)
