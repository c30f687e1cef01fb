"""Wrap sentences for people at a terminal."""

from __future__ import annotations

import shutil

from watchroom_tui.formatters.columns import wrap


def wrap_words(text: str) -> str:
    """Return ``text`` with lines as wide as the terminal, broken between words. Terminals would break within
    words."""
    columns = shutil.get_terminal_size().columns - 1
    return "\n".join(piece.rstrip() for line in text.split("\n") for piece in wrap(line, columns))
