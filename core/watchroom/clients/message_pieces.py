"""Messages that a client shows piece by piece, until their last one comes. Pure, and bounded."""

from __future__ import annotations

from collections import OrderedDict
from io import StringIO
from typing import Final

_MOST: Final = 100
"""So many messages are kept; of more the one that was begun first is forgotten."""
_LONGEST: Final = 1_000_000
"""Characters of one; what comes after them is left out, and not counted."""


class MessagePieces:
    """Joins the pieces of messages, each named by its id."""

    def __init__(self) -> None:
        self._texts: OrderedDict[str, StringIO] = OrderedDict()
        self._counts: dict[str, int] = {}

    def add(self, message: str, piece: str) -> None:
        """Keep ``piece``, the next one of ``message``."""
        text = self._texts.setdefault(message, StringIO())
        if text.tell() + len(piece) <= _LONGEST:
            text.write(piece)
            self._counts[message] = self._counts.get(message, 0) + 1
        if len(self._texts) > _MOST:
            self.take(next(iter(self._texts)))

    def take(self, message: str) -> tuple[str, int]:
        """Forget ``message``. Returns what is kept of its text, and of how many pieces that is."""
        text = self._texts.pop(message, None)
        return ("" if text is None else text.getvalue()), self._counts.pop(message, 0)
