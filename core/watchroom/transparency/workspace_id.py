"""The id of the workspace, as checkpoints name it: 128 random bits, in hex."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from typing import Final

from watchroom.journal import Journal
from watchroom.model import IDENTIFY, SYSTEM, Appended, Draft, Write
from watchroom.rules.checkpoint_note import ID_BYTES
from watchroom.rules.effects import ID_PATH
from watchroom.rules.people import ID_ZONE
from watchroom.zones.people import find_id

_FORM: Final = re.compile(r"[0-9a-f]{32}")


def find_workspace_id(journal: Journal) -> str:
    """The id of the workspace of ``journal``, empty where it has none, or a spoilt one. Raises
    `JournalError`."""
    found = find_id(journal)
    return found if _FORM.fullmatch(found) else ""


def make_workspace_id(journal: Journal, commit: Callable[[Draft], Appended]) -> str:
    """The id of the workspace of ``journal``, which gets one by a row with ``commit`` where it has none.
    Raises `JournalError`, `WorkspaceLocked`."""
    if not find_workspace_id(journal):
        # Of several that make one at the same moment one makes the first version.
        commit(Write(SYSTEM, IDENTIFY, ID_ZONE, ID_PATH, secrets.token_hex(ID_BYTES), expected=0))
    return find_workspace_id(journal)
