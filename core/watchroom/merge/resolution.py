"""The resolution of a merge by a person: region by region, by hand, and kept when the file changes meanwhile.
Every step returns new regions and leaves the old ones as they were."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from watchroom.merge.line_diff import LineChange, diff_lines, split_lines
from watchroom.merge.region_groups import RegionGroup, group_regions
from watchroom.merge.regions import Choice, Lines, Region, classify_region, merge_lines
from watchroom.merge.styles import MergedStyles

Regions = tuple[Region, ...]

OPENING: Final = "<<<<<<< current"
DIVIDING: Final = "======="
CLOSING: Final = ">>>>>>> incoming"
"""How a region that is still open stands in a text, as git writes it."""


def choose_region(regions: Regions, index: int, choice: Choice | None) -> Regions:
    """``regions`` with ``choice`` for the one at ``index``; None leaves it open, or as it came if only one
    side changed it."""
    return (*regions[:index], regions[index]._replace(choice=choice, text=()), *regions[index + 1 :])


def choose_all_conflicts(regions: Regions, choice: Choice | None) -> Regions:
    """``regions`` with ``choice`` for every conflict. What one side changed alone stays as it is."""
    return tuple(
        each._replace(choice=choice, text=()) if each.kind == "conflict" else each for each in regions
    )


def find_open_regions(regions: Iterable[Region]) -> list[int]:
    """The indexes of those of ``regions`` that are still open."""
    return [index for index, region in enumerate(regions) if region.is_open]


def join_regions(regions: Regions) -> str:
    """The resolved text of ``regions``. Raises ValueError while one is open."""
    if find_open_regions(regions):
        raise ValueError("a region is still open")
    return "".join(_join_with_ends([region.result for region in regions]))


def text_with_markers(regions: Regions) -> str:
    """The text of ``regions`` so far, with both sides between conflict markers where one is open."""
    return "".join(_join_with_ends(_render_regions(regions)))


def find_marker_offsets(regions: Regions) -> tuple[int, ...]:
    """Where the markers begin in `text_with_markers` of ``regions``, in code points, in order. Raises
    ValueError for open regions in which a person has written."""
    shown = _render_regions(regions)
    lines = iter(_join_with_ends(shown))
    found: list[int] = []
    at = 0
    for region, part in zip(regions, shown, strict=True):
        if region.is_open and region.text:
            raise ValueError("a person has written in an open region")
        marks = {0, len(region.current) + 1, len(part) - 1} if region.is_open else set[int]()
        for index in range(len(part)):
            if index in marks:
                found.append(at)
            at += len(next(lines))
    return tuple(found)


def diff_result(regions: Regions) -> tuple[list[str], list[str], list[LineChange]]:
    """For ``regions``: the current lines, those of `text_with_markers`, and what changed from the first to
    the second.

    Known from the regions, without comparing the texts; equal lines at the start or end of one region do not
    count as changed."""
    old = [line for region in regions for line in region.current]
    shown = _render_regions(regions)
    new = _join_with_ends(shown)
    found: list[LineChange] = []
    old_start = new_start = 0
    for region, lines in zip(regions, shown, strict=True):
        old_end, new_end = old_start + len(region.current), new_start + len(lines)
        change = _trim_change(old, new, LineChange(old_start, old_end, new_start, new_end))
        if change is not None:
            found.append(change)
        old_start, new_start = old_end, new_end
    return old, new, found


def _trim_change(old: Sequence[str], new: Sequence[str], change: LineChange) -> LineChange | None:
    """The change without what is alike at its ends; None if nothing is left."""
    start, old_end, at, new_end = change
    while start < old_end and at < new_end and old[start] == new[at]:
        start, at = start + 1, at + 1
    while start < old_end and at < new_end and old[old_end - 1] == new[new_end - 1]:
        old_end, new_end = old_end - 1, new_end - 1
    return LineChange(start, old_end, at, new_end) if start < old_end or at < new_end else None


def apply_edit(regions: Regions, text: str) -> Regions:
    """``regions`` after a person has changed `text_with_markers` into ``text``.

    What was written belongs to the region where it was written; a region whose lines are unchanged stays open
    or decided as it was. Regions that a change spans become one."""
    shown = _render_regions(regions)
    before = "".join(_join_with_ends(shown))
    if before == text:
        return regions
    lines = split_lines(text)
    result: list[Region] = []
    for cell in group_regions(regions, [len(each) for each in shown], diff_lines(before, text)):
        if cell.new_lines is None:
            result.extend(cell.regions)
            continue
        sides = cell.sides()
        written = tuple(lines[cell.new_lines])
        # While a marker of an open region remains, the person has not decided.
        if any(each.is_open for each in cell.regions) and _has_markers(written):
            result.append(_reopen(sides, written))
        else:
            result.append(Region(classify_region(*sides), *sides, "edited", written))
    return tuple(result)


def join_current(regions: Regions) -> str:
    """The current text that ``regions`` were made from."""
    return "".join(line for region in regions for line in region.current)


def normalize_regions(regions: Regions, styles: MergedStyles) -> Regions:
    """``regions`` of texts as they are, with the lines of the normal form of ``styles``."""

    def normalize(lines: Lines) -> Lines:
        return tuple(split_lines(styles.normalize("".join(lines))))

    return tuple(
        region._replace(
            base=normalize(region.base),
            current=normalize(region.current),
            incoming=normalize(region.incoming),
            text=normalize(region.text),
        )
        for region in regions
    )


def rebase_regions(regions: Regions, current: str, changed: Sequence[LineChange] | None = None) -> Regions:
    """``regions`` for the file's newer text ``current``; every choice is kept that can be.

    Where the newer text differs, what was decided is merged with it. If that cannot be done without dropping
    text that the person has not seen, the region is open again. ``changed`` is the result of `diff_lines`
    from the current lines of the regions to ``current``, if it is known already."""
    if changed is None:
        changed = diff_lines(join_current(regions), current)
    lines = split_lines(current)
    result: list[Region] = []
    for cell in group_regions(regions, [len(region.current) for region in regions], changed):
        if cell.new_lines is not None:
            result.extend(_rebase_group(cell, tuple(lines[cell.new_lines])))
        else:
            result.extend(cell.regions)
    return tuple(result)


def _rebase_group(cell: RegionGroup, current: Lines) -> Regions:
    """The regions of a cell whose current lines are others now."""
    base, before, incoming = cell.sides()
    if len(cell.regions) == 1 and not cell.regions[0].is_open and before:
        # What was added before or after its lines leaves a decision as it is.
        places = _find_lines(current, before)
        if len(places) == 1:
            start, end = places[0], places[0] + len(before)
            around = (_added_region(current[:start]), cell.regions[0], _added_region(current[end:]))
            return tuple(each for each in around if any((each.base, each.current, each.incoming)))
    sides = (base, current, incoming)
    is_written = any(each.text for each in cell.regions)
    if any(each.is_open for each in cell.regions):
        text = [line for part in _render_regions(cell.regions) for line in part]
        return (
            (_reopen(sides, _insert_newer_lines(text, before, current)),)
            if is_written
            else _merge_sides(sides)
        )
    region = Region(classify_region(*sides), *sides)
    choices = {each.choice for each in cell.regions}
    if choices == {None}:
        return _merge_sides(sides)
    decided = tuple(line for each in cell.regions for line in each.result)
    if decided in (before, current):
        return (region._replace(choice="current"),)
    if len(cell.regions) == 1 and cell.regions[0].choice in ("both", "both_incoming_first"):
        return (region._replace(choice=cell.regions[0].choice),)
    with_newer = _merge_sides((before, current, decided))
    if find_open_regions(with_newer):
        return (_reopen(sides, _insert_newer_lines(decided, (), current) if is_written else ()),)
    return (
        region._replace(choice="edited", text=tuple(line for each in with_newer for line in each.result)),
    )


def _merge_sides(sides: Sequence[Lines]) -> Regions:
    base, current, incoming = ("".join(side) for side in sides)
    return merge_lines(base, current, incoming)


def _reopen(sides: Sequence[Lines], text: Lines) -> Region:
    """A region to be decided, in which a person has written ``text``, marks and all."""
    base, current, incoming = sides
    return Region("conflict", base, current, incoming, None, text)


def _insert_newer_lines(written: Sequence[str], before: Lines, current: Lines) -> Lines:
    """What a person wrote, with newer current lines in their place between the marks; if that place is gone,
    between marks of their own."""
    end = "\r\n" if any(line.endswith("\r\n") for line in (*written, *current)) else "\n"
    opening, dividing, closing = OPENING + end, DIVIDING + end, CLOSING + end
    newer = (opening, *_with_line_ends(current, end), dividing)
    older = (opening, *_with_line_ends(before, end), dividing)
    for at in _find_lines(tuple(written), older)[:1]:
        return (*written[:at], *newer, *written[at + len(older) :])
    return (*newer, *_with_line_ends(tuple(written), end), closing)


def _find_lines(lines: Lines, wanted: Lines) -> list[int]:
    """Where ``wanted``, which is not empty, stands in ``lines``."""
    return [
        at for at, line in enumerate(lines) if line == wanted[0] and lines[at : at + len(wanted)] == wanted
    ]


def _added_region(lines: Lines) -> Region:
    """Lines that only the current text has."""
    return Region("current", (), lines, ())


def _render_regions(regions: Regions) -> list[Lines]:
    """The lines of each region as a text shows them."""
    end = _line_end(regions)
    return [
        (region.text or _with_markers(region, end)) if region.is_open else region.result for region in regions
    ]


def _has_markers(lines: Lines) -> bool:
    # Not the one in the middle: it underlines headings, too.
    return any(line.rstrip("\r\n") in (OPENING, CLOSING) for line in lines)


def _with_markers(region: Region, end: str) -> Lines:
    return (
        OPENING + end,
        *_with_line_ends(region.current, end),
        DIVIDING + end,
        *_with_line_ends(region.incoming, end),
        CLOSING + end,
    )


def _join_with_ends(parts: Sequence[Lines]) -> list[str]:
    """All lines, each but the last with an end: the last line of a side may have none."""
    lines = [line for part in parts for line in part]
    if all(line.endswith("\n") for line in lines[:-1]):
        return lines
    end = "\r\n" if any(line.endswith("\r\n") for line in lines) else "\n"
    return [*_with_line_ends(tuple(lines[:-1]), end), lines[-1]]


def _with_line_ends(lines: Lines, end: str) -> Lines:
    return tuple(line if line.endswith("\n") else line + end for line in lines)


def _line_end(regions: Regions) -> str:
    sample = next((line for region in regions for line in region.current or region.incoming), "")
    return "\r\n" if sample.endswith("\r\n") else "\n"
