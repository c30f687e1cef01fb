"""Finds the headings of a Markdown text as the parser would, in a hundredth of its time. Pure.

Headings in lists, quotes, code or HTML do not count.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import MutableMapping
from typing import Any, Final, NamedTuple, TypeAlias

from markdown_it.token import Token

from watchroom_whiteboards.markdown import block_parser
from watchroom_whiteboards.segments import HeadingMark, TextSegment, split_segments

References: TypeAlias = MutableMapping[str, Any]
"""The link references of a whole text, in markdown-it's form. They are needed to parse a piece of the
text."""

MAX_TITLE_LENGTH: Final = 2000
"""Maximum characters of a heading that are parsed for its title, because some texts are slow to parse."""
_SPECIAL: Final = re.compile(rb"[\\`*_\[<&~\x00]")
_DEFINITION: Final = re.compile(
    rb"\[(?:[^\[\]\\]|\\.)+\]: [ \t]* (?: [\r\n] | \Z | < | \S+ [ \t]* (?: [\r\n] | \Z | [\"'(] ) )",
    re.DOTALL | re.VERBOSE,
)
"""Matches all link references, and some other text: in a quote, they can continue after the mark of the next
line."""


class Heading(NamedTuple):
    """A heading.

    - ``title``: its text without marks.
    - ``start``: the byte offset of its first line.
    - ``body``: the byte offset of the line after it.
    - ``written``: its text with marks.

    In both texts, each run of white space is one space.
    """

    level: int
    title: str
    start: int
    body: int
    written: str


def headings(data: bytes) -> list[Heading]:
    """Return all headings of ``data`` (UTF-8), in order."""
    found: list[HeadingMark] = []
    definitions: list[TextSegment] = []
    for part in split_segments(data):
        found += part.marks
        if part.kind == "text" and may_contain_definition(data, part.start, part.end):
            definitions.append(part)
    references: References = {}
    if definitions and any(b"[" in data[mark.start : mark.body] for mark in found):
        for part in definitions:
            add_references(data[part.start : part.end], references)
    return [_heading(data, mark, references) for mark in found]


def heading_at(data: bytes, start: int, body: int, level: int, references: References) -> Heading:
    """Return the heading of ``level`` in ``data`` from byte ``start`` to ``body``.

    ``references``: the link references of the text, because the title can use them.
    """
    content = None
    lines = data[start:body]
    if not lines.startswith(b"#") or len(lines.splitlines()) > 1:
        tokens = block_parser().parse(lines.decode())
        content = next(token.content for token in tokens if token.type == "inline")
    return _heading(data, HeadingMark(level, start, body, content), references)


def _heading(data: bytes, mark: HeadingMark, references: References) -> Heading:
    level, start, body, content = mark
    if content is None:
        text = data[start + level : body].rstrip(b"\r\n")
        if not _SPECIAL.search(text):
            title = collapse_spaces(_without_end(text).decode())
            return Heading(level, title, start, body, title)
        content = _without_end(text).decode().replace("\0", "�").strip()
    content = content[:MAX_TITLE_LENGTH]
    return Heading(level, _title(content, references), start, body, collapse_spaces(content))


def collapse_spaces(text: str) -> str:
    """Return ``text``, stripped, with one space for each run of white space."""
    return " ".join(text.split())


def _without_end(text: bytes) -> bytes:
    """Return the text of a heading's line without the ``#`` at its end."""
    text = text.rstrip(b" \t")
    bare = text.rstrip(b"#")
    return bare if bare.endswith((b" ", b"\t")) else text


def _title(content: str, references: References) -> str:
    """Return the text of a heading without its marks."""
    parser = block_parser()
    children: list[Token] = []
    parser.inline.parse(content, parser, references, children)
    words = ("\n" if child.type in ("softbreak", "hardbreak") else child.content for child in children)
    return collapse_spaces("".join(words))


def may_contain_definition(data: bytes, start: int, end: int) -> bool:
    """Return whether ``data`` from byte ``start`` to ``end`` may define a link reference. False positives are
    possible."""
    return data.find(b"]:", start, end) >= 0 and _DEFINITION.search(data, start, end) is not None


def add_references(text: bytes, references: References) -> None:
    """Add the link references that ``text`` defines to ``references``. The first definition of each name
    counts."""
    block_parser().parse(text.decode(), references)


def closing(data: bytes) -> str:
    """Return the line that closes an open fence or HTML at the end of ``data``, empty if there is none.

    HTML such as ``<div>`` ends at a blank line, which the caller must add in any case.
    """
    last = deque(split_segments(data), maxlen=1)
    return last[0].closing if last else ""
