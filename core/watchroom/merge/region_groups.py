"""Regions cut where a text that they make up has changed: untouched parts stay, parts that one change touches
are grouped."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from watchroom.merge.line_diff import LineChange
from watchroom.merge.regions import Lines, Region


class RegionGroup(NamedTuple):
    """Neighbouring ``regions``. ``new_lines``: where their lines are in the text after the change; None where
    no change falls into them."""

    regions: tuple[Region, ...]
    new_lines: slice | None = None

    def sides(self) -> tuple[Lines, Lines, Lines]:
        """The lines of base, current and incoming, of all regions of the group."""
        return (
            tuple(line for each in self.regions for line in each.base),
            tuple(line for each in self.regions for line in each.current),
            tuple(line for each in self.regions for line in each.incoming),
        )


class _Piece(NamedTuple):
    region: Region
    start: int
    end: int

    @property
    def is_plain(self) -> bool:
        """Whether it can be cut anywhere: all sides and the result have the same lines."""
        return self.region.kind == "unchanged" and self.region.choice is None


def group_regions(
    regions: Sequence[Region], lengths: Sequence[int], changed: Sequence[LineChange]
) -> Iterator[RegionGroup]:
    """``regions`` in order, as groups. ``lengths``: how many lines each has in the text before; ``changed``:
    what changed in that text."""
    pieces = _split_regions(regions, lengths, changed)
    grown = 0
    done = 0
    for first, end, group in _group_pieces(pieces, changed):
        if first > done:
            yield RegionGroup(tuple(each.region for each in pieces[done:first]))
        touched = pieces[first:end]
        start = touched[0].start + grown
        grown += sum((each.new_end - each.new_start) - (each.old_end - each.old_start) for each in group)
        new_lines = slice(start, touched[-1].end + grown)
        yield RegionGroup(tuple(each.region for each in touched), new_lines)
        done = end
    if done < len(pieces):
        yield RegionGroup(tuple(each.region for each in pieces[done:]))


def _split_regions(
    regions: Sequence[Region], lengths: Sequence[int], changed: Sequence[LineChange]
) -> list[_Piece]:
    """The regions with their positions; unchanged ones are split where a change begins or ends."""
    cuts = sorted({place for each in changed for place in (each.old_start, each.old_end)})
    insertions = {each.old_start for each in changed if each.old_start == each.old_end}
    pieces: list[_Piece] = []
    start = 0
    for region, length in zip(regions, lengths, strict=True):
        whole = _Piece(region, start, start + length)
        if not whole.is_plain:
            pieces.append(whole)
        else:
            if start in insertions and (not pieces or pieces[-1].is_plain):
                pieces.append(_Piece(_EMPTY, start, start))
            inside = cuts[bisect_right(cuts, start) : bisect_left(cuts, whole.end)]
            pieces.extend(_cut_piece(whole, inside, insertions))
        start += length
    if start in insertions and not (pieces and not pieces[-1].is_plain):
        pieces.append(_Piece(_EMPTY, start, start))
    return pieces


def _cut_piece(whole: _Piece, inside: Sequence[int], insertions: set[int]) -> Iterator[_Piece]:
    at = whole.start
    for place in (*inside, whole.end):
        lines = whole.region.current[at - whole.start : place - whole.start]
        if lines:
            yield _Piece(Region("unchanged", lines, lines, lines), at, place)
        if place in insertions and place != whole.end:
            yield _Piece(_EMPTY, place, place)
        at = place


_EMPTY = Region("unchanged", (), (), ())


def _group_pieces(
    pieces: Sequence[_Piece], changed: Sequence[LineChange]
) -> Iterator[tuple[int, int, list[LineChange]]]:
    """Ranges of pieces that changes touch, each with its changes; overlapping ones are one."""
    first = end = 0
    group: list[LineChange] = []
    starts = [piece.start for piece in pieces]
    for change in changed:
        mine = _find_touched(pieces, starts, change)
        if group and mine[0] < end:
            end = max(end, mine[1])
        else:
            if group:
                yield first, end, group
            first, end = mine
            group = []
        group.append(change)
    if group:
        yield first, end, group


def _find_touched(pieces: Sequence[_Piece], starts: Sequence[int], change: LineChange) -> tuple[int, int]:
    """Which pieces a change touches. An insertion between two belongs to the one that is not plain."""
    near = max(0, bisect_left(starts, change.old_start) - 1)
    last = bisect_right(starts, change.old_end)
    if change.old_start < change.old_end:
        overlapping = [
            index
            for index in range(near, last)
            if pieces[index].start < change.old_end and pieces[index].end > change.old_start
        ]
        return overlapping[0], overlapping[-1] + 1
    place = change.old_start
    beside = [index for index in range(near, last) if pieces[index].start <= place <= pieces[index].end]
    chosen = min(beside, key=lambda index: (pieces[index].is_plain, pieces[index].start != pieces[index].end))
    return chosen, chosen + 1
