"""The keys of machines that sign a workspace's checkpoints, as this user has come to know them.

A machine's key is taken at its word the first time, and pinned: one that comes later is told.
"""

from __future__ import annotations

import os
import re
from collections.abc import Set as AbstractSet
from typing import Final

from watchroom.files import replace_durably
from watchroom.transparency.state_folder import checkpoint_folder

FINGERPRINT: Final = re.compile(r"SHA256:[A-Za-z0-9+/]{43}")
_MOST_BYTES: Final = 64 * 1024


class KeyPins:
    """The fingerprints of keys that are pinned in the folder ``state``, for each workspace by its id."""

    def __init__(self, state: str) -> None:
        self._folder = checkpoint_folder(state)

    def read(self, workspace: str) -> frozenset[str] | None:
        """What is pinned for ``workspace``, None where nothing ever was. Raises OSError."""
        try:
            with open(self._file(workspace), "rb") as file:
                lines = file.read(_MOST_BYTES).decode("ascii", "replace").splitlines()
        except FileNotFoundError:
            return None
        return frozenset(each for each in lines if FINGERPRINT.fullmatch(each))

    def add(self, workspace: str, fingerprints: AbstractSet[str]) -> None:
        """Pin ``fingerprints`` for ``workspace``, too. Raises OSError."""
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        known = self.read(workspace) or frozenset()
        lines = "".join(f"{each}\n" for each in sorted(known | fingerprints))
        replace_durably(self._file(workspace), lines.encode("ascii"))

    def _file(self, workspace: str) -> str:
        return os.path.join(self._folder, f"{workspace}.keys")
