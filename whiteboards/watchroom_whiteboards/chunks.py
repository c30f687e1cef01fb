"""Cuts a Markdown text of any length into chunks that are small enough to be parsed and drawn separately.
Pure.

A chunk begins at a heading if possible. Long text without headings is cut at blank lines, at list items,
between lines, or, as a last resort, anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, Literal, NamedTuple, TypeAlias

from watchroom_whiteboards.segments import HeadingMark, TextSegment, split_segments

MAX_CHUNK_BYTES: Final = 4096
"""Maximum bytes of a chunk. markdown-it takes quadratic time for some texts, which is not noticeable at this
size."""

_MIN_CHUNK_BYTES: Final = 1024
"""Minimum bytes of a chunk before a heading starts a new chunk."""

ChunkKind: TypeAlias = Literal["text", "cut", "fence", "html", "table"]
"""The kind of a chunk. A ``text`` chunk can be parsed alone. The other kinds continue a block of the previous
chunk: a text (``cut``), code, HTML or a table."""

_BREAKS: Final = (
    re.compile(rb"\r?\n[ \t]*\r?\n(?=[A-Za-z\x80-\xff])"),
    re.compile(rb"\r?\n[ \t]*\r?\n(?=\S)"),
    re.compile(rb"\r?\n(?=(?:[-*+]|\d+[.)])[ ])"),
    re.compile(rb"\r?\n(?=\S)"),
    re.compile(rb"[\r\n]"),
    re.compile(rb"[ ]"),
)
"""Patterns for places to cut a long text, best first."""

_TABLE: Final = re.compile(rb"(?:(?<=\n)|\A)[^\n]*\|[^\n]*\n[ ]{0,3}[|:-][-|: \t]*\r?\n")
_BLANK: Final = re.compile(rb"\n[ \t]*\r?\n")


class Chunk(NamedTuple):
    """A piece of a text that can be parsed alone.

    - ``start``, ``end``: byte offsets.
    - ``opener``: the byte offset of the line that opens the continued code, or of the head of the continued
      table. -1 if the chunk continues no block.
    - ``marks``: the headings in the chunk.
    """

    start: int
    end: int
    kind: ChunkKind = "text"
    opener: int = -1
    marks: tuple[HeadingMark, ...] = ()


def chunks(data: bytes, start: int = 0) -> Iterator[Chunk]:
    """Yield the chunks of ``data`` (UTF-8), each of about `MAX_CHUNK_BYTES` bytes at most.

    ``start``: the byte offset of a chunk of the kind ``text``.
    """
    begin = start
    marks: list[HeadingMark] = []
    for part in split_segments(data, start, max_bytes=MAX_CHUNK_BYTES):
        is_full = part.end - begin > MAX_CHUNK_BYTES or (part.marks and part.start - begin > _MIN_CHUNK_BYTES)
        if is_full and part.start > begin:
            yield Chunk(begin, part.start, marks=tuple(marks))
            begin, marks = part.start, []
        marks += part.marks
        if part.end - begin > MAX_CHUNK_BYTES:
            for chunk in _pieces(data, part):
                inside = tuple(mark for mark in marks if chunk.start <= mark.start < chunk.end)
                yield chunk._replace(marks=inside)
            begin, marks = part.end, []
    if begin < len(data):
        yield Chunk(begin, len(data), marks=tuple(marks))


def _pieces(data: bytes, part: TextSegment) -> Iterator[Chunk]:
    """Yield the chunks of a segment that exceeds the limit."""
    start = part.start
    kind: ChunkKind = "text"
    opener = -1
    while part.end - start > MAX_CHUNK_BYTES:
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
    """Return the end of a chunk that begins at ``start``, and whether it is the end of a line."""
    middle, end = start + MAX_CHUNK_BYTES // 2, start + MAX_CHUNK_BYTES
    for number, pattern in enumerate(_BREAKS if is_text else _BREAKS[4:5]):
        places = [found.end() for found in pattern.finditer(data, middle, end)]
        if places:
            place = places[-1]
            return place, data[place - 1 : place] in (b"\n", b"\r") and (not is_text or number > 2)
    while end > middle and data[end] & 0xC0 == 0x80:
        end -= 1
    return end, False


def _table_head(data: bytes, start: int, end: int, known: int) -> int:
    """Return the start of the head of the table at ``end``, -1 if ``end`` is not in a table."""
    if b"|" not in data[end : end + MAX_CHUNK_BYTES].partition(b"\n")[0]:
        return -1
    found = known
    body = start
    for match in _TABLE.finditer(data, start, end):
        found, body = match.start(), match.end()
    return -1 if found < 0 or _BLANK.search(data, max(start, body - 1), end) else found
