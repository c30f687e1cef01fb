"""How a text as its reader knows it lies against the text as it has become: where in the one a position of
the other is. So positions keep their meaning while others write (FILES-4.4), and an edit builds on all that
was written before it: edits that do not know of each other cost every replica memory and time that grow with
the number of writers (operational transformation of positions: Ellis and Gibbs, SIGMOD 1989)."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Sequence
from enum import IntEnum
from typing import Final, NamedTuple, TypeAlias


class TextStep(NamedTuple):
    """``deleted`` characters at ``position`` of a text were replaced by ``inserted`` ones."""

    position: int
    deleted: int
    inserted: int


class Placement(NamedTuple):
    """Where an edit of the known text belongs in the present one: what it inserts at ``position``, what it
    deletes in ``spans`` (positions with numbers of characters, ascending). The first span, if there is one,
    begins at ``position``."""

    position: int
    spans: Sequence[tuple[int, int]]


class _Kind(IntEnum):
    """Of characters: of both texts, and there when the reader looked; of both, and the reader's own since;
    of the known text alone, since others deleted them; of the present text alone, which others wrote."""

    SEEN = 0
    OWN = 1
    GONE = 2
    NEW = 3


_Segment: TypeAlias = tuple[_Kind, int]
_BOTH: Final = frozenset({_Kind.SEEN, _Kind.OWN})
_PRESENT: Final = _BOTH | {_Kind.NEW}
_KNOWN: Final = _BOTH | {_Kind.GONE}


class TextAlignment:
    """Begins with a text of ``length`` characters as its reader sees it. What others do to the text is told
    by `apply`, what the reader does by `record_edit`, or by `record_merged_edit` where it did so without some
    of that. Each call costs a look at all places that differ."""

    __slots__ = ("_segments", "is_behind")

    def __init__(self, length: int) -> None:
        self._segments: list[_Segment] = [(_Kind.SEEN, length)] if length else []
        self.is_behind = False
        """Whether others have written since the reader looked."""

    @property
    def known_length(self) -> int:
        """Characters of the text as the reader knows it."""
        return _count(self._segments, _KNOWN)

    @property
    def present_length(self) -> int:
        """Characters of the text as it is."""
        return _count(self._segments, _PRESENT)

    def apply(self, step: TextStep) -> None:
        """Take in ``step``, which another made in the present text."""
        self.is_behind = True
        start = self._split(step.position, _PRESENT)
        stop = self._split(step.position + step.deleted, _PRESENT)
        gone = [(_Kind.GONE, count) for kind, count in self._segments[start:stop] if kind in _KNOWN]
        self._replace(start, stop, [(_Kind.NEW, step.inserted), *gone])

    def apply_all(self, steps: Iterable[TextStep]) -> None:
        """Take in ``steps``, one after the other, as `apply` does: those that go from the beginning of the
        text towards its end cost one look at all places together."""
        rest = deque(self._segments)
        done: list[_Segment] = []
        passed = 0
        for step in steps:
            self.is_behind = True
            if step.position < passed:
                rest.extendleft(reversed(done))
                done, passed = [], 0
            _move(rest, done, step.position - passed)
            # What is gone from there comes after what is written there.
            gone = [done.pop()] if done and done[-1][0] is _Kind.GONE else []
            _move(rest, gone, step.deleted)
            _append(done, (_Kind.NEW, step.inserted))
            for kind, count in gone:
                if kind in _KNOWN:
                    _append(done, (_Kind.GONE, count))
            passed = step.position + step.inserted
        for segment in rest:
            _append(done, segment)
        self._segments = done

    def place(self, start: int, stop: int) -> Placement:
        """Where an edit belongs that replaces the known characters from ``start`` up to ``stop`` (excluded).

        What is inserted stays with the character before it. At the end of the text it comes after what others
        wrote there, unless it continues what the reader wrote."""
        first, last = self._range(start, stop)
        position = _count(self._segments[:first], _PRESENT)
        spans: list[tuple[int, int]] = []
        at = position
        for kind, count in self._segments[first:last]:
            if kind in _BOTH:
                if spans and sum(spans[-1]) == at:
                    spans[-1] = spans[-1][0], spans[-1][1] + count
                else:
                    spans.append((at, count))
            at += count if kind in _PRESENT else 0
        return Placement(spans[0][0] if spans else position, spans)

    def record_edit(self, start: int, stop: int, inserted: int) -> None:
        """Take note that the reader replaced the known characters from ``start`` up to ``stop`` (excluded) by
        ``inserted`` ones, where `place` says."""
        first, last = self._range(start, stop)
        left: list[_Segment] = []
        place: int | None = None
        for kind, count in self._segments[first:last]:
            if kind is _Kind.NEW:
                left.append((kind, count))
            elif kind in _BOTH and place is None:
                place = len(left)
        left.insert(place or 0, (_Kind.OWN, inserted))
        self._replace(first, last, left)
        if not self.is_behind:
            # Where nobody else writes, only what was written last is told apart: nothing grows with edits.
            rest = self.known_length - start - inserted
            self._segments = []
            for segment in ((_Kind.SEEN, start), (_Kind.OWN, inserted), (_Kind.SEEN, rest)):
                _append(self._segments, segment)

    def record_merged_edit(self, start: int, stop: int, steps: Iterable[TextStep]) -> None:
        """Take note that the reader replaced the known characters from ``start`` up to ``stop`` (excluded),
        where ``steps`` tell what this came to in the present text: others may have written there what the
        edit was made without."""
        first, last = self._split(start, _KNOWN), self._split(stop, _KNOWN)
        # The reader knows of these no more; the steps delete what there is of them.
        left = [(_Kind.NEW, count) for kind, count in self._segments[first:last] if kind in _PRESENT]
        self._replace(first, last, left)
        known = start
        for step in steps:
            begin = self._split(step.position, _PRESENT)
            end = self._split(step.position + step.deleted, _PRESENT)
            gone = [(_Kind.GONE, count) for kind, count in self._segments[begin:end] if kind in _KNOWN]
            self._replace(begin, end, gone)
            self._insert_own(step.position, known, step.inserted)
            known += step.inserted

    def _insert_own(self, position: int, known: int, inserted: int) -> None:
        """Put what the reader wrote behind ``position`` characters of the present text and ``known`` ones of
        the known text. What is gone was taken to lie behind what others wrote in its place; some lies
        before."""
        at = self._split(position, _PRESENT)
        after, gone = _take_gone(self._segments[at:], known - _count(self._segments[:at], _KNOWN))
        del self._segments[at:]
        for segment in ((_Kind.GONE, gone), (_Kind.OWN, inserted), *after):
            _append(self._segments, segment)

    def _range(self, start: int, stop: int) -> tuple[int, int]:
        """The indexes of the first of the segments that an edit replaces, and of the first after them."""
        first = self._split(start, _KNOWN)
        if start != stop:
            return first, self._split(stop, _KNOWN)
        is_continued = first > 0 and self._segments[first - 1][0] is _Kind.OWN
        if not is_continued and not _count(self._segments[first:], _KNOWN):
            first = len(self._segments)
        return first, first

    def _split(self, position: int, kinds: Collection[_Kind]) -> int:
        """The index of the first segment that lies at ``position`` of the text of these kinds; a segment that
        it lies within is split."""
        left = position
        for index, (kind, count) in enumerate(self._segments):
            if not left:
                return index
            if kind not in kinds:
                continue
            if left < count:
                self._segments[index : index + 1] = [(kind, left), (kind, count - left)]
                return index + 1
            left -= count
        return len(self._segments)

    def _replace(self, start: int, stop: int, segments: Iterable[_Segment]) -> None:
        """Put ``segments`` in place of those from ``start`` up to ``stop``; neighbours of a kind become
        one."""
        before, after = max(0, start - 1), stop + 1
        merged: list[_Segment] = []
        for segment in (*self._segments[before:start], *segments, *self._segments[stop:after]):
            _append(merged, segment)
        self._segments[before:after] = merged


def _append(segments: list[_Segment], segment: _Segment) -> None:
    """Add ``segment`` at the end of ``segments``; to the last one, if that is of its kind."""
    kind, count = segment
    if segments and segments[-1][0] is kind:
        segments[-1] = kind, segments[-1][1] + count
    elif count:
        segments.append(segment)


def _move(source: deque[_Segment], target: list[_Segment], count: int) -> None:
    """Move ``count`` characters of the present text, with what is gone between them, from the beginning of
    ``source`` to the end of ``target``."""
    while count:
        kind, length = source.popleft()
        taken = length
        if kind in _PRESENT:
            taken = min(count, length)
            count -= taken
        _append(target, (kind, taken))
        if taken < length:
            source.appendleft((kind, length - taken))


def _take_gone(segments: Sequence[_Segment], most: int) -> tuple[list[_Segment], int]:
    """``segments`` without the first ``most`` characters that are gone, and how many these are; what both
    texts have is not passed."""
    left: list[_Segment] = []
    taken = 0
    for index, (kind, count) in enumerate(segments):
        if taken >= most or kind in _BOTH:
            return [*left, *segments[index:]], taken
        part = min(count, most - taken) if kind is _Kind.GONE else 0
        taken += part
        left.append((kind, count - part))
    return left, taken


def _count(segments: Iterable[_Segment], kinds: Collection[_Kind]) -> int:
    return sum(count for kind, count in segments if kind in kinds)
