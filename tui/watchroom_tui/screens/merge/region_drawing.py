"""The texts of a merge as rows, region by region. Only visible lines are compared word by word. Pure."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Final, Literal, TypeAlias

from watchroom.algorithms.merge import Lines, Region, find_changed_words
from watchroom.texts import Catalogue

from watchroom_tui.formatters.diff_drawing import NO_END
from watchroom_tui.formatters.drawing import Cell, Drawing
from watchroom_tui.formatters.styled_text import Line, Span
from watchroom_tui.keys.keymap import shown_key
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.screens.merge.measures import RegionMeasures
from watchroom_tui.screens.merge.state import RegionLayout, is_included

Side: TypeAlias = Literal["base", "current", "incoming"]

COMPARED: Final = 200
"""Maximum number of lines of each side whose line ends are compared."""

OFFERED: Final = ("take_current", "take_incoming", "take_both", "take_neither", "edit")
"""The actions that an open region offers."""


class RegionDrawing(Drawing):
    """One text of a merge. ``at``: the current region."""

    wraps = False

    def __init__(self, measures: RegionMeasures, layout: RegionLayout, at: int) -> None:
        self.layout = layout
        self._regions = measures.regions
        self._longest = measures.longest
        self._at = at
        self._numbers = [0, *accumulate(len(self.lines_of(region)) for region in self._regions)]

    @abstractmethod
    def lines_of(self, region: Region) -> Lines:
        """Return the region's lines in this text."""

    @abstractmethod
    def text_of(self, region: Region, row: int) -> Line:
        """Return the text of one of the region's rows."""

    def __len__(self) -> int:
        return self.layout.rows

    def gutter(self, index: int) -> int:
        return len(str(self._numbers[-1])) + 3

    def longest(self) -> int:
        return self._longest

    def cell_texts(self, index: int) -> Sequence[str]:
        region, row = self.layout.at(index)
        return ["".join(span.text for span in self.text_of(self._regions[region], row))]

    def row(self, index: int, reach: int, *, is_top: bool) -> Sequence[Cell]:
        number, row = self.layout.at(index)
        region = self._regions[number]
        is_here = number == self._at and (region.kind != "unchanged" or region.choice is not None)
        has_line = row < len(self.lines_of(region))
        line_number = str(self._numbers[number] + row + 1) if has_line else ""
        gutter = [
            Span("▸" if row == 0 else " ", "accent") if is_here else Span(" "),
            Span(f"{line_number:>{self.gutter(index) - 3}}", "number"),
            Span("▌", state_of(region)) if region.kind != "unchanged" or region.choice else Span(" "),
            Span(" "),
        ]
        return [Cell(gutter, self.text_of(region, row), "cursor-idle" if is_here else "")]


class SideDrawing(RegionDrawing):
    """The base text, the current text or the incoming text."""

    def __init__(self, measures: RegionMeasures, at: int, side: Side) -> None:
        self._side: Side = side
        super().__init__(measures, measures.sides, at)

    def lines_of(self, region: Region) -> Lines:
        lines: Lines = getattr(region, self._side)
        return lines

    def text_of(self, region: Region, row: int) -> Line:
        lines = self.lines_of(region)
        if row >= len(lines):
            return []
        line = lines[row].rstrip("\r\n")
        if region.kind == "unchanged":
            return [Span(sanitize(line))]
        end = _end_of(lines[row], region)
        if region.choice is not None and not is_included(region, self._side):
            return [Span(sanitize(line), "dim"), end]
        if self._side == "base" or lines == region.base:
            return [Span(sanitize(line), "" if region.is_open else "dim"), end]
        others = region.base or self._opposite(region)
        return [*marked_words(others[row].rstrip("\r\n") if row < len(others) else "", line), end]

    def _opposite(self, region: Region) -> Lines:
        return region.incoming if self._side == "current" else region.current


class ResultDrawing(RegionDrawing):
    """The text to commit. An open region offers actions to decide it."""

    def __init__(
        self, measures: RegionMeasures, at: int, texts: Catalogue, keymap: Mapping[str, tuple[str, ...]]
    ) -> None:
        super().__init__(measures, measures.result, at)
        self._texts = texts
        self._keymap = keymap

    def lines_of(self, region: Region) -> Lines:
        return region.text if region.is_open else region.result

    def text_of(self, region: Region, row: int) -> Line:
        texts = self._texts
        if region.is_open and not region.text:
            keys = " · ".join(
                f"{shown_key(each, self._keymap)} {texts(f'action.{each}.label')}" for each in OFFERED
            )
            return [Span(f"‹ {texts('merge.choose', keys=keys)} ›", "warning")]
        if region.is_open:
            return [Span(sanitize(region.text[row].rstrip("\r\n")), "warning")]
        if row >= len(region.result):
            changed = region.choice or region.kind != "unchanged"
            return [Span(f"‹ {texts('merge.nothing')} ›", "dim")] if changed else []
        line = sanitize(region.result[row].rstrip("\r\n"))
        if region.choice == "edited":
            return [Span(line, "accent")]
        return [Span(line, "" if region.result == region.current else "added")]


def _end_of(line: str, region: Region) -> Span:
    """Return a mark for the end of the line, empty if all sides use the same line ends. The line end may be
    the only difference."""
    sides = [side[:COMPARED] for side in (region.base, region.current, region.incoming)]
    if len({_ending(each) for side in sides for each in side}) < 2:
        return Span("")
    return Span({"\n": "", "\r\n": "␍", "": NO_END}[_ending(line)], "dim")


def _ending(line: str) -> str:
    if line.endswith("\n"):
        return "\r\n" if line.endswith("\r\n") else "\n"
    return ""


def marked_words(old: str, new: str) -> Iterator[Span]:
    """Yield the spans of ``new``. Mark the words that ``old`` lacks."""
    at = 0
    for start, end in [*find_changed_words(old, new), (len(new), len(new))]:
        for text, style in ((new[at:start], ""), (new[start:end], "added-word")):
            if text:
                yield Span(sanitize(text), style)
        at = end


def state_of(region: Region) -> str:
    """Return the style of a region's mark: open, decided by a person, or changed by one side only."""
    if region.is_open:
        return "error"
    return "ok" if region.choice else "accent"
