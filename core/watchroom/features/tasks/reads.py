"""Details for front ends: requirements and limits of tasks, their files, and the output of commands."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, TypeAlias

from watchroom.features.tasks.rows import COMMAND, FILE
from watchroom.features.tasks.view import CommandView, TaskView
from watchroom.kernel.journal import Journal
from watchroom.kernel.reads import find_content, read_heads
from watchroom.kernel.rules.details import get_int, get_object, get_text, output_stream
from watchroom.model import PRINTED, Row, parse_object

MAX_PIECES: Final = 2000
"""Maximum number of newest pieces of output that are read at a time."""

Stream: TypeAlias = Literal["stdout", "stderr"]


class Piece(NamedTuple):
    """A piece of output, and the stream it was printed on."""

    stream: Stream
    text: str


class Output(NamedTuple):
    """The output of a running command, oldest first, and the last row that was read."""

    pieces: tuple[Piece, ...]
    until: int


class CommandRecord(NamedTuple):
    """The end of a command.

    - ``stdout``, ``stderr``: its output, or only the end of its output if ``is_truncated``.
    - ``exit_code``: None if the command was ended from outside or did not start.
    - ``is_interrupted``: whether the process that ran it died.
    - ``error``, ``message``: the code and the text of the error that prevented the start.
    """

    stdout: str = ""
    stderr: str = ""
    exit_code: int | None = None
    is_truncated: bool = False
    is_interrupted: bool = False
    error: str = ""
    message: str = ""


def read_output(journal: Journal, command: CommandView, *, after: int = 0) -> Output:
    """Return the output of ``command`` after row ``after`` (default: all), up to its last row. Raise
    `JournalError`."""
    until = command.printed.seq if command.printed else command.begun.seq
    rows = journal.notes(
        COMMAND,
        command.path,
        command.begun.actor,
        PRINTED,
        after=max(after, command.begun.seq),
        until=until,
        limit=MAX_PIECES,
    )
    pieces = tuple(Piece(output_stream(row), find_content(journal, row) or "") for row in reversed(rows))
    return Output(pieces, until)


def read_end(journal: Journal, command: CommandView) -> CommandRecord | None:
    """Return the end of ``command``, None while it runs. Raise `JournalError`."""
    return None if command.ended is None else parse_end(find_content(journal, command.ended) or "")


def parse_end(content: str) -> CommandRecord:
    """Return the end of a command from the ``content`` of its last row; empty if that is damaged."""
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


class TaskDetails(NamedTuple):
    """A task in full.

    - ``requirement``: the full text of the requirement.
    - ``limits``: the limits that were set, by name (``depth``, ``agents``, ``steps``).
    - ``model``: the model of its agents, empty if none was named.
    """

    requirement: str
    limits: Mapping[str, int] = MappingProxyType({})
    model: str = ""


def read_task(journal: Journal, task: TaskView) -> TaskDetails:
    """Return ``task`` in full. Raise `JournalError`."""
    record = parse_object(find_content(journal, task.row) or "") or {}
    limits = {name: limit for name, limit in get_object(record, "limits").items() if isinstance(limit, int)}
    requirement = get_text(record, "requirement") or task.row.message
    return TaskDetails(requirement, MappingProxyType(limits), get_text(record, "model"))


def list_task_files(journal: Journal, task: str, *, as_of: int) -> tuple[Row, ...]:
    """Return the files of ``task`` at row ``as_of``, sorted by path. Raise `JournalError`."""
    return read_heads(journal, FILE, f"{task}/", as_of=as_of)
