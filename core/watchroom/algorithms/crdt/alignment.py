"""Maps positions in the text that a reader last saw to positions in the current text.

Positions keep their meaning while others write (FILES-4.4), and each edit builds on all earlier edits. This
matters because concurrent edits cost every replica memory and time that grow with the number of writers. The
method is operational transformation of positions (Ellis and Gibbs, SIGMOD 1989).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Sequence
from enum import IntEnum
from typing import Final, NamedTuple, TypeAlias


class TextStep(NamedTuple):
    """A change of a text: ``deleted`` characters at ``position`` were replaced by ``inserted`` characters."""

    position: int
    deleted: int
    inserted: int


class Placement(NamedTuple):
    """An edit of the known text, translated to the current text.

    - ``position``: the position of the insertion.
    - ``spans``: the ranges to delete, as (position, length), ascending. The first span begins at
      ``position``.
    """

    position: int
    spans: Sequence[tuple[int, int]]


class _Kind(IntEnum):
    """The texts, known or current, that contain a run of characters."""

    SEEN = 0
    """Characters in both texts, unchanged since the reader last looked."""
    OWN = 1
    """Characters in both texts that the reader wrote after looking."""
    GONE = 2
    """Characters only in the known text, because others deleted them."""
    NEW = 3
    """Characters only in the current text, because others wrote them."""


_Segment: TypeAlias = tuple[_Kind, int]
_BOTH: Final = frozenset({_Kind.SEEN, _Kind.OWN})
_PRESENT: Final = _BOTH | {_Kind.NEW}
_KNOWN: Final = _BOTH | {_Kind.GONE}


class TextAlignment:
    """The differences between the text that one reader knows and the current text.

    The alignment begins with a text of ``length`` characters that the reader sees. Report edits of others
    with `apply`, and edits of the reader with `record_edit`. Use `record_merged_edit` if the reader made the
    edit without knowing some edits of others. Each call takes time linear in the number of differences.
    """

    __slots__ = ("_segments", "is_behind")

    def __init__(self, length: int) -> None:
        self._segments: list[_Segment] = [(_Kind.SEEN, length)] if length else []
        self.is_behind = False
        """Whether others have written since the reader last looked."""

    @property
    def known_length(self) -> int:
        """Length in characters of the text that the reader knows."""
        return _count(self._segments, _KNOWN)

    @property
    def present_length(self) -> int:
        """Length in characters of the current text."""
        return _count(self._segments, _PRESENT)

    def apply(self, step: TextStep) -> None:
        """Apply ``step``, a change that somebody else made in the current text."""
        self.is_behind = True
        start = self._split(step.position, _PRESENT)
        stop = self._split(step.position + step.deleted, _PRESENT)
        gone = [(_Kind.GONE, count) for kind, count in self._segments[start:stop] if kind in _KNOWN]
        self._replace(start, stop, [(_Kind.NEW, step.inserted), *gone])

    def apply_all(self, steps: Iterable[TextStep]) -> None:
        """Apply ``steps`` in order, as `apply` does.

        Steps with ascending positions are applied in one pass over all differences.
        """
        rest = deque(self._segments)
        done: list[_Segment] = []
        passed = 0
        for step in steps:
            self.is_behind = True
            if step.position < passed:
                rest.extendleft(reversed(done))
                done, passed = [], 0
            _move(rest, done, step.position - passed)
            # Deleted text comes after the text that replaces it.
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
        """Translate an edit that replaces the known characters from ``start`` up to ``stop`` (excluded).

        Inserted text stays after its preceding character. At the end of the text, it comes after the text of
        others, unless it continues the reader's own text.
        """
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
        """Record that the reader replaced known characters, at the place that `place` returned.

        - ``start``, ``stop``: the range of known characters, ``stop`` excluded.
        - ``inserted``: the number of characters that replace them.
        """
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
            # Without other writers, only the newest edit is kept separately, so that memory stays constant.
            rest = self.known_length - start - inserted
            self._segments = []
            for segment in ((_Kind.SEEN, start), (_Kind.OWN, inserted), (_Kind.SEEN, rest)):
                _append(self._segments, segment)

    def record_merged_edit(self, start: int, stop: int, steps: Iterable[TextStep]) -> None:
        """Record an edit that the reader made without knowing some edits of others.

        - ``start``, ``stop``: the range of known characters that was replaced, ``stop`` excluded.
        - ``steps``: the changes of the current text that the merged edit caused.
        """
        first, last = self._split(start, _KNOWN), self._split(stop, _KNOWN)
        # The reader no longer knows these characters. The steps delete those that are still in the text.
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
        """Insert ``inserted`` characters of the reader.

        They come after ``position`` characters of the current text and after ``known`` characters of the
        known text. Deleted characters were assumed to come after the text that replaced them. Characters that
        are before the insertion in the known text are moved before it.
        """
        at = self._split(position, _PRESENT)
        after, gone = _take_gone(self._segments[at:], known - _count(self._segments[:at], _KNOWN))
        del self._segments[at:]
        for segment in ((_Kind.GONE, gone), (_Kind.OWN, inserted), *after):
            _append(self._segments, segment)

    def _range(self, start: int, stop: int) -> tuple[int, int]:
        """Return the indexes of the first segment that an edit replaces, and of the first segment after
        it."""
        first = self._split(start, _KNOWN)
        if start != stop:
            return first, self._split(stop, _KNOWN)
        is_continued = first > 0 and self._segments[first - 1][0] is _Kind.OWN
        if not is_continued and not _count(self._segments[first:], _KNOWN):
            first = len(self._segments)
        return first, first

    def _split(self, position: int, kinds: Collection[_Kind]) -> int:
        """Return the index of the first segment at ``position``, counting only segments of ``kinds``.

        A segment that contains the position is split there.
        """
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
        """Replace the segments from ``start`` up to ``stop`` (excluded) by ``segments``, and join neighbours
        of the same kind."""
        before, after = max(0, start - 1), stop + 1
        merged: list[_Segment] = []
        for segment in (*self._segments[before:start], *segments, *self._segments[stop:after]):
            _append(merged, segment)
        self._segments[before:after] = merged


def _append(segments: list[_Segment], segment: _Segment) -> None:
    """Append ``segment``, or extend the last segment if it is of the same kind."""
    kind, count = segment
    if segments and segments[-1][0] is kind:
        segments[-1] = kind, segments[-1][1] + count
    elif count:
        segments.append(segment)


def _move(source: deque[_Segment], target: list[_Segment], count: int) -> None:
    """Move ``count`` characters of the current text, with the deleted text between them, from the beginning
    of ``source`` to the end of ``target``."""
    while count:
        kind, length = source.popleft()
        taken = length
        if kind in _PRESENT:
            taken = min(count, length)
            count -= taken
        _append(target, (kind, taken))
        if taken < length:
            source.appendleft((kind, length - taken))


def _take_gone(segments: Sequence[_Segment], max_taken: int) -> tuple[list[_Segment], int]:
    """Return ``segments`` without their first deleted characters, and the number of removed characters.

    At most ``max_taken`` characters are taken, all before the first segment that is in both texts.
    """
    left: list[_Segment] = []
    taken = 0
    for index, (kind, count) in enumerate(segments):
        if taken >= max_taken or kind in _BOTH:
            return [*left, *segments[index:]], taken
        part = min(count, max_taken - taken) if kind is _Kind.GONE else 0
        taken += part
        left.append((kind, count - part))
    return left, taken


def _count(segments: Iterable[_Segment], kinds: Collection[_Kind]) -> int:
    return sum(count for kind, count in segments if kind in kinds)
