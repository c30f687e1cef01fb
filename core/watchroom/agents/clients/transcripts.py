"""Reads a client's transcript, and reconciles it with the reports of hooks.

A hook and the transcript report the same messages. A transcript can have several lines for one message.
"""

from __future__ import annotations

import json
import os
import stat
from collections import OrderedDict
from collections.abc import Sequence
from io import StringIO
from typing import Final, Literal, TypeAlias

from watchroom.agents.clients.adapter import Event
from watchroom.agents.clients.events import UsageAdded
from watchroom.agents.clients.json_fields import time_of
from watchroom.agents.clients.session import ClientSession
from watchroom.features.budgets.rows import UsageTotal

MessageSource: TypeAlias = Literal["hook", "transcript"]
_MAX_READ_BYTES: Final = 4_000_000
"""Maximum bytes of a transcript that are read at a time."""
_MAX_LINE_BYTES: Final = 1_000_000
"""Maximum bytes of a transcript's line. Longer lines are skipped."""
_MAX_MESSAGES: Final = 200
"""Maximum number of messages that a `MessageDeduplicator` or a `MessageUsage` remembers."""
_MAX_SHOWN: Final = 100
"""Maximum number of messages whose pieces are kept. If there are more, the oldest is dropped."""
_MAX_CHARACTERS: Final = 1_000_000
"""Maximum characters of a message that are kept. Further pieces are skipped and not counted."""


class TranscriptFile:
    """The transcript of ``session`` at ``path``, which is still growing.

    ``opened``: when it was opened, in nanoseconds since the epoch
    """

    def __init__(self, path: str, session: ClientSession, opened: int) -> None:
        self.path = path
        self.session = session
        self._opened = opened
        self._offset = 0
        self._returned: list[Event] = []

    def is_new(self, line: Event) -> bool:
        """Return whether the client wrote ``line`` after this file was opened."""
        return time_of(line, "timestamp") > self._opened

    def give_back(self, lines: Sequence[Event]) -> None:
        """Have the next `read` return ``lines`` again, because they could not be recorded."""
        self._returned = [*lines, *self._returned]

    def read(self) -> list[Event]:
        """Return the new complete lines. The result is empty if the file cannot be read."""
        if self._returned:
            returned, self._returned = self._returned, []
            return returned
        try:
            # Opening a pipe would block until another process writes to it.
            with open(os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    return []
                file.seek(self._offset)
                read = file.read(_MAX_READ_BYTES)
        except OSError:
            return []
        end = read.rfind(b"\n") + 1
        if not end and len(read) == _MAX_READ_BYTES:
            # The line is also longer than the limit for lines.
            end = len(read)
        self._offset += end
        return [event for line in read[:end].splitlines() if (event := _parse_line(line)) is not None]


def _parse_line(line: bytes) -> Event | None:
    if len(line) > _MAX_LINE_BYTES:
        return None
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) else None


class MessageDeduplicator:
    """Finds messages that a hook and the transcript both report.

    Either source can be first, and the two have no common id. The same text can be sent several times, so
    each report of one source matches one report of the other.
    """

    def __init__(self) -> None:
        self._unmatched: OrderedDict[tuple[str, MessageSource], int] = OrderedDict()
        """Reports that have no matching report of the other source yet."""

    def is_duplicate(self, message: str, source: MessageSource) -> bool:
        """Return whether the other source has reported ``message`` before ``source``. ``message``: all names
        of the message."""
        other: MessageSource = "transcript" if source == "hook" else "hook"
        count = self._unmatched.pop((message, other), 0)
        if count > 1:
            self._unmatched[message, other] = count - 1
        if count > 0:
            return True
        self._unmatched[message, source] = self._unmatched.pop((message, source), 0) + 1
        if len(self._unmatched) > _MAX_MESSAGES:
            self._unmatched.popitem(last=False)
        return False

    def withdraw(self, message: str, source: MessageSource) -> None:
        """Forget a report of ``message`` by ``source`` that was no duplicate, because it could not be
        recorded."""
        count = self._unmatched.pop((message, source), 0)
        if count > 1:
            self._unmatched[message, source] = count - 1


class MessagePieces:
    """Joins the pieces of messages, by the message's id."""

    def __init__(self) -> None:
        self._texts: OrderedDict[str, StringIO] = OrderedDict()
        self._counts: dict[str, int] = {}

    def add(self, message: str, piece: str) -> None:
        """Add ``piece``, the next piece of ``message``."""
        text = self._texts.setdefault(message, StringIO())
        if text.tell() + len(piece) <= _MAX_CHARACTERS:
            text.write(piece)
            self._counts[message] = self._counts.get(message, 0) + 1
        if len(self._texts) > _MAX_SHOWN:
            self.take(next(iter(self._texts)))

    def take(self, message: str) -> tuple[str, int]:
        """Remove ``message``. Return its kept text and the number of its kept pieces."""
        text = self._texts.pop(message, None)
        return ("" if text is None else text.getvalue()), self._counts.pop(message, 0)


class MessageUsage:
    """Counts the tokens of messages that have several lines in a transcript.

    Claude Code writes a line for each block of a message. The first line may be written while the message is
    still arriving, and then has fewer output tokens than the last line. The largest counts are kept.
    """

    def __init__(self) -> None:
        self._counted: OrderedDict[tuple[str, str], UsageTotal] = OrderedDict()

    def find_increase(self, session: str, report: UsageAdded) -> UsageAdded | None:
        """Return the usage that ``report`` adds to earlier lines about the same message of the session at
        ``session``.

        None if it adds nothing. Usage without a message's key is returned unchanged. The key of the result
        depends only on the lines of the transcript, so a second read gives the same keys. Call `count` once
        the result is recorded.
        """
        if not report.key:
            return report
        used, before = report.used, self._counted.get((session, report.key))
        if before is None:
            before, key = UsageTotal(), report.key
        else:
            key = f"{report.key} {used.input}-{used.output}-{used.cache_read}-{used.cache_write}"
        added = _join(used, before).minus(before)
        return UsageAdded(added, report.model, key) if added.tokens else None

    def count(self, session: str, report: UsageAdded) -> None:
        """Count ``report``, whose increase is recorded."""
        if not report.key:
            return
        place = (session, report.key)
        self._counted[place] = _join(report.used, self._counted.pop(place, UsageTotal()))
        if len(self._counted) > _MAX_MESSAGES:
            self._counted.popitem(last=False)


def _join(used: UsageTotal, before: UsageTotal) -> UsageTotal:
    """Return the larger of all counts."""
    return UsageTotal(
        max(used.input, before.input),
        max(used.output, before.output),
        max(used.cache_read, before.cache_read),
        max(used.cache_write, before.cache_write),
    )
