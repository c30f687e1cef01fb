"""The effects of a client tool's call on files, in a form shared by all clients. Pure."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from watchroom.features.trees.write_rules import Intent


class MovedText(NamedTuple):
    """Writes the text of the file at ``source``. The same call may change that text, and then removes
    ``source``."""

    source: str


class FileWrite(NamedTuple):
    """A call's write of the file at ``path``. ``intent``: the kind of write. The path is as the client gives
    it."""

    path: str
    intent: Intent | MovedText


class NewText(NamedTuple):
    """A replacement for a call's own text, because others have changed the file.

    - ``path``: as the call gives it.
    - ``before``: the newest text of the file.
    - ``text``: the text to write.
    """

    path: str
    before: str
    text: str


class ToolUse(NamedTuple):
    """The intended effects of a call.

    - ``kind``: ``read`` and ``write`` name files. A ``command`` can change any file. ``nothing`` changes no
      file.
    - ``writes``: the writes, for ``write``.
    - ``path``: the file, for ``read``.
    - ``command``: the command line of a shell; empty for other tools that can change any file.
    - ``folder``: the working folder of a command, for clients whose agents read files with commands; else
      empty.
    - ``takes_texts``: the hook's answer can replace the texts that the client writes.
    - ``can_end_unreported``: the client does not report the end of every such call.
    """

    kind: Literal["read", "write", "command", "nothing"]
    writes: tuple[FileWrite, ...] = ()
    path: str = ""
    command: str = ""
    folder: str = ""
    takes_texts: bool = False
    can_end_unreported: bool = False


NOTHING: Final = ToolUse("nothing")


class ToolEffects(NamedTuple):
    """The effects of a call of a client's own tool.

    - ``is_failed``: it changed no file.
    - ``text``: the text that a read returned, None if unknown.
    - ``lines``: the range of lines that a read returned (from 0, end excluded), None for all.
    - ``original``: the file's text before an edit, None if unknown.
    - ``is_running``: a command continues in the background.
    """

    is_failed: bool = False
    text: str | None = None
    lines: tuple[int, int] | None = None
    original: str | None = None
    is_running: bool = False
