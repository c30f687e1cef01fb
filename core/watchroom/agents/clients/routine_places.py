"""`RoutinePlaces`: the workspaces with active routines, so that a new service opens them again.

Each has a file in this user's state folder, which contains the path of the workspace.
"""

from __future__ import annotations

import os
from contextlib import suppress
from hashlib import sha256
from typing import Final

from watchroom.platform.files import replace_durably

_FOLDER: Final = "routines"
_MAX_BYTES: Final = 4096


class RoutinePlaces:
    """The workspaces of this user with active routines. ``state``: the folder with this user's state.

    Methods raise OSError.
    """

    def __init__(self, state: str) -> None:
        self._folder = os.path.join(state, _FOLDER)

    def list(self) -> list[str]:
        """Return the folders of the workspaces. Some may be gone."""
        found = []
        with suppress(FileNotFoundError):
            for name in sorted(os.listdir(self._folder)):
                with open(os.path.join(self._folder, name), "rb") as file:
                    root = os.fsdecode(file.read(_MAX_BYTES))
                # A half-written file has another name.
                if self._path_of(root) == os.path.join(self._folder, name):
                    found.append(root)
        return found

    def keep(self, root: str) -> None:
        """Remember the workspace at ``root``."""
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        replace_durably(self._path_of(root), os.fsencode(root))

    def forget(self, root: str) -> None:
        """Forget the workspace at ``root``."""
        with suppress(FileNotFoundError):
            os.unlink(self._path_of(root))

    def _path_of(self, root: str) -> str:
        return os.path.join(self._folder, sha256(os.fsencode(root)).hexdigest()[:16])
