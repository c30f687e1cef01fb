"""Parses the entries of Markdown lists, and removes marks from text. Pure.

The size of parsed texts is limited, because the parser takes quadratic time for some texts.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final, NamedTuple

from markdown_it import MarkdownIt

from watchroom_whiteboards.markdown import parser
from watchroom_whiteboards.outline import headings

MAX_MARKS: Final = 300
"""Maximum number of characters that can open a mark. Texts with more are returned unchanged."""
_MARKS: Final = "[*_`<~&\\"
_BULLET: Final = re.compile(rb"^[-*+] +\S", re.MULTILINE)
_MAX_HEAD_BYTES: Final = 2000
_PROBE: Final = b"# x\n"
_LINE_END: Final = re.compile(rb"\r\n?|\n")


class ListEntry(NamedTuple):
    """An entry of an outermost list.

    - ``words``: its first block as written.
    - ``more``: the following blocks without marks.
    """

    line: int
    words: str
    more: str


@cache
def _blocks() -> MarkdownIt:
    """Return a parser of blocks only. Definitions of links stay text, because `- [x]: done` is a
    milestone."""
    return parser().disable(["reference", "inline", "text_join"])


@cache
def _inline() -> MarkdownIt:
    return parser()


def strip_marks(words: str) -> str:
    """Return ``words``, a block of Markdown, as plain text. The text of links and code stays."""
    if not _marks_in(words) and "\n" not in words:
        return words.strip()
    if _marks_in(words) > MAX_MARKS:
        lines = words.split("\n")
        return "\n".join(
            strip_marks(line) if _marks_in(line) <= MAX_MARKS else line.strip() for line in lines
        )
    (block,) = _inline().parseInline(words)
    return "".join(
        "\n" if part.type in ("softbreak", "hardbreak") else part.content for part in block.children or []
    ).strip()


def _marks_in(words: str) -> int:
    return sum(words.count(mark) for mark in _MARKS)


def parse_list_entries(source: str, line: int) -> list[ListEntry]:
    """Return the entries of the outermost lists in ``source``, without empty entries. ``line``: the number of
    the first line of ``source``."""
    found = []
    depth = first = 0
    blocks: list[str] = []
    for token in _blocks().parse(source):
        if token.type == "list_item_open":
            depth += 1
            if depth == 1:
                first, blocks = line + (token.map[0] if token.map else 0), []
        elif token.type == "list_item_close":
            depth -= 1
            if depth == 0 and blocks:
                found.append(ListEntry(first, blocks[0], "\n".join(blocks[1:])))
        elif depth and token.content:
            blocks.append(
                token.content if not blocks or token.type != "inline" else strip_marks(token.content)
            )
    return found


def first_line(source: bytes) -> tuple[str, int] | None:
    """Return the first line of ``source`` that is not blank, and the byte offset of the next line.

    Return None if the line is not in a paragraph, or after the first 2,000 bytes.
    """
    head = source[:_MAX_HEAD_BYTES]
    tokens = _blocks().parse(head.decode(errors="ignore"))
    if not tokens or tokens[0].type != "paragraph_open" or tokens[0].map is None:
        return None
    starts = [0, *(end.end() for end in _LINE_END.finditer(head)), len(head)]
    after = starts[tokens[0].map[0] + 1]
    return (tokens[1].content.partition("\n")[0], after) if after < _MAX_HEAD_BYTES else None


def find_newest_entries(source: bytes, max_bytes: int) -> int:
    """Return the byte offset at which the newest list entries begin: as many as fit into ``max_bytes``.

    A bullet at the margin begins an entry, unless it is in code or HTML. To find out, a heading is inserted
    before each bullet. Within code or HTML, the parser does not recognize the heading.
    """
    bullets = [found.start() for found in _BULLET.finditer(source, len(source) - max_bytes)]
    if not bullets:
        return len(source)
    pieces = [source[: bullets[0]]]
    for bullet, end in zip(bullets, [*bullets[1:], len(source)], strict=True):
        pieces += [_PROBE, source[bullet:end]]
    real = {heading.start for heading in headings(b"".join(pieces))}
    outside = (bullet for nth, bullet in enumerate(bullets) if bullet + nth * len(_PROBE) in real)
    return next(outside, len(source))
