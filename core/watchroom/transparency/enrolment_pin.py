"""The row by which people closed a workspace, as this user's state folder remembers it.

Whoever can write to the journal can delete the rows of everybody who is enrolled. Then the workspace would be
open again, and anybody's decisions would count. So the row that closed it is remembered elsewhere, by place.
"""

from __future__ import annotations

import hashlib
import os
import re
from contextlib import suppress
from typing import Final

from watchroom.checkout.rendering import verified_content
from watchroom.files import replace_durably
from watchroom.journal import Journal
from watchroom.model import Row
from watchroom.rules.row_leaf import hash_row
from watchroom.transparency.state_folder import checkpoint_folder

_FORM: Final = re.compile(r"([1-9][0-9]{0,17}) ([0-9a-f]{64})\n")
_MAX_BYTES: Final = 200


class EnrolmentPin:
    """The pinned row of the workspace at ``place`` (its folder, or the address of its database), in the
    folder ``state``."""

    def __init__(self, state: str, place: str) -> None:
        name = f"at-{hashlib.sha256(place.encode()).hexdigest()[:32]}.people"
        self._path = os.path.join(checkpoint_folder(state), name)

    def is_broken(self, journal: Journal) -> bool:
        """Whether a row is pinned that ``journal`` does not have any more, or not as it was. Raise
        `JournalError`, OSError."""
        pinned = self._read()
        if pinned is None:
            return False
        row = journal.row(pinned[0])
        if row is None or hash_row(row).hex() != pinned[1]:
            return True
        return verified_content(journal, row) is None

    def keep(self, founding: Row) -> None:
        """Pin ``founding`` if no row is pinned yet. Raise OSError."""
        if self._read() is None:
            os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
            replace_durably(self._path, f"{founding.seq} {hash_row(founding).hex()}\n".encode())

    def forget(self) -> None:
        """Forget the pinned row. Raise OSError."""
        with suppress(FileNotFoundError):
            os.unlink(self._path)

    def _read(self) -> tuple[int, str] | None:
        try:
            with open(self._path, "rb") as file:
                found = _FORM.fullmatch(file.read(_MAX_BYTES).decode("ascii", "replace"))
        except FileNotFoundError:
            return None
        return (int(found[1]), found[2]) if found else None
