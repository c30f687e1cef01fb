"""Markdown as far as its meaning needs it: the entries of lists, and texts without their marks. Pure.

What is read is bounded: the parser takes time that grows with the square of some texts.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final, NamedTuple

from markdown_it import MarkdownIt

from watchroom_whiteboards.markdown import parser
from watchroom_whiteboards.outline import headings

MOST_MARKS: Final = 300
"""A text with more characters that may open a mark is given as it was written."""
_MARKS: Final = "[*_`<~&\\"
_BULLET: Final = re.compile(rb"^[-*+] +\S", re.MULTILINE)
_HEAD: Final = 2000
_PROBE: Final = b"# x\n"
_LINE_END: Final = re.compile(rb"\r\n?|\n")


class Entry(NamedTuple):
    """An outermost entry of a list. ``words`` is its first block as written, ``more`` what follows within
    it, without marks."""

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


def without_marks(words: str) -> str:
    """The text of a block, as it reads: marks left out, the text of links and code kept."""
    if not _marks_in(words) and "\n" not in words:
        return words.strip()
    if _marks_in(words) > MOST_MARKS:
        lines = words.split("\n")
        return "\n".join(
            without_marks(line) if _marks_in(line) <= MOST_MARKS else line.strip() for line in lines
        )
    (block,) = _inline().parseInline(words)
    return "".join(
        "\n" if part.type in ("softbreak", "hardbreak") else part.content for part in block.children or []
    ).strip()


def _marks_in(words: str) -> int:
    return sum(words.count(mark) for mark in _MARKS)


def entries(source: str, line: int) -> list[Entry]:
    """The outermost entries of the lists in ``source``, which begins on ``line``. Empty ones are left out."""
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
                found.append(Entry(first, blocks[0], "\n".join(blocks[1:])))
        elif depth and token.content:
            blocks.append(
                token.content if not blocks or token.type != "inline" else without_marks(token.content)
            )
    return found


def first_line(source: bytes) -> tuple[str, int] | None:
    """The first line of ``source`` that says something, and where the line after it begins. None if it is
    part of no paragraph, or too far down."""
    head = source[:_HEAD]
    tokens = _blocks().parse(head.decode(errors="ignore"))
    if not tokens or tokens[0].type != "paragraph_open" or tokens[0].map is None:
        return None
    starts = [0, *(end.end() for end in _LINE_END.finditer(head)), len(head)]
    after = starts[tokens[0].map[0] + 1]
    return (tokens[1].content.partition("\n")[0], after) if after < _HEAD else None


def newest_entries(source: bytes, most: int) -> int:
    """Where in ``source`` its last entries begin, of at most ``most`` bytes together.

    A bullet at the margin begins an entry unless it stands in code or HTML; there, a heading in its place
    would be none either. So the parser is shown such headings, and says.
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
