"""What names a workspace wherever its folder is: 128 random bits, a row, which never change."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from typing import Final

from watchroom.journal import Journal
from watchroom.model import SYSTEM, WORKSPACE_ID, Appended, Draft, Note
from watchroom.rules.checkpoint_note import ID_BYTES

_PATH: Final = "id"
_FORM: Final = re.compile(r"[0-9a-f]{32}")


def find_workspace_id(journal: Journal) -> str:
    """The id of the workspace of ``journal`` in hex, by the first row that gives a valid one; empty where
    none does. Raises `JournalError`."""
    for row in reversed(journal.notes("workspace", _PATH, SYSTEM, WORKSPACE_ID)):
        found = row.detail.get("id")
        if isinstance(found, str) and _FORM.fullmatch(found):
            return found
    return ""


def make_workspace_id(journal: Journal, commit: Callable[[Draft], Appended]) -> str:
    """The id of the workspace of ``journal`` in hex, which gets one by a row with ``commit`` where it has
    none. Raises `JournalError`, `WorkspaceLocked`."""
    known = find_workspace_id(journal)
    if known:
        return known
    made = {"id": secrets.token_hex(ID_BYTES)}
    # Of several that make one at the same moment the key lets one be.
    invalid = len(journal.notes("workspace", _PATH, SYSTEM, WORKSPACE_ID))
    commit(Note(SYSTEM, WORKSPACE_ID, "workspace", _PATH, detail=made, key=f"{WORKSPACE_ID}/{invalid}"))
    return find_workspace_id(journal)
