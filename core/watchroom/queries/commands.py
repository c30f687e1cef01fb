"""What commands print: while they run, and whole when they have ended."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, TypeAlias

from watchroom.journal import Journal
from watchroom.model import PRINTED, parse_object
from watchroom.projections.tasks import CommandView
from watchroom.queries.rows import find_content
from watchroom.rules.details import get_int, get_text, output_stream

MOST_PIECES: Final = 2000
"""So many pieces of what a command prints are given at a time, the newest."""

Stream: TypeAlias = Literal["stdout", "stderr"]


class Piece(NamedTuple):
    """A piece of what a command printed, and where."""

    stream: Stream
    text: str


class Output(NamedTuple):
    """What a running command printed, oldest first, and the number of the row until which that is."""

    pieces: tuple[Piece, ...]
    until: int


class CommandRecord(NamedTuple):
    """How a command ended, and what it printed: its ends, where it was ``is_truncated``. ``exit_code`` is
    None where it did not end by itself; ``error`` is the code, and ``message`` the text, of what kept it from
    starting; ``is_interrupted``: the process that ran it died."""

    stdout: str = ""
    stderr: str = ""
    exit_code: int | None = None
    is_truncated: bool = False
    is_interrupted: bool = False
    error: str = ""
    message: str = ""


def read_output(journal: Journal, command: CommandView, *, after: int = 0) -> Output:
    """What ``command`` printed in ``journal`` by the rows that it knows of, after row ``after``. Raises
    `JournalError`."""
    until = command.printed.seq if command.printed else command.begun.seq
    rows = journal.notes(
        "command",
        command.path,
        command.begun.actor,
        PRINTED,
        after=max(after, command.begun.seq),
        until=until,
        limit=MOST_PIECES,
    )
    pieces = tuple(Piece(output_stream(row), find_content(journal, row) or "") for row in reversed(rows))
    return Output(pieces, until)


def read_end(journal: Journal, command: CommandView) -> CommandRecord | None:
    """How ``command`` ended by ``journal``, None while it runs. Raises `JournalError`."""
    return None if command.ended is None else parse_end(find_content(journal, command.ended) or "")


def parse_end(content: str) -> CommandRecord:
    """Return how a command ended by the ``content`` of its last row; an empty record if it is damaged."""
    record = parse_object(content) or {}
    return CommandRecord(
        get_text(record, "stdout"),
        get_text(record, "stderr"),
        get_int(record, "exitCode"),
        bool(record.get("cut")),
        bool(record.get("interrupted")),
        get_text(record, "error"),
        get_text(record, "message"),
    )
