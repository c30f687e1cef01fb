"""The id of the workspace, as checkpoints name it: 128 random bits, in hex."""

from __future__ import annotations

from collections.abc import Callable

from watchroom.journal import Journal
from watchroom.model import SYSTEM, Appended, Draft
from watchroom.zones.people import find_id, id_draft


def find_workspace_id(journal: Journal) -> str:
    """Return the id of the workspace of ``journal``, empty where it has none. Raise `JournalError`."""
    return find_id(journal)


def make_workspace_id(journal: Journal, commit: Callable[[Draft], Appended]) -> str:
    """The id of the workspace of ``journal``, which gets one by a row with ``commit`` where it has none.
    Raises `JournalError`, `WorkspaceLocked`."""
    if not find_workspace_id(journal):
        # Of several that make one at the same moment one makes the next version.
        commit(id_draft(journal, SYSTEM))
    return find_workspace_id(journal)
