"""Which messages of a client one of its two sources has told of already: a hook, or its transcript. Pure.

Each tells of every message, but neither is always first, and what is told has no id that both know. The same
text can be said several times, so each telling of one source stands for one of the other.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, Literal, TypeAlias

MessageSource: TypeAlias = Literal["hook", "transcript"]
_MOST: Final = 200
"""So many messages are remembered of which the other source has not told yet."""


class MessageDeduplicator:
    """Tells the second telling of a message from the first."""

    def __init__(self) -> None:
        self._ahead: OrderedDict[tuple[str, MessageSource], int] = OrderedDict()
        """How often a source told of a message of which the other has not told yet."""

    def is_duplicate(self, message: str, source: MessageSource) -> bool:
        """Whether the other source has told of ``message`` (anything that names it) before ``source`` does
        now."""
        other: MessageSource = "transcript" if source == "hook" else "hook"
        if self._take(message, other):
            return True
        self._ahead[message, source] = self._ahead.pop((message, source), 0) + 1
        if len(self._ahead) > _MOST:
            self._ahead.popitem(last=False)
        return False

    def _take(self, message: str, source: MessageSource) -> bool:
        """Use up one telling of ``source``; whether there was one."""
        count = self._ahead.pop((message, source), 0)
        if count > 1:
            self._ahead[message, source] = count - 1
        return count > 0
