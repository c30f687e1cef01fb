"""Count the tokens of messages of which a transcript has several lines. Pure.

Claude Code writes a line for each block of a message. The first line may be written while the message is
still being received, and then has fewer output tokens than the last one.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from watchroom.clients.events import UsageTold
from watchroom.rules.usage import UsageTotal

_MAX_MESSAGES: Final = 200
"""Messages whose counts are remembered."""


class MessageUsage:
    """The largest counts so far of each message."""

    def __init__(self) -> None:
        self._counted: OrderedDict[tuple[str, str], UsageTotal] = OrderedDict()

    def find_increase(self, session: str, told: UsageTold) -> UsageTold | None:
        """Return what ``told``, a line about a message of ``session`` (a path), adds to the lines before it;
        None if it adds nothing. Usage without a message's key is returned as it is.

        The key of what is returned depends only on the lines of the transcript: read again, the same lines
        give the same keys.
        """
        if not told.key:
            return told
        place, used = (session, told.key), told.used
        before = self._counted.pop(place, None)
        if before is None:
            before, key = UsageTotal(), told.key
        else:
            key = f"{told.key} {used.input}-{used.output}-{used.cache_read}-{used.cache_write}"
        counted = UsageTotal(
            max(used.input, before.input),
            max(used.output, before.output),
            max(used.cache_read, before.cache_read),
            max(used.cache_write, before.cache_write),
        )
        self._counted[place] = counted
        if len(self._counted) > _MAX_MESSAGES:
            self._counted.popitem(last=False)
        added = counted.minus(before)
        return UsageTold(added, told.model, key) if added.tokens else None
