"""What a call of a client's own tool does to files, in words that all clients share. Pure."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from watchroom.features.trees.write_rules import Intent


class MovedText(NamedTuple):
    """Writes the text of the file at ``source``, as the same call changes it before it removes that file."""

    source: str


class FileWrite(NamedTuple):
    """A call writes the file at ``path``, as ``intent`` says. The path is as the client gives it."""

    path: str
    intent: Intent | MovedText


class NewText(NamedTuple):
    """What a call has to write in place of its own text, because others changed the file meanwhile.

    - ``path``: as the call gives it.
    - ``before``: the newest text of the file.
    - ``text``: the text to write.
    """

    path: str
    before: str
    text: str


class ToolUse(NamedTuple):
    """What a call does.

    - ``kind``: ``read`` and ``write`` name files. A ``command`` can change any. ``nothing`` changes none.
    - ``writes``: for ``write``.
    - ``path``: for ``read``.
    - ``command``: the command line of a shell; empty for other tools that can change any file.
    - ``folder``: where a command runs, for clients whose agents read files by commands; else empty.
    - ``takes_texts``: the client writes other texts if the answer of its hook has some.
    """

    kind: Literal["read", "write", "command", "nothing"]
    writes: tuple[FileWrite, ...] = ()
    path: str = ""
    command: str = ""
    folder: str = ""
    takes_texts: bool = False


NOTHING: Final = ToolUse("nothing")


class ToolResult(NamedTuple):
    """What a call of a client's own tool did.

    - ``is_failed``: it changed no file.
    - ``text``: the text that a reading returned, None if it is not known.
    - ``lines``: the range of lines that a reading returned (from 0, end excluded), None for all.
    - ``original``: the text that an edit replaced, None if it is not known.
    - ``is_running``: a command goes on in the background.
    """

    is_failed: bool = False
    text: str | None = None
    lines: tuple[int, int] | None = None
    original: str | None = None
    is_running: bool = False
