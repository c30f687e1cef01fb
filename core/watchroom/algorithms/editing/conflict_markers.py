"""Tracks the conflict markers of a merge through changes of the text.

Markers are identified by position, because the text of a line is ambiguous: ``=======`` also underlines
headings.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from watchroom.algorithms.editing.editor import TextChange
from watchroom.algorithms.merge import CLOSING, DIVIDING, OPENING

ConflictMarkers: TypeAlias = tuple[int, ...]
"""Positions of the marker lines in code points, ascending."""

_KINDS: Final = frozenset({OPENING, DIVIDING, CLOSING})
_MAX_DESCRIBED: Final = 5
_BREAK: Final = re.compile(r"[\r\n]")
_LINE_END: Final = re.compile(r"\r\n?|\n")


def move_markers(markers: Sequence[int], before: str, change: TextChange) -> ConflictMarkers:
    """Return the positions of ``markers`` after ``change``. Removed markers are left out.

    ``markers``: positions in ``before``, the text before the change. If the change replaced marker lines by
    equal lines, these count as markers, up to the number of removed markers. The change may also rewrite
    equal lines that were not markers; these are matched first.
    """
    if not markers:
        return ()
    after = change.apply(before)
    end, shift = change.at + change.removed, len(change.text) - change.removed
    kept: set[int] = set()
    rewritten: Counter[str] = Counter()
    for at in markers:
        moved = at if at + len(_rest_of_line(before, at)) <= change.at else at + shift if at >= end else None
        if moved is None:
            rewritten[_rest_of_line(before, at)] += 1
        elif _is_marker(after, moved):
            kept.add(moved)
    if rewritten:
        known = frozenset(markers)
        others = Counter(
            _rest_of_line(before, at) for at in _find_marker_lines(before, change.at, end) if at not in known
        )
        for at in _find_marker_lines(after, change.at, end + shift):
            kind = _rest_of_line(after, at)
            if at in kept:
                continue
            if others[kind]:
                others[kind] -= 1
            elif rewritten[kind]:
                rewritten[kind] -= 1
                kept.add(at)
    return tuple(sorted(kept))


def describe_markers(text: str, markers: Sequence[int]) -> str:
    """Return the first few of ``markers`` with their line numbers and texts, as one line."""
    shown = [
        f"{len(_LINE_END.split(text[:at]))}: `{_rest_of_line(text, at)}`" for at in markers[:_MAX_DESCRIBED]
    ]
    return ", ".join([*shown, "…"] if len(markers) > _MAX_DESCRIBED else shown)


def _find_marker_lines(text: str, start: int, end: int) -> Iterator[int]:
    """Yield the positions of lines that look like markers, from the line of ``start`` to the line of
    ``end``."""
    at = max(text.rfind("\n", 0, start), text.rfind("\r", 0, start)) + 1
    while at <= end:
        line = _rest_of_line(text, at)
        if line in _KINDS:
            yield at
        at += len(line) + 1


def _rest_of_line(text: str, at: int) -> str:
    """Return the rest of the line from ``at`` on, without its line end."""
    found = _BREAK.search(text, at)
    return text[at : found.start()] if found else text[at:]


def _is_marker(text: str, at: int) -> bool:
    return (at == 0 or text[at - 1] in "\r\n") and _rest_of_line(text, at) in _KINDS
