"""A board as lines of a given width. Visible chunks are drawn, and the heights of the others estimated.

A place on the page is a line of a chunk, and does not change when other chunks are drawn or edited. Pure.
"""

from __future__ import annotations

import re
from array import array
from collections import ChainMap, OrderedDict
from typing import Final, NamedTuple

from watchroom_whiteboards.chunks import Chunk
from watchroom_whiteboards.segments import BOM

from watchroom_tui.markdown.index import Index, SourceChange
from watchroom_tui.markdown.renderer import MarkdownLine, RenderedChunk, draw

_KEPT: Final = 64
"""Max drawn chunks that are cached."""

_AHEAD: Final = 3
"""Screens to draw ahead."""

_LINE_END: Final = re.compile(rb"\r\n?|\n")


class PagePosition(NamedTuple):
    """A line of a drawn chunk."""

    chunk: int
    line: int


TOP: Final = PagePosition(0, 0)


class Page:
    """The lines of a board."""

    def __init__(self, index: Index, width: int) -> None:
        self.index = index
        self.width = width
        self._drawn: OrderedDict[Chunk, RenderedChunk] = OrderedDict()
        self._heights = array("l")
        self._before = array("l")
        """The heights from before an edit, for the chunks after it."""

    # -- chunks

    def drawn(self, number: int) -> RenderedChunk:
        chunk = self.index[number]
        found = self._drawn.get(chunk)
        if found is None:
            found = self._drawn[chunk] = self._draw(number)
            while len(self._drawn) > _KEPT:
                self._drawn.popitem(last=False)
        else:
            self._drawn.move_to_end(chunk)
        self._measure()
        self._heights[number] = len(found.lines)
        return found

    def _draw(self, number: int) -> RenderedChunk:
        index = self.index
        is_followed = self._has(number + 1) and index[number + 1].kind == "text"
        chunk = index[number]
        opener = b""
        if chunk.opener >= 0:
            lines = 2 if chunk.kind == "table" else 1
            end = chunk.opener
            for _ in range(lines):
                found = _LINE_END.search(index.data, end, chunk.start)
                end = found.end() if found else chunk.start
            opener = index.data[chunk.opener : end]
        data = index.data[chunk.start : chunk.end]
        if chunk.start == 0:
            data = data.removeprefix(BOM)
        return draw(
            data.decode("utf-8", "replace"),
            self.width,
            {"references": ChainMap({}, index.references.get("references", {}))},
            kind=chunk.kind,
            opener=opener.decode("utf-8", "replace"),
            is_followed=is_followed,
        )

    def prepare(self, place: PagePosition, height: int) -> bool:
        """Draw one chunk near the window at ``place``. Return False if all of them are drawn."""
        if not self._has(place.chunk):
            return False
        below, lines = place.chunk, -place.line
        while self._has(below) and lines < _AHEAD * height:
            if self.index[below] not in self._drawn:
                self.drawn(below)
                return True
            lines += self._height(below)
            below += 1
        above = max(0, place.chunk - 1)
        if self.index[above] in self._drawn:
            return False
        self.drawn(above)
        return True

    def line(self, place: PagePosition) -> MarkdownLine:
        return self.drawn(place.chunk).lines[place.line]

    def forget(self) -> None:
        """Draw all chunks again on their next use."""
        self._drawn.clear()

    def resize(self, width: int) -> None:
        self.width = width
        self._drawn.clear()
        del self._heights[:], self._before[:]

    def edit(self, data: bytes) -> SourceChange:
        """Change the text to ``data``, and return the change."""
        index, change, kept = self.index.edited(data)
        shift = change.new_end - change.old_end
        first = self.index[kept].start if len(self.index) else 0
        known = OrderedDict[Chunk, RenderedChunk]()
        for chunk, drawn in self._drawn.items():
            if chunk.end < first:
                known[chunk] = drawn
            elif chunk.start >= change.old_end and chunk.kind == "text":
                known[chunk._replace(start=chunk.start + shift, end=chunk.end + shift)] = drawn
        self._drawn = known
        self.index = index
        self._before = self._heights[kept:]
        del self._heights[kept:]
        return change

    # -- places

    def _has(self, number: int) -> bool:
        """Return whether there is a chunk with this number. Grows the index as needed."""
        while number >= len(self.index) and not self.index.is_cut:
            self.index.grow()
        return number < len(self.index)

    def _height(self, number: int) -> int:
        return len(self.drawn(number).lines)

    def move(self, place: PagePosition, lines: int) -> PagePosition:
        """Return the place ``lines`` further down (negative: up), limited to the page."""
        chunk, line = place.chunk, place.line + lines
        while line < 0 and chunk > 0:
            chunk -= 1
            line += self._height(chunk)
        while self._has(chunk) and line >= self._height(chunk) and self._has(chunk + 1):
            line -= self._height(chunk)
            chunk += 1
        if not self._has(chunk):
            return TOP
        return PagePosition(chunk, max(0, min(line, self._height(chunk) - 1)))

    def last(self, height: int) -> PagePosition:
        """Return the top of a window of ``height`` lines that shows the end."""
        if not self._has(0):
            return TOP
        while not self.index.is_cut:
            self.index.grow()
        chunk = len(self.index) - 1
        return self.move(PagePosition(chunk, self._height(chunk)), -height)

    def window(self, place: PagePosition, height: int) -> list[PagePosition]:
        """Return the places of up to ``height`` lines from ``place`` on."""
        found: list[PagePosition] = []
        chunk, line = place
        while len(found) < height and self._has(chunk):
            end = self._height(chunk)
            found += [PagePosition(chunk, each) for each in range(line, min(end, line + height - len(found)))]
            chunk, line = chunk + 1, 0
        return found

    def offset(self, place: PagePosition) -> int:
        """Return the offset in the text of the source line that ``place`` shows."""
        if not self._has(place.chunk):
            return 0
        chunk = self.index[place.chunk]
        lines = self.drawn(place.chunk).lines
        if not lines:
            return chunk.start
        source = lines[min(place.line, len(lines) - 1)].source
        return self._start_of(chunk.start, chunk.end, source)

    def _start_of(self, start: int, end: int, line: int) -> int:
        for number, found in enumerate(_LINE_END.finditer(self.index.data, start, end)):
            if number == line - 1:
                return min(found.end(), end - 1)
        return start

    def place(self, offset: int) -> PagePosition:
        """Return the first place that shows the byte at ``offset``."""
        while self.index.end <= offset and not self.index.is_cut:
            self.index.grow()
        if not self._has(0):
            return TOP
        number = self.index.at(offset)
        start = self.index[number].start
        source = len(_LINE_END.findall(self.index.data, start, max(start, offset)))
        lines = self.drawn(number).lines
        best = 0
        for line, each in enumerate(lines):
            if each.source > source:
                break
            if each.source > lines[best].source:
                best = line
        return PagePosition(number, best)

    # -- scroll position

    def _measure(self) -> None:
        """Estimate the heights of new chunks."""
        data, index = self.index.data, self.index
        again = index.taken_over if index.taken_over <= len(self._before) else 0
        for number in range(len(self._heights), len(index) - again):
            chunk = self.index[number]
            drawn = self._drawn.get(chunk)
            lines = data.count(b"\n", chunk.start, chunk.end)
            guess = max(1, lines, (chunk.end - chunk.start) // max(1, self.width))
            self._heights.append(guess if drawn is None else len(drawn.lines))
        if again and len(self._heights) < len(index):
            self._heights.extend(self._before[-again:])

    @property
    def is_measured(self) -> bool:
        """Whether all chunks are drawn, so that no height is an estimate."""
        index = self.index
        return (
            index.is_whole and len(index) <= _KEPT and all(index[n] in self._drawn for n in range(len(index)))
        )

    def total(self) -> int:
        """Return the number of lines, estimated where chunks are not drawn."""
        self._measure()
        known = sum(self._heights)
        left = len(self.index.data) - self.index.end
        return known + (known * left // self.index.end if self.index.end else 0)

    def top(self, place: PagePosition) -> int:
        """Return the number of lines above a place, estimated where chunks are not drawn."""
        self._measure()
        return sum(self._heights[: place.chunk]) + place.line

    def at(self, line: int) -> PagePosition:
        """Return the place at a line of the page, estimated where chunks are not drawn."""
        self._measure()
        for number, height in enumerate(self._heights):
            if line < height:
                return PagePosition(number, max(0, min(line, self._height(number) - 1)))
            line -= height
        return self.last(1)
