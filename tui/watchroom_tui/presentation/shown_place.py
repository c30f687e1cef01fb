"""Where a workspace is, as a word of a command that people see."""

from __future__ import annotations

import os

from watchroom.features.policy.shown_commands import quote_word
from watchroom.kernel.journal import Journal, is_server_address, without_password


def place_word(root: str) -> str:
    """Return the folder or address ``root`` as one quoted word: an address without its password, and
    ``DIR`` for a folder whose name has characters that cannot be seen."""
    return quote_word(without_password(root) if is_server_address(root) else root)


def own_folder(journal: Journal, root: str | None) -> str:
    """Return the folder ``root`` of the workspace of ``journal``; empty for a journal on a server, whose
    commands need another address, and for ``root`` None or an address."""
    is_folder = bool(root) and not journal.is_shared and not is_server_address(root or "")
    return os.path.abspath(root or "") if is_folder else ""
