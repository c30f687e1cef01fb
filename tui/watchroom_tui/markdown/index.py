"""The byte offsets of chunks and headings of a board, built incrementally. Pure."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple, get_args, overload

from watchroom_whiteboards.chunks import Chunk, ChunkKind, chunks
from watchroom_whiteboards.outline import Heading, add_references, heading_at, may_contain_definition

_KINDS: Final = get_args(ChunkKind)
_RAW: Final = ("fence", "html")
_BLOCK: Final = 1 << 16
_CONTEXTS: Final = (2000, 400, 80)
"""Lengths in bytes of the text with which a place is searched again, when several parts changed at once."""


class SourceChange(NamedTuple):
    """A difference between two texts: the bytes ``start`` to ``old_end`` became the bytes ``start`` to
    ``new_end``."""

    start: int
    old_end: int
    new_end: int


def changed(old: bytes, new: bytes) -> SourceChange:
    """Return the smallest range outside of which both texts are the same."""
    head = _same_head(old, new)
    tail = _same_tail(old, new, min(len(old), len(new)) - head)
    return SourceChange(head, len(old) - tail, len(new) - tail)


def moved(old: bytes, new: bytes, change: SourceChange, offset: int) -> int:
    """Return the offset in the new text for ``offset`` in the old one, the nearest one if that part is
    gone."""
    if offset < change.start:
        return offset
    if offset >= change.old_end:
        return offset + change.new_end - change.old_end
    for length in _CONTEXTS:
        found = new.find(old[offset : offset + length], change.start)
        if found >= 0:
            return found
    return min(offset, max(change.start, change.new_end - 1))


def _same_head(old: bytes, new: bytes) -> int:
    max_size = min(len(old), len(new))
    low = 0
    while low < max_size and old[low : low + _BLOCK] == new[low : low + _BLOCK]:
        low += _BLOCK
    low, high = min(low, max_size), min(low + _BLOCK, max_size)
    while low < high:
        middle = (low + high + 1) // 2
        if old[low:middle] == new[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _same_tail(old: bytes, new: bytes, max_size: int) -> int:
    ends = (len(old), len(new))
    low = 0
    while low + _BLOCK <= max_size and _part(old, ends[0], low + _BLOCK, low) == _part(
        new, ends[1], low + _BLOCK, low
    ):
        low += _BLOCK
    high = min(low + _BLOCK, max_size)
    while low < high:
        middle = (low + high + 1) // 2
        if _part(old, ends[0], middle, low) == _part(new, ends[1], middle, low):
            low = middle
        else:
            high = middle - 1
    return low


def _part(text: bytes, end: int, first: int, last: int) -> bytes:
    return text[end - first : end - last]


class Index:
    """The chunks and headings of a text. They are found incrementally by `grow`."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.references: dict[str, Any] = {}
        """The text's link references that were found so far, in the form of markdown-it."""
        self.taken_over = 0
        """Number of chunks at the end that were taken from the text before an edit."""
        self._starts = array("q")
        self._kinds = array("b")
        self._openers = array("q")
        self._defining = array("q")
        self._titles = array("q")
        self._bodies = array("q")
        self._levels = array("b")
        self._begin = self._end = 0
        self._defined = 0
        self._source: Iterator[Chunk] | None = chunks(data)
        self._before: tuple[Index, SourceChange] | None = None

    def __len__(self) -> int:
        """Number of known chunks."""
        return len(self._starts)

    def __getitem__(self, number: int) -> Chunk:
        start = self._starts[number]
        end = self._starts[number + 1] if number + 1 < len(self._starts) else self._end
        return Chunk(start, end, _KINDS[self._kinds[number]], self._openers[number])

    @property
    def end(self) -> int:
        """The end of the known chunks."""
        return self._end

    @property
    def is_whole(self) -> bool:
        """Whether all chunks and link references are known."""
        return self._source is None and self._defined == len(self._defining)

    @property
    def is_cut(self) -> bool:
        """Whether all chunks are known. Link references may be missing."""
        return self._source is None

    def grow(self) -> bool:
        """Find the next chunk, or the link references of the next chunk. Return False if everything is
        known."""
        if self._source is not None:
            self._take(next(self._source, None))
            return True
        if self._defined < len(self._defining):
            chunk = self[self.at(self._defining[self._defined])]
            add_references(self.data[chunk.start : chunk.end], self.references)
            self._defined += 1
            return True
        return False

    def at(self, offset: int) -> int:
        """Return the number of the known chunk that contains a byte."""
        return max(0, bisect_right(self._starts, offset) - 1)

    def _take(self, chunk: Chunk | None) -> None:
        if chunk is None:
            self._source = self._before = None
            return
        if self._before is not None and self._take_rest(*self._before, chunk):
            self._source = self._before = None
            return
        self._starts.append(chunk.start)
        self._kinds.append(_KINDS.index(chunk.kind))
        self._openers.append(chunk.opener)
        self._end = chunk.end
        if chunk.kind not in _RAW and may_contain_definition(self.data, chunk.start, chunk.end):
            self._defining.append(chunk.start)
        for mark in chunk.marks:
            self._titles.append(mark.start)
            self._bodies.append(mark.body)
            self._levels.append(mark.level)

    def edited(self, data: bytes) -> tuple[Index, SourceChange, int]:
        """Return the index of the edited text, the change, and the number of unchanged chunks at its
        beginning. The new index still needs to grow. After the change it takes all old chunks at once."""
        change = changed(self.data, data)
        kept = self._begin_of(self._begin_of(self.at(change.start)) - 1)
        index = Index(data)
        start = self._starts[kept] if len(self) else 0
        if kept:
            index._take_from(self, 0, start, 0)
            index._end = index._begin = start
            index._source = chunks(data, start)
        if self._source is None:
            index._before = (self, change)
        return index, change, kept

    def _begin_of(self, number: int) -> int:
        """Return the number of the chunk that starts the block which a chunk continues."""
        number = max(0, number)
        while number > 0 and self._kinds[number]:
            number -= 1
        return number

    def _take_rest(self, old: Index, change: SourceChange, chunk: Chunk) -> bool:
        """Take the old chunks after the change, if ``chunk`` is the first of them."""
        shift = change.new_end - change.old_end
        if chunk.start < change.new_end or chunk.kind != "text":
            return False
        place = bisect_left(old._starts, chunk.start - shift)
        if place == len(old) or old._starts[place] != chunk.start - shift or old._kinds[place]:
            return False
        known = bisect_left(old._defining, self._begin)
        is_same = old.is_whole and len(self._defining) == known
        is_same = is_same and bisect_left(old._defining, chunk.start - shift) == known
        self.taken_over = len(old) - place
        self._take_from(old, chunk.start - shift, len(old.data) + 1, shift)
        self._end = len(self.data)
        if is_same:
            # No references were defined in the changed part, before or after.
            self.references, self._defined = old.references, len(self._defining)
        return True

    def _take_from(self, old: Index, start: int, end: int, shift: int) -> None:
        """Take the entries of another index from ``start`` up to ``end``."""
        first, last = bisect_left(old._starts, start), bisect_left(old._starts, end)
        self._starts.extend(_shifted(old._starts[first:last], shift))
        self._kinds.extend(old._kinds[first:last])
        self._openers.extend(
            array("q", (each if each < 0 else each + shift for each in old._openers[first:last]))
        )
        first, last = bisect_left(old._titles, start), bisect_left(old._titles, end)
        self._titles.extend(_shifted(old._titles[first:last], shift))
        self._bodies.extend(_shifted(old._bodies[first:last], shift))
        self._levels.extend(old._levels[first:last])
        first, last = bisect_left(old._defining, start), bisect_left(old._defining, end)
        self._defining.extend(_shifted(old._defining[first:last], shift))

    def heading(self, number: int) -> Heading:
        place = self._titles[number], self._bodies[number], self._levels[number]
        return heading_at(self.data, *place, self.references)

    @property
    def headings(self) -> int:
        """Number of known headings."""
        return len(self._titles)


def _shifted(places: array[int], shift: int) -> array[int]:
    return array("q", map(shift.__add__, places)) if shift else places


class Outline(Sequence[Heading]):
    """The headings of a board, each parsed on access."""

    def __init__(self, index: Index) -> None:
        self._index = index

    def __len__(self) -> int:
        return self._index.headings

    @overload
    def __getitem__(self, place: int) -> Heading: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Heading]: ...
    def __getitem__(self, place: int | slice) -> Heading | Sequence[Heading]:
        if isinstance(place, slice):
            return [self._index.heading(number) for number in range(*place.indices(len(self)))]
        if not -len(self) <= place < len(self):
            raise IndexError(place)
        return self._index.heading(place % len(self))
