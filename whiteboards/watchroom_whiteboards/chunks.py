"""Cuts a Markdown text of any length into chunks that are small enough to be parsed and drawn one by one.

A chunk begins with a heading where there are any; what is long without one is cut at blank lines, at list
items, between lines, and at last anywhere. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, Literal, NamedTuple, TypeAlias

from watchroom_whiteboards.segments import HeadingMark, TextSegment, split_segments

LONGEST: Final = 4096
"""markdown-it takes quadratic time for some texts: of chunks of this size that cannot be seen."""

_ENOUGH: Final = 1024
"""Behind so much the next heading begins another chunk."""

ChunkKind: TypeAlias = Literal["text", "cut", "fence", "html", "table"]
"""``text`` means the same alone. The others go on with what the chunk before began: a text, code, HTML or a
table."""

_BREAKS: Final = (
    re.compile(rb"\r?\n[ \t]*\r?\n(?=[A-Za-z\x80-\xff])"),
    re.compile(rb"\r?\n[ \t]*\r?\n(?=\S)"),
    re.compile(rb"\r?\n(?=(?:[-*+]|\d+[.)])[ ])"),
    re.compile(rb"\r?\n(?=\S)"),
    re.compile(rb"[\r\n]"),
    re.compile(rb"[ ]"),
)
"""Where a long text is cut, the best first."""

_TABLE: Final = re.compile(rb"(?:(?<=\n)|\A)[^\n]*\|[^\n]*\n[ ]{0,3}[|:-][-|: \t]*\r?\n")
_BLANK: Final = re.compile(rb"\n[ \t]*\r?\n")


class Chunk(NamedTuple):
    """A piece of the text from byte ``start`` to ``end``, to be parsed by itself.

    ``opener`` is the byte offset of what the chunk continues: the line that opens the code, the head of the
    table; -1 if it continues nothing. ``marks`` are the headings in it.
    """

    start: int
    end: int
    kind: ChunkKind = "text"
    opener: int = -1
    marks: tuple[HeadingMark, ...] = ()


def chunks(data: bytes, start: int = 0) -> Iterator[Chunk]:
    """Yield the chunks of ``data`` (UTF-8), each of about `LONGEST` bytes at most.

    ``start`` is the byte offset at which a chunk of kind ``text`` begins.
    """
    begin = start
    marks: list[HeadingMark] = []
    for part in split_segments(data, start, most=LONGEST):
        is_full = part.end - begin > LONGEST or (part.marks and part.start - begin > _ENOUGH)
        if is_full and part.start > begin:
            yield Chunk(begin, part.start, marks=tuple(marks))
            begin, marks = part.start, []
        marks += part.marks
        if part.end - begin > LONGEST:
            for chunk in _pieces(data, part):
                inside = tuple(mark for mark in marks if chunk.start <= mark.start < chunk.end)
                yield chunk._replace(marks=inside)
            begin, marks = part.end, []
    if begin < len(data):
        yield Chunk(begin, len(data), marks=tuple(marks))


def _pieces(data: bytes, part: TextSegment) -> Iterator[Chunk]:
    """A part that is too long, in chunks."""
    start = part.start
    kind: ChunkKind = "text"
    opener = -1
    while part.end - start > LONGEST:
        end, is_line = _break(data, start, part.kind in ("text", "rough"))
        yield Chunk(start, end, kind, opener)
        if part.kind in ("fence", "html"):
            kind, opener = ("fence" if part.kind == "fence" else "html"), part.start
        else:
            head = _table_head(data, start, end, opener if kind == "table" else -1) if is_line else -1
            kind, opener = ("cut", -1) if head < 0 else ("table", head)
        start = end
    yield Chunk(start, part.end, kind, opener)


def _break(data: bytes, start: int, is_text: bool) -> tuple[int, bool]:
    """Where a chunk from ``start`` ends, and whether that is the end of a line."""
    middle, end = start + LONGEST // 2, start + LONGEST
    for number, pattern in enumerate(_BREAKS if is_text else _BREAKS[4:5]):
        places = [found.end() for found in pattern.finditer(data, middle, end)]
        if places:
            place = places[-1]
            return place, data[place - 1 : place] in (b"\n", b"\r") and (not is_text or number > 2)
    while end > middle and data[end] & 0xC0 == 0x80:
        end -= 1
    return end, False


def _table_head(data: bytes, start: int, end: int, known: int) -> int:
    """Where the head of the table begins that ``end`` is in; -1 if it is in none."""
    if b"|" not in data[end : end + LONGEST].partition(b"\n")[0]:
        return -1
    found = known
    body = start
    for match in _TABLE.finditer(data, start, end):
        found, body = match.start(), match.end()
    return -1 if found < 0 or _BLANK.search(data, max(start, body - 1), end) else found
