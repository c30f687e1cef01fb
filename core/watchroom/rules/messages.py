"""How rows say that messages were handed over to a client's model. Pure."""

from __future__ import annotations

from typing import Final

from watchroom.model import Row
from watchroom.rules.details import get_ints

HANDED_OVER: Final = "tell_news"
"""The tool of a note that messages were handed over. Its path is what they were sent to: an agent or a
session."""
MESSAGES: Final = "messages"
"""In the detail of such a note: the rows of the messages."""


def messages_of(note: Row) -> list[int]:
    """Return the rows of the messages that ``note`` says were handed over; none of another row."""
    return get_ints(note.detail, MESSAGES) if note.tool == HANDED_OVER else []
