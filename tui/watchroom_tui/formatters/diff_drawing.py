"""The changes between two texts as rows: unified, or side by side. Pure.

Rows are computed and words are compared only when rows are drawn, because texts can have ten megabytes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Final, Literal, NamedTuple, TypeAlias

from watchroom.algorithms.merge import LineChange, find_changed_words

from watchroom_tui.formatters.drawing import MEASURED, Cell, DrawnLine, LinedDrawing
from watchroom_tui.formatters.styled_text import Span
from watchroom_tui.presentation.sanitize import sanitize

CONTEXT: Final = 3
"""Number of unchanged lines to show around changed lines."""

MAX_MARKED_FRACTION: Final = 0.7
"""Maximum share of changed characters in a line with marked words. No words are marked in other lines."""

SIGNS: Final = {"same": " ", "removed": "−", "added": "+"}

NO_END: Final = " ⌁"
"""The mark after a last line without a line end."""

LineKind: TypeAlias = Literal["same", "removed", "added"]


class DiffInput(NamedTuple):
    """Two texts as lines, and the changes from one to the other."""

    old: Sequence[str]
    new: Sequence[str]
    changed: Sequence[LineChange]


class _RowGroup(NamedTuple):
    """Adjacent rows of one kind: the numbers of their first lines, and their numbers of lines."""

    kind: Literal["hunk", "same", "changed"]
    old: int
    old_count: int
    new: int
    new_count: int


class _Line(NamedTuple):
    """A line, the line to compare it with, and its numbers in both texts (from 0)."""

    kind: LineKind
    text: str
    other: str | None
    old: int | None
    new: int | None

    @property
    def has_end(self) -> bool:
        return self.text.endswith("\n")

    @property
    def shown(self) -> str:
        """The text without its line end. Changed lines keep a carriage return, which can be the only
        change."""
        text = self.text.removesuffix("\n")
        return text.removesuffix("\r") if self.kind == "same" else text

    @property
    def cell_text(self) -> str:
        return sanitize(self.shown) + ("" if self.has_end or self.kind == "same" else NO_END)


class DiffDrawing(LinedDrawing):
    """The rows of a comparison. Shown line numbers count from 1."""

    def __init__(self, compared: DiffInput, *, side_by_side: bool) -> None:
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

    def copy_text(self, index: int) -> str:
        part, offset = self._at(index)
        if part.kind == "hunk" or self.columns == 2:
            return super().copy_text(index).strip()
        line = self._lines(part, offset)[0]
        return SIGNS[line.kind if line else "same"] + super().copy_text(index)

    def line_at(self, index: int) -> DrawnLine | None:
        """Return the line in a row, the newer of two lines side by side. None in the head of a hunk."""
        part, offset = self._at(index)
        lines = (
            () if part.kind == "hunk" else [each for each in self._lines(part, offset) if each is not None]
        )
        if not lines:
            return None
        line = lines[-1]
        if line.kind == "removed":
            return DrawnLine(line.old or 0, True, line.text.rstrip("\r\n"))
        # In the right one of two columns, only the first number is set.
        number = line.new if line.new is not None else line.old
        return DrawnLine(number or 0, False, line.text.rstrip("\r\n"))

    def gutter(self, index: int) -> int:
        part, _ = self._at(index)
        return 0 if part.kind == "hunk" else self._gutter

    @property
    def _gutter(self) -> int:
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
        part, offset = self._at(index)
        if part.kind == "hunk":
            return [Cell((), [Span(_range(part), "header-line")], "header-line")]
        return [self._drawn(line, reach) for line in self._lines(part, offset)]

    def cell_texts(self, index: int) -> Sequence[str]:
        part, offset = self._at(index)
        if part.kind == "hunk":
            return [_range(part)]
        return ["" if line is None else line.cell_text for line in self._lines(part, offset)]

    def _at(self, index: int) -> tuple[_RowGroup, int]:
        at = bisect_right(self._starts, index) - 1
        return self._parts[at], index - self._starts[at]

    def _lines(self, part: _RowGroup, offset: int) -> Sequence[_Line | None]:
        """Return the lines of a row. A line is None on a side without a line."""
        if self.columns == 2:
            return [self._old_line(part, offset), self._new_line(part, offset)]
        if part.kind == "same" or offset < part.old_count:
            return [self._old_line(part, offset)]
        return [self._new_line(part, offset - part.old_count)]

    def _old_line(self, part: _RowGroup, offset: int) -> _Line | None:
        if offset >= part.old_count:
            return None
        line = self._old[part.old + offset]
        new = part.new + offset
        if part.kind == "same":
            return _Line("same", line, None, part.old + offset, new)
        other = self._new[new] if offset < part.new_count else None
        return _Line("removed", line, other, part.old + offset, None)

    def _new_line(self, part: _RowGroup, offset: int) -> _Line | None:
        if offset >= part.new_count:
            return None
        line = self._new[part.new + offset]
        old = part.old + offset
        if part.kind == "same":
            # The line is beside its counterpart, which has the number of the other side.
            return _Line("same", line, None, part.new + offset, None)
        other = self._old[old] if offset < part.old_count else None
        return _Line("added", line, other, None, part.new + offset)

    def _rows_of(self, part: _RowGroup) -> int:
        if part.kind == "hunk":
            return 1
        if part.kind == "same":
            return part.new_count
        if self.columns == 2:
            return max(part.old_count, part.new_count)
        return part.old_count + part.new_count

    def _drawn(self, line: _Line | None, reach: int) -> Cell:
        if line is None:
            return Cell([Span(" " * self._gutter)], (), "missing-line")
        under, style = ("", "") if line.kind == "same" else (f"{line.kind}-line", line.kind)
        gutter = [
            Span(f" {self._numbers(line)} ", "" if under else "number"),
            Span(f"{SIGNS[line.kind]} ", style),
        ]
        return Cell(gutter, list(_marked_text(line, reach)), under)

    def _numbers(self, line: _Line) -> str:
        if self.columns == 2:
            number = line.new if line.old is None else line.old
            return f"{(number or 0) + 1:>{self._digits}}"
        return " ".join(f"{'' if n is None else n + 1:>{self._digits}}" for n in (line.old, line.new))


def _marked_text(line: _Line, reach: int) -> Iterator[Span]:
    """Yield the line with its changed words marked, and a mark for a missing line end."""
    if line.kind == "same":
        yield Span(sanitize(_near(line.shown, reach)))
        return
    near = _near(line.shown, reach)
    at = 0
    for start, end in _marked(line.shown, line.other):
        if start >= len(near):
            break
        yield Span(sanitize(near[at:start]), line.kind)
        yield Span(sanitize(near[start:end]), f"{line.kind}-word")
        at = end
    yield Span(sanitize(near[at:]), line.kind)
    if not line.has_end:
        yield Span(NO_END, "dim")


def _marked(text: str, other: str | None) -> list[tuple[int, int]]:
    """Return the ranges of words that are missing in the other line. Return no ranges if they cover most of
    the line."""
    if other is None:
        return []
    words = find_changed_words(other.removesuffix("\n"), text)
    if sum(end - start for start, end in words) > MAX_MARKED_FRACTION * len(text):
        return []
    return words


def _near(line: str, reach: int) -> str:
    """Return the part of a line that is visible within ``reach`` cells, because a line may be megabytes
    long."""
    most = 4 * reach
    return line if len(line) <= most else line[:most]


def _range(part: _RowGroup) -> str:
    old = f"{part.old + bool(part.old_count)},{part.old_count}"
    return f" @@ −{old} +{part.new + bool(part.new_count)},{part.new_count} @@"


def _parts(lines: int, changed: Sequence[LineChange]) -> Iterator[_RowGroup]:
    """Yield the changes with their context. Changes close to each other share a hunk."""
    for group in _nearby_groups(changed):
        first, last = group[0], group[-1]
        before = min(CONTEXT, first.old_start)
        after = min(CONTEXT, lines - last.old_end)
        old, new = first.old_start - before, first.new_start - before
        yield _RowGroup("hunk", old, last.old_end + after - old, new, last.new_end + after - new)
        for change in group:
            yield from _same(old, new, change.old_start - old)
            count = change.old_end - change.old_start
            yield _RowGroup(
                "changed", change.old_start, count, change.new_start, change.new_end - change.new_start
            )
            old, new = change.old_end, change.new_end
        yield from _same(old, new, after)


def _same(old: int, new: int, count: int) -> Iterator[_RowGroup]:
    if count:
        yield _RowGroup("same", old, count, new, count)


def _nearby_groups(changed: Sequence[LineChange]) -> Iterator[list[LineChange]]:
    group: list[LineChange] = []
    for change in changed:
        if group and change.old_start - group[-1].old_end > 2 * CONTEXT:
            yield group
            group = []
        group.append(change)
    if group:
        yield group
