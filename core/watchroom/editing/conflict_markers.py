"""The conflict markers that a merge wrote, followed through each change of the text. Pure.

A line's text does not tell whether a merge wrote it: ``=======`` underlines headings, too. So markers are
identified by their position."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from watchroom.editing.buffer import TextChange
from watchroom.merge import CLOSING, DIVIDING, OPENING

ConflictMarkers: TypeAlias = tuple[int, ...]
"""Where in a text the lines begin, in code points, in order."""

_KINDS: Final = frozenset({OPENING, DIVIDING, CLOSING})
_SHOWN: Final = 5
_BREAK: Final = re.compile(r"[\r\n]")
_LINE_END: Final = re.compile(r"\r\n?|\n")


def move_markers(markers: Sequence[int], before: str, change: TextChange) -> ConflictMarkers:
    """The positions after ``change`` of ``markers``, those in the text ``before``, without those that are
    gone.

    Of marker lines that the change wrote anew, as many are still markers as it took out, less those that
    stood there before and were none."""
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
    """The first few of ``markers`` in ``text``, each with its line number, in one line."""
    shown = [f"{len(_LINE_END.split(text[:at]))}: `{_rest_of_line(text, at)}`" for at in markers[:_SHOWN]]
    return ", ".join([*shown, "…"] if len(markers) > _SHOWN else shown)


def _find_marker_lines(text: str, start: int, end: int) -> Iterator[int]:
    """Where the lines from that of ``start`` to that of ``end`` begin which look like markers."""
    at = max(text.rfind("\n", 0, start), text.rfind("\r", 0, start)) + 1
    while at <= end:
        line = _rest_of_line(text, at)
        if line in _KINDS:
            yield at
        at += len(line) + 1


def _rest_of_line(text: str, at: int) -> str:
    """The rest of the line from ``at`` on, without its end."""
    found = _BREAK.search(text, at)
    return text[at : found.start()] if found else text[at:]


def _is_marker(text: str, at: int) -> bool:
    return (at == 0 or text[at - 1] in "\r\n") and _rest_of_line(text, at) in _KINDS
