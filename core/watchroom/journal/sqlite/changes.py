"""Waits for rows of any process: each append ends with a write to the journal's lock file."""

from __future__ import annotations

import os

from watchroom.platforms import FileWatch, Platform


def watch_appends(path: str, platform: Platform) -> FileWatch | None:
    """What wakes at each write to the lock file at ``path``; None where that cannot be made (its medium is
    read-only or full), so that nobody can append either. Raises OSError."""
    if not os.path.exists(path):
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
        except OSError:
            return None
    return platform.watch_file(path)
