"""The three-way merge: splits three texts into regions of lines by who changed them.

The algorithm is diff3 (Khanna, Kunal and Pierce, "A Formal Investigation of Diff3", 2007). As in
``git merge-file --diff3``, adjacent changes of the two sides are one conflict.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

from watchroom.algorithms.merge.diff import LineChange, diff_lines, split_lines
from watchroom.algorithms.merge.styles import merge_styles

Kind: TypeAlias = Literal["unchanged", "current", "incoming", "agreed", "conflict"]
"""The sides that changed a region of the base: none, one side, both equally (agreed), or both differently
(conflict)."""

Choice: TypeAlias = Literal["current", "incoming", "both", "both_incoming_first", "neither", "edited"]
CHOICES: Final[tuple[Choice, ...]] = get_args(Choice)

Lines: TypeAlias = tuple[str, ...]


class Region(NamedTuple):
    """Corresponding lines of the three texts, and a person's choice for them.

    - ``kind``: the sides that changed the base.
    - ``base``, ``current``, ``incoming``: the lines of each text.
    - ``choice``: None if nobody has chosen.
    - ``text``: the lines written by a person. They are the result if ``choice`` is ``edited``.
    """

    kind: Kind
    base: Lines
    current: Lines
    incoming: Lines
    choice: Choice | None = None
    text: Lines = ()

    @property
    def is_open(self) -> bool:
        """Whether a person must still choose."""
        return self.kind == "conflict" and self.choice is None

    @property
    def result(self) -> Lines:
        """The lines of the merged text; empty while the region is open."""
        match self.choice:
            case "edited":
                return self.text
            case "current":
                return self.current
            case "incoming":
                return self.incoming
            case "neither":
                return ()
            case "both":
                return self._concatenate(self.current, self.incoming)
            case "both_incoming_first":
                return self._concatenate(self.incoming, self.current)
        if self.kind == "conflict":
            return ()
        return self.incoming if self.kind == "incoming" else self.current

    def _concatenate(self, first: Lines, second: Lines) -> Lines:
        """Return both sides of a conflict, or the changed side of another region."""
        if self.kind != "conflict":
            return self.incoming if self.kind == "incoming" else self.current
        return first + second


def merge(base: str, current: str, incoming: str) -> tuple[Region, ...]:
    """Return the regions of a three-way merge, in order.

    ``current`` and ``incoming`` are both based on ``base``. Each text is the join of its lines over all
    regions. If the texts differ in style, they are merged in normal form; pass the merged text to
    `MergedStyles.apply` of `merge_styles`.
    """
    styles = merge_styles(base, current, incoming)
    return merge_lines(*(styles.normalize(text) for text in (base, current, incoming)))


def merge_lines(base: str, current: str, incoming: str) -> tuple[Region, ...]:
    """Merge like `merge`, but without normalizing styles: lines with different ends differ."""
    return build_regions(
        (split_lines(base), split_lines(current), split_lines(incoming)),
        diff_lines(base, current),
        diff_lines(base, incoming),
    )


def build_regions(
    texts: tuple[Sequence[str], Sequence[str], Sequence[str]],
    to_current: Sequence[LineChange],
    to_incoming: Sequence[LineChange],
) -> tuple[Region, ...]:
    """Return the regions of a three-way merge from its line changes.

    - ``texts``: the lines of base, current and incoming.
    - ``to_current``, ``to_incoming``: the changes from the base.
    """
    base, current, incoming = texts
    regions: list[Region] = []
    at_base = at_current = at_incoming = 0

    def take(base_end: int, current_end: int, incoming_end: int, kind: Kind | None = None) -> None:
        nonlocal at_base, at_current, at_incoming
        sides = (
            tuple(base[at_base:base_end]),
            tuple(current[at_current:current_end]),
            tuple(incoming[at_incoming:incoming_end]),
        )
        at_base, at_current, at_incoming = base_end, current_end, incoming_end
        if any(sides):
            regions.append(Region(kind or classify_region(*sides), *sides))

    for start, end, ours, theirs in _group_touching(to_current, to_incoming):
        gap = start - at_base
        take(start, at_current + gap, at_incoming + gap, "unchanged")
        take(end, at_current + _side_length(start, end, ours), at_incoming + _side_length(start, end, theirs))
    rest = len(base) - at_base
    take(len(base), at_current + rest, at_incoming + rest, "unchanged")
    return tuple(regions)


def classify_region(base: Lines, current: Lines, incoming: Lines) -> Kind:
    """Return which sides changed ``base``."""
    if current == incoming:
        return "unchanged" if base == current else "agreed"
    if incoming == base:
        return "current"
    return "incoming" if current == base else "conflict"


def _side_length(start: int, end: int, changed: Sequence[LineChange]) -> int:
    """Return the number of lines that a side has in place of the base's lines from ``start`` to ``end``."""
    grown = sum((each.new_end - each.new_start) - (each.old_end - each.old_start) for each in changed)
    return end - start + grown


def _group_touching(
    ours: Sequence[LineChange], theirs: Sequence[LineChange]
) -> Iterator[tuple[int, int, list[LineChange], list[LineChange]]]:
    """Yield groups of touching changes: a range of the base, and the changes of each side."""
    sides = (list(reversed(ours)), list(reversed(theirs)))
    while sides[0] or sides[1]:
        start = min(side[-1].old_start for side in sides if side)
        end = start
        group: tuple[list[LineChange], list[LineChange]] = ([], [])
        grown = True
        while grown:
            grown = False
            for side, mine in zip(sides, group, strict=True):
                while side and side[-1].old_start <= end:
                    change = side.pop()
                    mine.append(change)
                    end = max(end, change.old_end)
                    grown = True
        yield start, end, *group
