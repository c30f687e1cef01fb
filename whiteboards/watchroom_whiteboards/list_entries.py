"""The entries of Markdown lists, and plain text without marks. Pure.

The size of what is parsed is bounded: the parser takes quadratic time for some texts.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final, NamedTuple

from markdown_it import MarkdownIt

from watchroom_whiteboards.markdown import parser
from watchroom_whiteboards.outline import headings

MAX_MARKS: Final = 300
"""A text with more characters that may open a mark is given as it was written."""
_MARKS: Final = "[*_`<~&\\"
_BULLET: Final = re.compile(rb"^[-*+] +\S", re.MULTILINE)
_HEAD: Final = 2000
_PROBE: Final = b"# x\n"
_LINE_END: Final = re.compile(rb"\r\n?|\n")


class ListEntry(NamedTuple):
    """An outermost entry of a list. ``words`` is its first block as written, ``more`` the blocks after it,
    without marks."""

    line: int
    words: str
    more: str


@cache
def _blocks() -> MarkdownIt:
    """Finds blocks alone. Definitions of links are kept as text: `- [x]: done` is no definition to us."""
    return parser().disable(["reference", "inline", "text_join"])


@cache
def _inline() -> MarkdownIt:
    return parser()


def strip_marks(words: str) -> str:
    """``words``, a block of Markdown, as plain text: marks removed, the text of links and code kept."""
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
    """The outermost list entries of ``source``, whose first line has the number ``line``. Empty ones are left
    out."""
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
    """The first line of ``source`` that is not blank, and the byte offset of the line after it.

    None if it is part of no paragraph, or too far down.
    """
    head = source[:_HEAD]
    tokens = _blocks().parse(head.decode(errors="ignore"))
    if not tokens or tokens[0].type != "paragraph_open" or tokens[0].map is None:
        return None
    starts = [0, *(end.end() for end in _LINE_END.finditer(head)), len(head)]
    after = starts[tokens[0].map[0] + 1]
    return (tokens[1].content.partition("\n")[0], after) if after < _HEAD else None


def find_newest_entries(source: bytes, most: int) -> int:
    """The byte offset in ``source`` from which its last entries, of at most ``most`` bytes together, begin.

    A bullet at the margin begins an entry unless it is in code or HTML, where a heading would be none either:
    the parser is asked whether a heading in its place would be one.
    """
    bullets = [found.start() for found in _BULLET.finditer(source, len(source) - most)]
    if not bullets:
        return len(source)
    pieces = [source[: bullets[0]]]
    for bullet, end in zip(bullets, [*bullets[1:], len(source)], strict=True):
        pieces += [_PROBE, source[bullet:end]]
    real = {heading.start for heading in headings(b"".join(pieces))}
    outside = (bullet for nth, bullet in enumerate(bullets) if bullet + nth * len(_PROBE) in real)
    return next(outside, len(source))
