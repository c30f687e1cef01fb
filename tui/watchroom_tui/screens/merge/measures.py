"""The scroll sizes of the panes of a merge: the rows of its regions and the width of their lines. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final

from rich.cells import cell_len
from watchroom.algorithms.merge import Lines, Region, Regions

from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.screens.merge.state import RegionLayout, result_layout, side_by_side_layout

MEASURED: Final = 2000
"""Maximum number of lines measured for the horizontal scroll size."""


class RegionMeasures:
    """The measures of the regions that were measured last, for all panes."""

    def __init__(self) -> None:
        self.regions: Regions = ()
        self.longest = 0
        """The width in cells of the longest measured line."""
        self.sides = RegionLayout(())
        """The rows of the regions in the side panes. The same object until they change."""
        self.result = RegionLayout(())
        """The rows of the regions in the result."""

    def measure(self, regions: Regions) -> None:
        """Measure ``regions``. Only changed regions are read if the number of regions is unchanged."""
        if regions is self.regions:
            return
        before, self.regions = self.regions, regions
        self.result = result_layout(regions)
        if len(before) == len(regions):
            changed = [pair for pair in zip(before, regions, strict=True) if pair[0] is not pair[1]]
            self.longest = max(self.longest, _widest_line(after for _, after in changed))
            if all(_sides_of(old) == _sides_of(new) for old, new in changed):
                return
        else:
            self.longest = _widest_line(regions)
        self.sides = side_by_side_layout(regions)

    @property
    def widest_change(self) -> int:
        """The width in cells of the longest measured line in the regions that differ between the texts."""
        return _widest_line(each for each in self.regions if each.kind != "unchanged")


def _widest_line(regions: Iterable[Region]) -> int:
    lines = (line for region in regions for text in _texts_of(region) for line in text)
    return max((cell_len(sanitize(line.rstrip("\r\n"))) for line in islice(lines, MEASURED)), default=0)


def _texts_of(region: Region) -> Sequence[Lines]:
    if region.kind == "unchanged":
        return (region.result,)
    return (*_sides_of(region), region.text)


def _sides_of(region: Region) -> tuple[Lines, Lines, Lines]:
    return region.base, region.current, region.incoming
