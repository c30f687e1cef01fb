"""Read the output of a command, incrementally while it runs, or whole when it has ended."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Final

from watchroom.journal import Journal
from watchroom.model import PRINTED, Json
from watchroom.projections import CommandView
from watchroom.texts import Catalogue

from watchroom_tui.sanitize import sanitize_lines
from watchroom_tui.styled_text import Line, Span

MOST_PIECES: Final = 2000
"""So many pieces of what a command prints are read at a time, the newest ones."""
MOST_LINES: Final = 2000
"""So many lines of it are shown, the newest ones."""
STYLES: Final[Mapping[str, str]] = {"stdout": "", "stderr": "warning"}


class OutputReader:
    """Keeps what it has read of one command. May be used from any thread."""

    def __init__(self, journal: Journal, texts: Catalogue) -> None:
        self._journal = journal
        self._texts = texts
        self._path = ""
        self._seen = 0
        self._printed = _Printed()
        # A reading that nobody waits for any more may still be going on when the next begins.
        self._lock = Lock()

    def read(self, command: CommandView) -> Sequence[Line]:
        """What the command has printed by the rows that ``command`` knows of."""
        if command.ended is not None:
            return read_ended(self._journal.content(command.ended.seq) or "{}", self._texts)
        with self._lock:
            until = command.printed.seq if command.printed else command.begun.seq
            if command.path != self._path or until < self._seen:
                self._path, self._seen, self._printed = command.path, command.begun.seq, _Printed()
            rows = self._journal.notes(
                "command",
                command.path,
                command.begun.actor,
                PRINTED,
                after=self._seen,
                until=until,
                limit=MOST_PIECES,
            )
            for row in reversed(rows):
                stream = str(row.detail.get("stream", "stdout"))
                self._printed.take(stream, self._journal.content(row.seq) or "")
            self._seen = max(self._seen, until)
            return self._printed.lines(self._texts) or [_noted(self._texts("output.nothing_yet"))]


def read_ended(content: str, texts: Catalogue) -> list[Line]:
    """What a command has printed by the content of its last row, what went wrong with it, and whether it
    printed more than was kept."""
    record: Mapping[str, Json] = json.loads(content)
    printed = _Printed()
    for stream in STYLES:
        text = str(record.get(stream) or "")
        printed.take(stream, text if text.endswith("\n") or not text else f"{text}\n")
    lines = printed.lines(texts)
    if record.get("cut"):
        lines.append(_noted(texts("output.cut")))
    if "error" in record:
        lines += [_noted(line) for line in sanitize_lines(str(record.get("message") or record["error"]))]
    if record.get("interrupted"):
        lines.append(_noted(texts("output.interrupted")))
    return lines or [_noted(texts("output.nothing"))]


class _Printed:
    """Lines as they grow; each is kept as its pieces, since both streams may write to one."""

    def __init__(self) -> None:
        self._lines: list[list[Span]] = [[]]
        self._dropped = 0

    def take(self, stream: str, text: str) -> None:
        style = STYLES.get(stream, "")
        first, *more = sanitize_lines(text)
        if first:
            self._lines[-1].append(Span(first, style))
        self._lines += [[Span(line, style)] if line else [] for line in more]
        surplus = len(self._lines) - MOST_LINES - 1
        if surplus > 0:
            del self._lines[:surplus]
            self._dropped += surplus

    def lines(self, texts: Catalogue) -> list[Line]:
        whole = self._lines if self._lines[-1] else self._lines[:-1]
        shown: list[Line] = [[Span(" "), *line] for line in whole]
        if self._dropped:
            shown.insert(0, _noted(texts("output.earlier", count=self._dropped)))
        return shown


def _noted(text: str) -> Line:
    return [Span(" "), Span(text, "dim")]
