"""Readers of the output of a command: incrementally while the command runs, or complete after its end."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Final

from watchroom.features.tasks.reads import CommandRecord, read_end, read_output
from watchroom.features.tasks.view import CommandView
from watchroom.kernel.journal import Journal
from watchroom.texts import Catalogue

from watchroom_tui.formatters.styled_text import Line, Span
from watchroom_tui.presentation.sanitize import sanitize_lines

MAX_LINES: Final = 2000
"""Maximum number of the newest lines of output."""


class OutputReader:
    """Reader and cache of the output of one command. Thread-safe."""

    def __init__(self, journal: Journal, texts: Catalogue) -> None:
        self._journal = journal
        self._texts = texts
        self._path = ""
        self._seen = 0
        self._printed = _Printed()
        # A cancelled read may still run when the next one starts.
        self._lock = Lock()

    def read(self, command: CommandView) -> Sequence[Line]:
        """Return the output of the command up to its last row in ``command``."""
        ended = read_end(self._journal, command)
        if ended is not None:
            return output_lines(ended, self._texts)
        with self._lock:
            until = command.printed.seq if command.printed else command.begun.seq
            if command.path != self._path or until < self._seen:
                self._path, self._seen, self._printed = command.path, command.begun.seq, _Printed()
            found = read_output(self._journal, command, after=self._seen)
            for piece in found.pieces:
                self._printed.take(piece.text)
            self._seen = max(self._seen, found.until)
            return self._printed.lines(self._texts) or [_note_line(self._texts("output.nothing_yet"))]


def output_lines(record: CommandRecord, texts: Catalogue) -> list[Line]:
    """Return the output of an ended command, its errors, and whether the output was truncated."""
    printed = _Printed()
    has_failed = record.exit_code != 0
    for text, style in ((record.stdout, ""), (record.stderr, "warning" if has_failed else "")):
        printed.take(text if text.endswith("\n") or not text else f"{text}\n", style)
    lines = printed.lines(texts)
    if record.is_truncated:
        lines.append(_note_line(texts("output.cut")))
    if record.message or record.error:
        lines += [_note_line(line) for line in sanitize_lines(record.message or record.error)]
    if record.is_interrupted:
        lines.append(_note_line(texts("output.interrupted")))
    return lines or [_note_line(texts("output.nothing"))]


class _Printed:
    """Lines that grow. A line is stored as pieces, because both streams can write to it."""

    def __init__(self) -> None:
        self._lines: list[list[Span]] = [[]]
        self._dropped = 0

    def take(self, text: str, style: str = "") -> None:
        first, *more = sanitize_lines(text)
        if first:
            self._lines[-1].append(Span(first, style))
        self._lines += [[Span(line, style)] if line else [] for line in more]
        surplus = len(self._lines) - MAX_LINES - 1
        if surplus > 0:
            del self._lines[:surplus]
            self._dropped += surplus

    def lines(self, texts: Catalogue) -> list[Line]:
        whole = self._lines if self._lines[-1] else self._lines[:-1]
        shown: list[Line] = [[Span(" "), *line] for line in whole]
        if self._dropped:
            shown.insert(0, _note_line(texts("output.earlier", count=self._dropped)))
        return shown


def _note_line(text: str) -> Line:
    return [Span(" "), Span(text, "dim")]
