"""What changed between two texts, as rows for the screen: one below the other, or side by side. Pure.

A row is worked out when it is asked for, and words are compared only then: texts may have ten megabytes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Final, Literal, NamedTuple, Protocol, TypeAlias

from watchroom.merge import Change, changed_words

from watchroom_tui.safe import safe
from watchroom_tui.spans import Line, Span

CONTEXT: Final = 3
"""So many lines that did not change stand around those that did."""

MOST_OF_A_LINE: Final = 0.7
"""Where more of a line changed than this, its words are not marked: all of it is new."""

MEASURED: Final = 2000
"""So many rows are measured to know how far there is to scroll sideways."""

SIGNS: Final = {"same": " ", "removed": "−", "added": "+"}

LineKind: TypeAlias = Literal["same", "removed", "added"]


class Cell(NamedTuple):
    """A line of text on the screen: what stands fixed before it, the text itself, and the style beneath."""

    gutter: Line
    text: Line
    under: str = ""


class Drawing(Protocol):
    """Rows that are drawn when they come into view; each has as many cells as there are ``columns``, or one
    that stands across all of them."""

    columns: int

    def __len__(self) -> int: ...

    def row(self, index: int, reach: int, *, is_top: bool) -> Sequence[Cell]:
        """The cells of a row; their texts may end after ``reach`` cells. ``is_top``: nothing is above it."""

    def gutter(self) -> int:
        """How wide the gutter of a cell is."""

    def longest(self) -> int:
        """How wide the widest text is, as far as that was measured."""

    def foot(self, index: int) -> str:
        """What stands at the foot while the cursor is on this row."""


class Compared(NamedTuple):
    """Two texts as lines, and what changed from the one to the other."""

    old: Sequence[str]
    new: Sequence[str]
    changed: Sequence[Change]


class _Part(NamedTuple):
    """Neighbouring rows of one kind, from these lines on."""

    kind: Literal["hunk", "same", "changed"]
    old: int
    old_count: int
    new: int
    new_count: int


class Comparison:
    """The rows of a comparison. Lines are counted from 1 where they are shown."""

    def __init__(self, compared: Compared, *, side_by_side: bool) -> None:
        self.columns = 2 if side_by_side else 1
        self._old, self._new, changed = compared
        self._parts = list(_parts(len(self._old), changed))
        self._starts = [0, *accumulate(self._rows_of(part) for part in self._parts)]
        self._digits = len(str(max(len(self._old), len(self._new), 1)))
        self._added = sum(each.new_end - each.new_start for each in changed)
        self._removed = sum(each.old_end - each.old_start for each in changed)

    def __len__(self) -> int:
        return self._starts[-1]

    def foot(self, index: int) -> str:
        return f"+{self._added} −{self._removed}"

    def gutter(self) -> int:
        numbers = self._digits if self.columns == 2 else 2 * self._digits + 1
        return numbers + 4

    def longest(self) -> int:
        longest = measured = 0
        for part in self._parts:
            if part.kind == "hunk":
                continue
            old = self._old[part.old : part.old + part.old_count] if part.kind == "changed" else ()
            for line in (*old, *self._new[part.new : part.new + part.new_count]):
                longest = max(longest, len(line) if line.isascii() else 2 * len(line))
            measured += self._rows_of(part)
            if measured > MEASURED:
                break
        return longest

    def row(self, index: int, reach: int, *, is_top: bool) -> Sequence[Cell]:
        at = bisect_right(self._starts, index) - 1
        part, offset = self._parts[at], index - self._starts[at]
        if part.kind == "hunk":
            return [Cell((), [Span(_range(part), "header-line")], "header-line")]
        if self.columns == 2:
            return [self._cell(part, side, offset, reach) for side in ("removed", "added")]
        if part.kind == "same":
            return [self._unified("same", part.old + offset, part.new + offset, None, reach)]
        if offset < part.old_count:
            partner = part.new + offset if offset < part.new_count else None
            return [self._unified("removed", part.old + offset, None, partner, reach)]
        offset -= part.old_count
        partner = part.old + offset if offset < part.old_count else None
        return [self._unified("added", None, part.new + offset, partner, reach)]

    def _rows_of(self, part: _Part) -> int:
        if part.kind == "hunk":
            return 1
        if part.kind == "same":
            return part.new_count
        if self.columns == 2:
            return max(part.old_count, part.new_count)
        return part.old_count + part.new_count

    def _unified(
        self, kind: LineKind, old: int | None, new: int | None, partner: int | None, reach: int
    ) -> Cell:
        digits = self._digits
        numbers = " ".join(" " * digits if n is None else f"{n + 1:>{digits}}" for n in (old, new))
        if kind == "removed":
            line, other = self._old[old or 0], None if partner is None else self._new[partner]
        else:
            line, other = self._new[new or 0], None if partner is None else self._old[partner]
        return _drawn(kind, numbers, line, other, reach)

    def _cell(self, part: _Part, side: Literal["removed", "added"], offset: int, reach: int) -> Cell:
        """The row of one side; the other side may have more."""
        lines, start, count = (
            (self._old, part.old, part.old_count)
            if side == "removed"
            else (self._new, part.new, part.new_count)
        )
        others, other_start, other_count = (
            (self._new, part.new, part.new_count)
            if side == "removed"
            else (self._old, part.old, part.old_count)
        )
        if offset >= count:
            return Cell([Span(" " * self.gutter())], (), "missing-line")
        number = f"{start + offset + 1:>{self._digits}}"
        other = others[other_start + offset] if offset < other_count else None
        kind: LineKind = "same" if part.kind == "same" else side
        return _drawn(kind, number, lines[start + offset], other, reach)


def _drawn(kind: LineKind, numbers: str, line: str, other: str | None, reach: int) -> Cell:
    under = "" if kind == "same" else f"{kind}-line"
    style = "" if kind == "same" else kind
    gutter = [Span(f" {numbers} ", "" if under else "number"), Span(f"{SIGNS[kind]} ", style)]
    if kind == "same":
        return Cell(gutter, [Span(safe(_near(line.removesuffix("\n").removesuffix("\r"), reach)))], under)
    return Cell(gutter, list(_changed_text(kind, line, other, reach)), under)


def _changed_text(kind: LineKind, line: str, other: str | None, reach: int) -> Iterator[Span]:
    """The line with the words marked that its partner has not, and a mark where it has no end."""
    text = line.removesuffix("\n")
    near = _near(text, reach)
    at = 0
    for start, end in _marked(text, None if other is None else other.removesuffix("\n")):
        if start >= len(near):
            break
        yield Span(safe(near[at:start]), kind)
        yield Span(safe(near[start:end]), f"{kind}-word")
        at = end
    yield Span(safe(near[at:]), kind)
    if line == text:
        yield Span(" ⌁", "dim")


def _marked(text: str, other: str | None) -> list[tuple[int, int]]:
    if other is None:
        return []
    words = changed_words(other, text)
    if sum(end - start for start, end in words) > MOST_OF_A_LINE * len(text):
        return []
    return words


def _near(line: str, reach: int) -> str:
    """As much of a line as can be seen up to ``reach`` cells: a line may be megabytes long."""
    most = 4 * reach
    return line if len(line) <= most else line[:most]


def _range(part: _Part) -> str:
    old = f"{part.old + bool(part.old_count)},{part.old_count}"
    return f" @@ −{old} +{part.new + bool(part.new_count)},{part.new_count} @@"


def _parts(lines: int, changed: Sequence[Change]) -> Iterator[_Part]:
    """The changes with the lines around them; those that are near each other stand together."""
    for group in _near_each_other(changed):
        first, last = group[0], group[-1]
        before = min(CONTEXT, first.old_start)
        after = min(CONTEXT, lines - last.old_end)
        old, new = first.old_start - before, first.new_start - before
        yield _Part("hunk", old, last.old_end + after - old, new, last.new_end + after - new)
        for change in group:
            yield from _same(old, new, change.old_start - old)
            count = change.old_end - change.old_start
            yield _Part(
                "changed", change.old_start, count, change.new_start, change.new_end - change.new_start
            )
            old, new = change.old_end, change.new_end
        yield from _same(old, new, after)


def _same(old: int, new: int, count: int) -> Iterator[_Part]:
    if count:
        yield _Part("same", old, count, new, count)


def _near_each_other(changed: Sequence[Change]) -> Iterator[list[Change]]:
    group: list[Change] = []
    for change in changed:
        if group and change.old_start - group[-1].old_end > 2 * CONTEXT:
            yield group
            group = []
        group.append(change)
    if group:
        yield group
