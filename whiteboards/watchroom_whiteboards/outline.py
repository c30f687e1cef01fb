"""The headings of a Markdown text and where they stand, without parsing what lies between them. Pure.

Only headings of the text itself count: not those within lists, quotes, code or HTML.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from watchroom_whiteboards.markdown import parser

_LINE_END = re.compile(rb"\r\n?|\n")


class Heading(NamedTuple):
    """A heading. ``start`` is where its first line begins and ``body`` where the line after it does, in
    bytes from the start of the text. ``title`` is its text without marks, stripped."""

    level: int
    title: str
    start: int
    body: int


def headings(data: bytes) -> list[Heading]:
    """The headings of a text (UTF-8), in order."""
    starts = [0, *(match.end() for match in _LINE_END.finditer(data)), len(data)]
    tokens = parser().parse(data.decode())
    found = []
    for place, token in enumerate(tokens):
        if token.type != "heading_open" or token.level or token.map is None:
            continue
        first, after = token.map
        words = [
            "\n" if child.type in ("softbreak", "hardbreak") else child.content
            for child in tokens[place + 1].children or []
        ]
        found.append(
            Heading(int(token.tag[1]), " ".join("".join(words).split()), starts[first], starts[after])
        )
    return found
