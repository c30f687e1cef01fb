"""The resolution of a merge by a person: region by region or by editing the text.

Resolutions are kept if the file changes in the meantime. All functions return new regions.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from watchroom.algorithms.merge.diff import LineChange, diff_lines, split_lines
from watchroom.algorithms.merge.regions import Choice, Lines, Region, classify_region, merge_lines
from watchroom.algorithms.merge.styles import MergedStyles

Regions = tuple[Region, ...]

OPENING: Final = "<<<<<<< current"
DIVIDING: Final = "======="
CLOSING: Final = ">>>>>>> incoming"
"""The conflict markers around the two sides of an open region, as in git."""


def choose_region(regions: Regions, index: int, choice: Choice | None) -> Regions:
    """Set the choice for the region at ``index``.

    None reopens a conflict, and resets another region to its change.
    """
    return (*regions[:index], regions[index]._replace(choice=choice, text=()), *regions[index + 1 :])


def choose_all_conflicts(regions: Regions, choice: Choice | None) -> Regions:
    """Set the choice for every conflict. Other regions do not change."""
    return tuple(
        each._replace(choice=choice, text=()) if each.kind == "conflict" else each for each in regions
    )


def find_open_regions(regions: Iterable[Region]) -> list[int]:
    """Return the indexes of the open regions."""
    return [index for index, region in enumerate(regions) if region.is_open]


def join_regions(regions: Regions) -> str:
    """Return the resolved text. Raise ValueError if a region is open."""
    if find_open_regions(regions):
        raise ValueError("a region is still open")
    return "".join(_join_with_ends([region.result for region in regions], _line_end(regions)))


def text_with_markers(regions: Regions) -> str:
    """Return the current text of the merge. Open regions appear as both sides between conflict markers."""
    return "".join(_join_with_ends(_render_regions(regions), _line_end(regions)))


def find_marker_offsets(regions: Regions) -> tuple[int, ...]:
    """Return the positions of the markers in `text_with_markers`, in code points, ascending.

    Raise ValueError if a person has written in an open region.
    """
    shown = _render_regions(regions)
    lines = iter(_join_with_ends(shown, _line_end(regions)))
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
    """Return the current lines, the lines of `text_with_markers`, and the changes between them.

    The changes follow from the regions, without a comparison of the texts. Equal lines at the start or end of
    a region are not part of a change.
    """
    old = [line for region in regions for line in region.current]
    shown = _render_regions(regions)
    new = _join_with_ends(shown, _line_end(regions))
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
    """Return ``change`` without equal lines at its ends; None if no lines are left."""
    start, old_end, at, new_end = change
    while start < old_end and at < new_end and old[start] == new[at]:
        start, at = start + 1, at + 1
    while start < old_end and at < new_end and old[old_end - 1] == new[new_end - 1]:
        old_end, new_end = old_end - 1, new_end - 1
    return LineChange(start, old_end, at, new_end) if start < old_end or at < new_end else None


def apply_edit(regions: Regions, text: str) -> Regions:
    """Return the regions after a person has changed `text_with_markers` to ``text``.

    New text belongs to the region in which it was written. Unchanged regions keep their state. Regions that
    are spanned by one change become one region.
    """
    shown = _render_regions(regions)
    before = "".join(_join_with_ends(shown, _line_end(regions)))
    if before == text:
        return regions
    lines = split_lines(text)
    result: list[Region] = []
    for group in _group_regions(regions, [len(each) for each in shown], diff_lines(before, text)):
        if group.new_lines is None:
            result.extend(group.regions)
            continue
        sides = group.sides()
        written = tuple(lines[group.new_lines])
        # While a marker of an open region remains, the person has not decided.
        if any(each.is_open for each in group.regions) and _has_markers(written):
            result.append(_reopen(sides, written))
        else:
            result.append(Region(classify_region(*sides), *sides, "edited", written))
    return tuple(result)


def join_current(regions: Regions) -> str:
    """Return the current text on which ``regions`` are based."""
    return "".join(line for region in regions for line in region.current)


def normalize_regions(regions: Regions, styles: MergedStyles) -> Regions:
    """Return ``regions`` with all lines in the normal form of ``styles``."""

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
    """Return the regions for a newer current text, and keep as many choices as possible.

    If a decided region changed, it is merged with the newer text. It is reopened if the merge would drop text
    that the person has not seen.

    - ``current``: the newer text.
    - ``changed``: the changes from `join_current` to ``current``, default computed by `diff_lines`.
    """
    if changed is None:
        changed = diff_lines(join_current(regions), current)
    lines = split_lines(current)
    result: list[Region] = []
    for group in _group_regions(regions, [len(region.current) for region in regions], changed):
        if group.new_lines is not None:
            result.extend(_rebase_group(group, tuple(lines[group.new_lines])))
        else:
            result.extend(group.regions)
    return tuple(result)


def _rebase_group(group: _RegionGroup, current: Lines) -> Regions:
    """Return the regions for a group whose current lines have changed to ``current``."""
    base, before, incoming = group.sides()
    if len(group.regions) == 1 and not group.regions[0].is_open and before:
        # Lines added before or after the region do not affect its choice.
        places = _find_lines(current, before)
        if len(places) == 1:
            start, end = places[0], places[0] + len(before)
            around = (_added_region(current[:start]), group.regions[0], _added_region(current[end:]))
            return tuple(each for each in around if any((each.base, each.current, each.incoming)))
    sides = (base, current, incoming)
    is_written = any(each.text for each in group.regions)
    if any(each.is_open for each in group.regions):
        text = [line for part in _render_regions(group.regions) for line in part]
        return (
            (_reopen(sides, _insert_newer_lines(text, before, current)),)
            if is_written
            else _merge_sides(sides)
        )
    region = Region(classify_region(*sides), *sides)
    choices = {each.choice for each in group.regions}
    if choices == {None}:
        return _merge_sides(sides)
    decided = tuple(line for each in group.regions for line in each.result)
    if decided in (before, current):
        return (region._replace(choice="current"),)
    if len(group.regions) == 1 and group.regions[0].choice in ("both", "both_incoming_first"):
        return (region._replace(choice=group.regions[0].choice),)
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
    """Return an open region in which a person has written ``text``, including markers."""
    base, current, incoming = sides
    return Region("conflict", base, current, incoming, None, text)


def _insert_newer_lines(written: Sequence[str], before: Lines, current: Lines) -> Lines:
    """Replace the current side between the markers in ``written`` by the newer lines ``current``.

    If the person has changed that side, put the newer lines and ``written`` between new markers.
    """
    end = "\r\n" if any(line.endswith("\r\n") for line in (*written, *current)) else "\n"
    opening, dividing, closing = OPENING + end, DIVIDING + end, CLOSING + end
    newer = (opening, *_with_line_ends(current, end), dividing)
    older = (opening, *_with_line_ends(before, end), dividing)
    for at in _find_lines(tuple(written), older)[:1]:
        return (*written[:at], *newer, *written[at + len(older) :])
    return (*newer, *_with_line_ends(tuple(written), end), closing)


def _find_lines(lines: Lines, wanted: Lines) -> list[int]:
    """Return the positions of ``wanted``, which must not be empty, in ``lines``."""
    return [
        at for at, line in enumerate(lines) if line == wanted[0] and lines[at : at + len(wanted)] == wanted
    ]


def _added_region(lines: Lines) -> Region:
    """Return a region for lines that only the current text has."""
    return Region("current", (), lines, ())


def _render_regions(regions: Regions) -> list[Lines]:
    """Return the lines of each region in the form of `text_with_markers`."""
    end = _line_end(regions)
    return [
        (region.text or _with_markers(region, end)) if region.is_open else region.result for region in regions
    ]


def _has_markers(lines: Lines) -> bool:
    # The divider is ignored, because it can also underline a heading.
    return any(line.rstrip("\r\n") in (OPENING, CLOSING) for line in lines)


def _with_markers(region: Region, end: str) -> Lines:
    return (
        OPENING + end,
        *_with_line_ends(region.current, end),
        DIVIDING + end,
        *_with_line_ends(region.incoming, end),
        CLOSING + end,
    )


def _join_with_ends(parts: Sequence[Lines], end: str) -> list[str]:
    """Return all lines.

    The last line of a side may lack its line end. If other lines follow it here, it gets ``end``.
    """
    lines = [line for part in parts for line in part]
    if all(line.endswith("\n") for line in lines[:-1]):
        return lines
    return [*_with_line_ends(tuple(lines[:-1]), end), lines[-1]]


def _with_line_ends(lines: Lines, end: str) -> Lines:
    return tuple(line if line.endswith("\n") else line + end for line in lines)


def _line_end(regions: Regions) -> str:
    """Return the line end for added markers and for lines without one. It depends only on the sides as a
    whole, so it stays the same when a person edits regions."""
    current = (line for region in regions for line in region.current)
    incoming = (line for region in regions for line in region.incoming)
    sample = next((line for line in itertools.chain(current, incoming) if line.endswith("\n")), "")
    return "\r\n" if sample.endswith("\r\n") else "\n"


class _RegionGroup(NamedTuple):
    """Neighbouring regions.

    ``new_lines``: the group's lines in the text after the change; None if no change touches the group.
    """

    regions: tuple[Region, ...]
    new_lines: slice | None = None

    def sides(self) -> tuple[Lines, Lines, Lines]:
        """Return the lines of base, current and incoming of all regions of the group."""
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
        """Whether the piece can be cut anywhere, because all sides and the result are equal."""
        return self.region.kind == "unchanged" and self.region.choice is None


def _group_regions(
    regions: Sequence[Region], lengths: Sequence[int], changed: Sequence[LineChange]
) -> Iterator[_RegionGroup]:
    """Yield ``regions`` in order, in groups: one group for all regions that a change touches.

    Untouched regions stay as they are. Unchanged regions are cut where a change begins or ends.

    - ``lengths``: the number of lines of each region in the text before the change.
    - ``changed``: the changes of that text.
    """
    pieces = _split_regions(regions, lengths, changed)
    grown = 0
    done = 0
    for first, end, group in _group_pieces(pieces, changed):
        if first > done:
            yield _RegionGroup(tuple(each.region for each in pieces[done:first]))
        touched = pieces[first:end]
        start = touched[0].start + grown
        grown += sum((each.new_end - each.new_start) - (each.old_end - each.old_start) for each in group)
        new_lines = slice(start, touched[-1].end + grown)
        yield _RegionGroup(tuple(each.region for each in touched), new_lines)
        done = end
    if done < len(pieces):
        yield _RegionGroup(tuple(each.region for each in pieces[done:]))


def _split_regions(
    regions: Sequence[Region], lengths: Sequence[int], changed: Sequence[LineChange]
) -> list[_Piece]:
    """Return the regions with their positions. Unchanged regions are cut where a change begins or ends."""
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
    """Yield the ranges of pieces that changes touch, each with its changes. Overlapping ranges are joined."""
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
    """Return the range of pieces that ``change`` touches.

    An insertion between two pieces belongs to the piece that is not plain.
    """
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
