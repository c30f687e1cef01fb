"""Occurrences of a text to choose from, and their markers in the text for a model (EDIT-8)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import count
from typing import Final

from watchroom.algorithms.editing.response import TextEditCandidate

MAX_CANDIDATES: Final = 5
_CONTEXT: Final = 16
"""Characters on each side of a match in a preview."""
_MAX_MATCH: Final = 60
"""Maximum characters of a match in a preview."""
_CUT: Final = "..."
_TAGGED: Final = re.compile(r"\[\[/?SEL([0-9]*)#")


@dataclass(frozen=True, slots=True)
class Matches:
    """The occurrences of a needle. They may overlap, because each may be the intended one.

    - ``starts``: positions of the first `MAX_CANDIDATES` occurrences.
    - ``count``: the number of all occurrences.
    """

    starts: tuple[int, ...]
    count: int


@dataclass(frozen=True, slots=True)
class Selections:
    """The occurrences to choose from.

    They are valid for ``version`` of the buffer, and for other texts in which the needle is still at all
    ``starts``.
    """

    version: int
    needle: str
    replacement: str
    starts: tuple[int, ...]
    count: int
    tag: str

    def start_of(self, number: int) -> int | None:
        """Return the position of the selection ``number`` (from 1); None if it does not exist."""
        return self.starts[number - 1] if 1 <= number <= len(self.starts) else None


def find_matches(text: str, needle: str) -> Matches:
    """Return the occurrences of ``needle``, which must not be empty, in ``text``."""
    starts: list[int] = []
    count = 0
    at = text.find(needle)
    while at >= 0:
        following = text.find(needle, at + 1)
        step, found = following - at, 1
        if 0 < step < len(needle):
            # In periodic text, occurrences follow each other at this distance. Searching for each would take
            # hours in a long periodic text.
            found += (step + _common_prefix_length(text, at, following) - len(needle)) // step
            following = text.find(needle, at + (found - 1) * step + 1)
        if count < MAX_CANDIDATES:
            starts += [at + number * step for number in range(min(found, MAX_CANDIDATES))]
        count += found
        at = following
    return Matches(tuple(starts[:MAX_CANDIDATES]), count)


def _common_prefix_length(text: str, first: int, second: int) -> int:
    """Return the number of characters from ``first`` on that equal the characters from ``second`` on.
    ``second`` is larger."""
    length, step = 0, 1
    while second + length < len(text):
        if text[first + length : first + length + step] == text[second + length : second + length + step]:
            length += step
            step *= 2
        elif step > 1:
            step //= 2
        else:
            return length
    return len(text) - second


def choose_tag(text: str) -> str:
    """Return a tag for markers that ``text`` does not contain: SEL, SEL2, SEL3, …"""
    used = {found[1] for found in _TAGGED.finditer(text)}
    if "" not in used:
        return "SEL"
    return next(f"SEL{number}" for number in count(2) if str(number) not in used)


def build_markers(tag: str, number: int) -> tuple[str, str]:
    """Return the markers before and after the selection ``number``."""
    return f"[[{tag}#{number}]]", f"[[/{tag}#{number}]]"


def list_candidates(text: str, selections: Selections) -> tuple[TextEditCandidate, ...]:
    """Return ``selections`` of ``text`` as candidates for a model."""
    length = len(selections.needle)
    found = []
    for occurrence, start in enumerate(selections.starts):
        before = max(0, start - _CONTEXT)
        after = min(len(text), start + min(length, _MAX_MATCH) + _CONTEXT)
        opening, closing = build_markers(selections.tag, occurrence + 1)
        found.append(
            TextEditCandidate(
                id=occurrence + 1,
                preview=_preview(text, before, after),
                marker_start=opening,
                marker_end=closing,
                occurrence=occurrence,
                context_start=before,
                context_end=after,
            )
        )
    return tuple(found)


def insert_markers(text: str, selections: Selections, start: int = 0, end: int | None = None) -> str:
    """Return ``text`` from ``start`` up to ``end`` with the markers of ``selections`` in this range."""
    end = len(text) if end is None else end
    length = len(selections.needle)
    insertions: list[tuple[int, int, str]] = []
    for number, begins in enumerate(selections.starts, 1):
        opening, closing = build_markers(selections.tag, number)
        # At the same position, the closing marker of a match comes before the opening marker of the next.
        insertions += [(begins, 1, opening), (begins + length, 0, closing)]
    pieces: list[str] = []
    at = start
    for place, _, mark in sorted(insertions):
        if start <= place <= end:
            pieces += [text[at:place], mark]
            at = place
    return "".join([*pieces, text[at:end]])


def is_valid_for(text: str, version: int, selections: Selections) -> bool:
    """Return whether ``selections`` are valid for ``text``, the text of ``version``."""
    needle = selections.needle
    return version == selections.version and all(text.startswith(needle, at) for at in selections.starts)


def _preview(text: str, start: int, end: int) -> str:
    """Return a range of ``text`` as one line, with control characters escaped."""
    shown = text[start:end].replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    shown = "".join(each if each.isprintable() else f"\\u{ord(each):04x}" for each in shown)
    return f"{_CUT if start else ''}{shown}{_CUT if end < len(text) else ''}"
