"""A board as rows of a given width. Only chunks near the visible rows are drawn. The heights of other chunks
are estimated.

Anchors are byte offsets in the text of the board. The first megabyte of a long board is scanned ahead, and
the rest when the person scrolls to it.
"""

from __future__ import annotations

import asyncio
import re
import time
from bisect import bisect_right
from collections import ChainMap, OrderedDict, deque
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any, Final, NamedTuple, TypeAlias, overload

from watchroom_whiteboards.chunks import Chunk, chunks
from watchroom_whiteboards.outline import Heading, add_references, heading_at, may_contain_definition
from watchroom_whiteboards.segments import BOM, HeadingMark

from watchroom_tui.formatters.drawing import Cell, Drawing, EstimatedDrawing
from watchroom_tui.formatters.styled_text import Span
from watchroom_tui.markdown.renderer import MIN_WIDTH, MarkdownLine, RenderedChunk, draw
from watchroom_tui.markdown.source_change import find_change, move_offset
from watchroom_tui.markdown.text_finder import Finder
from watchroom_tui.presentation.sanitize import copyable

STEP: Final = 200_000
"""Number of bytes to scan at once, which takes about 2 ms."""

MAX_AHEAD: Final = 1_000_000
"""Number of bytes to scan ahead. The rest of a longer board is scanned on demand."""

MAX_KEPT: Final = 64
"""Maximum number of drawn chunks in the cache."""

AHEAD: Final = 3
"""Number of screens to draw ahead."""

SLICE: Final = 0.006
"""Maximum seconds of drawing ahead before keys are handled."""

MARGIN: Final = " "
"""The blank beside the text."""

_LINE_END: Final = re.compile(rb"\r\n?|\n")


class ChunkLine(NamedTuple):
    """A line of a drawn chunk. Its numbers are unchanged when other chunks are drawn."""

    chunk: int
    line: int


ChunkLook: TypeAlias = tuple[bytes, str, bytes, bool, bool]
"""All inputs of the lines of a chunk, except for the width and the link references."""


class BoardDrawing(EstimatedDrawing):
    """The rows of a board. ``data``: the text of the board in UTF-8."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.references: dict[str, Any] = {}
        """The link references found so far, in the form of markdown-it."""
        self._source = chunks(data)
        self._chunks: list[Chunk] = []
        self._heights: list[int] = []
        self._starts: list[int] | None = None
        """The first row of each chunk, and the end. None after a height changed."""
        self._definitions: deque[Chunk] = deque()
        """Unparsed chunks that can define link references."""
        self._waiting: set[str] = set()
        """Languages whose lexers must be loaded to highlight drawn code."""
        self._width = MIN_WIDTH
        self._drawn: OrderedDict[ChunkLook, RenderedChunk] = OrderedDict()
        self._flashing: tuple[int, int] | None = None
        self._look_through(STEP)

    def follow(self, before: Drawing) -> None:
        """Emphasize the changes since ``before``, and reuse its unchanged drawn chunks."""
        if not isinstance(before, BoardDrawing):
            return
        if before.data != self.data:
            change = find_change(before.data, self.data)
            self._flashing, self.is_flashing = (change.start, max(change.new_end, change.start + 1)), True
        self._width = before._width
        if not before.references:
            self._drawn = before._drawn
        self._heights = list(map(self._estimate, self._chunks))
        self._starts = None

    def _look_through(self, end: int) -> bool:
        """Find the chunks up to the byte ``end``. Return False if all chunks are known."""
        if self._is_whole:
            return False
        known = len(self._chunks)
        while self._end < min(end, len(self.data)):
            self._chunks.append(next(self._source))
        for chunk in self._chunks[known:]:
            self._heights.append(self._estimate(chunk))
            if chunk.kind not in ("fence", "html") and may_contain_definition(
                self.data, chunk.start, chunk.end
            ):
                self._definitions.append(chunk)
        self._starts = None
        return True

    def _estimate(self, chunk: Chunk) -> int:
        """Return the estimated number of lines of a chunk."""
        lines = self.data.count(b"\n", chunk.start, chunk.end)
        return max(1, lines, (chunk.end - chunk.start) // self._width)

    @property
    def _end(self) -> int:
        """The end of the known chunks."""
        return self._chunks[-1].end if self._chunks else 0

    @property
    def _is_whole(self) -> bool:
        return self._end == len(self.data)

    def outline(self) -> Sequence[Heading]:
        """Return all headings."""
        self._look_through(len(self.data))
        return Outline(self.data, [mark for each in self._chunks for mark in each.marks], self.references)

    def section_at(self, offset: int) -> int:
        """Return the start of the section that contains the byte at ``offset``, 0 above the first heading."""
        self._look_through(offset + 1)
        marks = (mark.start for each in self._chunks for mark in each.marks if mark.start <= offset)
        return max(marks, default=0)

    # -- rows

    def __len__(self) -> int:
        known = self._first_rows()[-1]
        return known + (known * (len(self.data) - self._end) // self._end if self._end else 0)

    def row(self, index: int, reach: int, *, is_top: bool) -> Sequence[Cell]:
        line = self._line(index)
        is_new = self._flashing is not None and self._flashing[0] <= self.anchor(index) < self._flashing[1]
        return [Cell([Span(MARGIN)], line.spans if line else (), "flash" if is_new else "")]

    def cell_texts(self, index: int) -> Sequence[str]:
        line = self._line(index)
        return ["".join(span.text for span in line.spans) if line else ""]

    def gutter(self, index: int) -> int:
        return len(MARGIN)

    def longest(self) -> int:
        return 0

    def copy_all(self, max_length: int) -> tuple[str, int]:
        # A character has at most four bytes. The cut can leave a partial character.
        taken = self.data[: 4 * max_length].decode("utf-8", "ignore").removesuffix("\n")
        lines = taken[: max_length + 1].split("\n")
        count = self.data.count(b"\n") + (not self.data.endswith(b"\n"))
        return "\n".join(map(copyable, lines)), count

    def find(self, words: str) -> Iterator[Sequence[int]]:
        return Finder(words).matches(self.data)

    def end_flash(self) -> None:
        self._flashing, self.is_flashing = None, False
        self.revision += 1

    def fit(self, width: int) -> None:
        width = max(MIN_WIDTH, width - 2 * len(MARGIN))
        if width != self._width:
            self._width = width
            self._heights = list(map(self._estimate, self._chunks))
            self._forget()

    # -- places

    def anchor(self, row: int) -> int:
        place = self._find_line(row)
        if place is None:
            return 0
        chunk, lines = self._chunks[place.chunk], self._draw(place.chunk)
        source = lines[place.line].source if lines else 0
        for number, found in enumerate(_LINE_END.finditer(self.data, chunk.start, chunk.end)):
            if number == source - 1:
                return min(found.end(), chunk.end - 1)
        return chunk.start

    def row_at(self, anchor: int) -> int:
        self._look_through(anchor + 1)
        if not self._chunks:
            return 0
        number = max(0, bisect_right(self._chunks, anchor, key=lambda each: each.start) - 1)
        start = self._chunks[number].start
        source = len(_LINE_END.findall(self.data, start, max(start, anchor)))
        lines = self._draw(number)
        best = 0
        for at, line in enumerate(lines):
            if line.source > source:
                break
            if line.source > lines[best].source:
                best = at
        return self._first_rows()[number] + best

    def moved(self, before: Drawing, anchor: int) -> int | None:
        if not isinstance(before, BoardDrawing):
            return None
        return move_offset(before.data, self.data, find_change(before.data, self.data), anchor)

    def _first_rows(self) -> list[int]:
        if self._starts is None:
            self._starts = [0, *accumulate(self._heights)]
        return self._starts

    def _find_line(self, row: int) -> ChunkLine | None:
        """Return the line at ``row``. Return the last line for rows below the end, None if the board is
        empty."""
        while row >= self._first_rows()[-1] and self._look_through(self._end + STEP):
            pass
        if not self._chunks:
            return None
        starts = self._first_rows()
        number = min(bisect_right(starts, row), len(self._chunks)) - 1
        line = row - starts[number]
        return ChunkLine(number, max(0, min(line, len(self._draw(number)) - 1)))

    def _row_of(self, place: ChunkLine) -> int:
        return self._first_rows()[place.chunk] + min(place.line, max(0, self._heights[place.chunk] - 1))

    # -- drawing

    def settle(self, row: int, above: int, below: int) -> int:
        place = self._find_line(row)
        if place is None:
            return 0
        number, lines = place.chunk, place.line
        while number > 0 and lines < above:
            number -= 1
            lines += len(self._draw(number))
        number, lines = place.chunk, len(self._draw(place.chunk)) - place.line
        while lines < below and self._has(number + 1):
            number += 1
            lines += len(self._draw(number))
        return self._row_of(place)

    async def work_ahead(self, row: int, height: int) -> int | None:
        place = self._find_line(row)
        if place is None:
            return None
        if self._waiting:
            await self._load_lexers()
        elif self._end < MAX_AHEAD and self._look_through(self._end + STEP):
            pass
        elif self._definitions:
            self._parse_definitions()
        elif not self._draw_near(place, height):
            return None
        self._draw(place.chunk)
        return self._row_of(place)

    async def _load_lexers(self) -> None:
        from watchroom_tui.markdown import code

        languages, self._waiting = self._waiting, set()
        for language in sorted(languages):
            await asyncio.to_thread(code.load, language)
        self._forget()

    def _parse_definitions(self) -> None:
        until = time.perf_counter() + SLICE
        while self._definitions and time.perf_counter() < until:
            chunk = self._definitions.popleft()
            add_references(self.data[chunk.start : chunk.end], self.references)
        if not self._definitions and self.references:
            self._forget()

    def _draw_near(self, place: ChunkLine, height: int) -> bool:
        """Draw one chunk near the window at ``place``. Return False if all these chunks are drawn."""
        below, lines = place.chunk, -place.line
        while lines < AHEAD * height and self._has(below):
            if self._is_new(below):
                self._draw(below)
                return True
            lines += self._heights[below]
            below += 1
        above = max(0, place.chunk - 1)
        if not self._is_new(above):
            return False
        self._draw(above)
        return True

    def _has(self, number: int) -> bool:
        """Return whether a chunk with this number exists."""
        return number < len(self._chunks) or self._look_through(self._end + STEP)

    def _is_new(self, number: int) -> bool:
        return self._look_of(number) not in self._drawn

    def _forget(self) -> None:
        """Drop all drawn chunks. They are drawn again on their next use."""
        self._drawn = OrderedDict()
        self._starts = None
        self.revision += 1

    def _line(self, row: int) -> MarkdownLine | None:
        place = self._find_line(row)
        lines = self._draw(place.chunk) if place is not None else ()
        return lines[place.line] if place is not None and lines else None

    def _look_of(self, number: int) -> ChunkLook:
        chunk = self._chunks[number]
        opener = b""
        if chunk.opener >= 0:
            end = chunk.opener
            for _ in range(2 if chunk.kind == "table" else 1):
                found = _LINE_END.search(self.data, end, chunk.start)
                end = found.end() if found else chunk.start
            opener = self.data[chunk.opener : end]
        is_followed = self._has(number + 1) and self._chunks[number + 1].kind == "text"
        return self.data[chunk.start : chunk.end], chunk.kind, opener, is_followed, chunk.start == 0

    def _draw(self, number: int) -> Sequence[MarkdownLine]:
        """Return the lines of a chunk."""
        look = self._look_of(number)
        found = self._drawn.get(look)
        if found is None:
            text, _, opener, is_followed, is_first = look
            found = self._drawn[look] = draw(
                (text.removeprefix(BOM) if is_first else text).decode("utf-8", "replace"),
                self._width,
                {"references": ChainMap({}, self.references.get("references", {}))},
                kind=self._chunks[number].kind,
                opener=opener.decode("utf-8", "replace"),
                is_followed=is_followed,
            )
            while len(self._drawn) > MAX_KEPT:
                self._drawn.popitem(last=False)
        else:
            self._drawn.move_to_end(look)
        self._waiting |= found.waiting
        if self._heights[number] != len(found.lines):
            self._heights[number] = len(found.lines)
            self._starts = None
        return found.lines


class Outline(Sequence[Heading]):
    """The headings of a board. Each heading is parsed on access."""

    def __init__(self, data: bytes, marks: Sequence[HeadingMark], references: dict[str, Any]) -> None:
        self._data = data
        self._marks = marks
        self._references = references

    def __len__(self) -> int:
        return len(self._marks)

    @overload
    def __getitem__(self, place: int) -> Heading: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Heading]: ...
    def __getitem__(self, place: int | slice) -> Heading | Sequence[Heading]:
        if isinstance(place, slice):
            return [self[number] for number in range(*place.indices(len(self)))]
        level, start, body, _ = self._marks[place]
        return heading_at(self._data, start, body, level, self._references)
