"""The regions of a merge, the current region, and undo. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Final, Literal, TypeAlias, get_args

from watchroom.algorithms.merge import (
    Choice,
    Region,
    Regions,
    choose_all_conflicts,
    choose_region,
    find_open_regions,
)

ChoiceKind: TypeAlias = Literal["current", "incoming", "both", "neither", "edited"]
CHOICE_KINDS: Final[tuple[ChoiceKind, ...]] = get_args(ChoiceKind)

MOST_STEPS: Final = 200
"""Maximum number of steps that can be undone."""


class MergeState:
    """The regions of one merge, the current region, and the undo history."""

    def __init__(self, regions: Regions) -> None:
        self._regions = regions
        self._past: list[Regions] = []
        self._future: list[Regions] = []
        self.at = next(iter([*find_open_regions(regions), *self.stops]), 0)

    @property
    def regions(self) -> Regions:
        return self._regions

    @property
    def stops(self) -> list[int]:
        """The indexes of the regions that can be decided or have been decided."""
        return [index for index, each in enumerate(self._regions) if each.kind != "unchanged" or each.choice]

    @property
    def open(self) -> list[int]:
        """The indexes of the open regions."""
        return find_open_regions(self._regions)

    @property
    def is_touched(self) -> bool:
        """Whether there is a step to undo."""
        return bool(self._past)

    def do(self, regions: Regions) -> None:
        """Replace the regions as a step that can be undone."""
        if regions != self._regions:
            self._past = [*self._past[-MOST_STEPS + 1 :], self._regions]
            self._future.clear()
            self._show(regions)

    def take(self, choice: Choice) -> None:
        """Make ``choice`` for the current region, then go to the next open region."""
        if self.at < len(self._regions) and self._regions[self.at].kind != "unchanged":
            self.do(choose_region(self._regions, self.at, choice))
            self._go_on()

    def count_overwritten(self, choice: Choice) -> int:
        """Return the number of decided or edited conflicts that `choose_everywhere` would overwrite."""
        conflicts = [each for each in self._regions if each.kind == "conflict"]
        return sum(
            each.choice not in (None, choice) or bool(each.is_open and each.text) for each in conflicts
        )

    @property
    def conflicts(self) -> int:
        """The number of conflicts, decided or not."""
        return sum(each.kind == "conflict" for each in self._regions)

    def choose_everywhere(self, choice: Choice) -> None:
        """Make ``choice`` for every conflict of the file."""
        self.do(choose_all_conflicts(self._regions, choice))

    def undo(self) -> bool:
        """Undo one step. Return False if there is no step to undo."""
        if not self._past:
            return False
        self._future.append(self._regions)
        self._show(self._past.pop())
        return True

    def redo(self) -> bool:
        """Redo one step. Return False if there is no step to redo."""
        if not self._future:
            return False
        self._past.append(self._regions)
        self._show(self._future.pop())
        return True

    def step(self, by: int) -> None:
        """Go to the next region (``by`` 1) or the previous region (``by`` -1), and wrap around."""
        stops = self.stops
        if not stops:
            return
        place = bisect_right(stops, self.at) - 1
        if by > 0 or stops[max(0, place)] == self.at:
            place += by
        self.at = stops[place % len(stops)]

    def with_changed_regions(self, change: Callable[[Regions], Regions]) -> MergeState:
        """Return a copy with ``change`` applied to the regions and to every step of the undo history."""
        other = MergeState(self._regions)
        other.at = self.at
        other._past = [change(each) for each in self._past]
        other._future = [change(each) for each in self._future]
        other._show(change(self._regions))
        return other

    def window(self, lines: int) -> tuple[int, int]:
        """Return the window around the current region: its first index and the index after its last.

        The neighbours have up to ``lines`` lines in total. Long unchanged regions beside the current region
        are cut in two first.
        """
        self._cut_beside(lines // 4)
        start, end, space = self.at, min(self.at + 1, len(self._regions)), lines
        grown = True
        while grown:
            grown = False
            for index in (start - 1, end):
                if 0 <= index < len(self._regions) and _size(self._regions[index]) <= space:
                    space -= _size(self._regions[index])
                    start, end = min(start, index), max(end, index + 1)
                    grown = True
        return start, end

    def _cut_beside(self, lines: int) -> None:
        regions, at = list(self._regions), self.at
        if at + 1 < len(regions) and _is_longer(regions[at + 1], lines):
            regions[at + 1 : at + 2] = _cut(regions[at + 1], lines)
        if at > 0 and _is_longer(regions[at - 1], lines):
            regions[at - 1 : at] = _cut(regions[at - 1], len(regions[at - 1].base) - lines)
            self.at += 1
        if len(regions) != len(self._regions):
            self._regions = tuple(regions)

    def _show(self, regions: Regions) -> None:
        lines = sum(len(each.current) for each in self._regions[: self.at])
        changed = len(regions) != len(self._regions)
        self._regions = regions
        if changed:
            ends = list(accumulate(len(each.current) for each in regions))
            self.at = min(bisect_right(ends, lines), max(0, len(regions) - 1))
        if self.at < len(regions) and self.at not in (stops := self.stops):
            self.at = next((index for index in stops if index > self.at), stops[-1] if stops else self.at)

    def _go_on(self) -> None:
        waiting = self.open
        if waiting and self.at not in waiting:
            self.at = next((index for index in waiting if index > self.at), waiting[0])


def count_choices(regions: Regions) -> Mapping[ChoiceKind, int]:
    """Return the number of changes in ``regions`` for each choice. Identical changes of both sides are not
    counted, because there was nothing to choose."""
    counts: Counter[ChoiceKind] = Counter()
    for each in regions:
        if each.choice is not None:
            counts["both" if each.choice == "both_incoming_first" else each.choice] += 1
        elif each.kind == "current" or each.kind == "incoming":
            counts[each.kind] += 1
    return counts


def _size(region: Region) -> int:
    return max(len(region.current), len(region.incoming), len(region.result))


def _is_longer(region: Region, lines: int) -> bool:
    return region.kind == "unchanged" and region.choice is None and len(region.base) > lines


def _cut(region: Region, lines: int) -> Regions:
    """Return an unchanged region cut in two, with ``lines`` lines in the first part."""
    first, rest = region.base[:lines], region.base[lines:]
    return Region("unchanged", first, first, first), Region("unchanged", rest, rest, rest)


class RegionLayout:
    """The rows of regions, one below the other. Each region has at least one row."""

    def __init__(self, heights: Sequence[int]) -> None:
        self._starts = [0, *accumulate(max(1, height) for height in heights)]

    @property
    def rows(self) -> int:
        return self._starts[-1]

    def start(self, region: int) -> int:
        """Return the first row of a region."""
        return self._starts[region]

    def height(self, region: int) -> int:
        return self._starts[region + 1] - self._starts[region]

    def at(self, row: int) -> tuple[int, int]:
        """Return the region at ``row``, and the number of rows from the region's first row to ``row``."""
        region = bisect_right(self._starts, row) - 1
        return region, row - self._starts[region]


def side_by_side_layout(regions: Regions) -> RegionLayout:
    """Return the layout of the side panes. A region is as high as its longest side."""
    return RegionLayout([max(len(each.base), len(each.current), len(each.incoming)) for each in regions])


def result_layout(regions: Regions) -> RegionLayout:
    """Return the layout of the result pane."""
    return RegionLayout([len(each.text if each.is_open else each.result) for each in regions])


def is_included(region: Region, side: str) -> bool:
    """Return whether the result includes the lines of ``side``. A decided region never includes the base."""
    match region.choice:
        case None:
            return region.kind in ("unchanged", "agreed", side)
        case "both" | "both_incoming_first":
            return side != "base"
        case _:
            return region.choice == side
