"""Buffers: their texts, what they changed, and the choice that is open."""

from __future__ import annotations

from watchroom.journal import Journal
from watchroom.model import Row
from watchroom.zones.buffers.buffer_text import BufferText, read_buffer_text

__all__ = ["BufferText", "read_buffer"]


def read_buffer(journal: Journal, version: Row) -> BufferText:
    """The buffer in ``journal`` as its row ``version`` left it. Takes time in proportion to its text. Raises
    `JournalError`."""
    return read_buffer_text(journal, version)
