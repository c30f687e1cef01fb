"""The place of a workspace as a word of a shown command."""

from __future__ import annotations

import os

from watchroom.features.policy.shown_commands import quote_word
from watchroom.kernel.journal import Journal, is_server_address, without_password


def place_word(root: str) -> str:
    """Return the folder or address ``root`` as one quoted word. Passwords in an address are removed. The word
    is ``DIR`` for a folder with invisible characters in its name."""
    return quote_word(without_password(root) if is_server_address(root) else root)


def own_folder(journal: Journal, root: str | None) -> str:
    """Return the folder ``root`` of the workspace of ``journal``. Empty for a journal on a server, where
    commands need another address. Also empty if ``root`` is None or an address."""
    is_folder = bool(root) and not journal.is_shared and not is_server_address(root or "")
    return os.path.abspath(root or "") if is_folder else ""
