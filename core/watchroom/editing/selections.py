"""Several occurrences of a text, and how they are marked in what a model is shown (EDIT-8). Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import count
from typing import Final

from watchroom.editing.response import TextEditCandidate

MOST_CANDIDATES: Final = 5
_AROUND: Final = 16
"""So many characters are shown on either side of a match."""
_LONGEST_MATCH: Final = 60
_CUT: Final = "..."
_TAGGED: Final = re.compile(r"\[\[/?SEL([0-9]*)#")


@dataclass(frozen=True, slots=True)
class Matches:
    """``starts``: where a needle begins, the first few places only; ``count``: how often it occurs in all.
    Places may overlap: each could have been meant."""

    starts: tuple[int, ...]
    count: int


@dataclass(frozen=True, slots=True)
class Selections:
    """Places that wait for a choice. They are valid for ``version`` of the buffer, and while the needle still
    stands there."""

    version: int
    needle: str
    replacement: str
    starts: tuple[int, ...]
    count: int
    tag: str

    def start_of(self, number: int) -> int | None:
        """Where the selection ``number`` (from 1) begins, None if there is none."""
        return self.starts[number - 1] if 1 <= number <= len(self.starts) else None


def find_matches(text: str, needle: str) -> Matches:
    """All occurrences of ``needle``, which is not empty, in ``text``."""
    starts: list[int] = []
    count = 0
    at = text.find(needle)
    while at >= 0:
        following = text.find(needle, at + 1)
        step, found = following - at, 1
        if 0 < step < len(needle):
            # As long as the text goes on as it did, they follow on each other at this distance. To look for
            # each would take hours where a long text repeats itself.
            found += (step + _common_prefix_length(text, at, following) - len(needle)) // step
            following = text.find(needle, at + (found - 1) * step + 1)
        if count < MOST_CANDIDATES:
            starts += [at + number * step for number in range(min(found, MOST_CANDIDATES))]
        count += found
        at = following
    return Matches(tuple(starts[:MOST_CANDIDATES]), count)


def _common_prefix_length(text: str, first: int, second: int) -> int:
    """How many characters from ``first`` on are those from ``second`` on, which is the later one."""
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
    """The tag of markers in ``text``: SEL, or SEL2, SEL3, … if the text contains such markers already, so
    that nothing in the text can be taken for a marker."""
    used = {found[1] for found in _TAGGED.finditer(text)}
    if "" not in used:
        return "SEL"
    return next(f"SEL{number}" for number in count(2) if str(number) not in used)


def marker_pair(tag: str, number: int) -> tuple[str, str]:
    """The markers before and after selection ``number``, with ``tag``."""
    return f"[[{tag}#{number}]]", f"[[/{tag}#{number}]]"


def list_candidates(text: str, selections: Selections) -> tuple[TextEditCandidate, ...]:
    """The ``selections`` in ``text`` as candidates for a model to choose from."""
    length = len(selections.needle)
    found = []
    for occurrence, start in enumerate(selections.starts):
        before = max(0, start - _AROUND)
        after = min(len(text), start + min(length, _LONGEST_MATCH) + _AROUND)
        opening, closing = marker_pair(selections.tag, occurrence + 1)
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
    """The part of ``text`` from ``start`` to ``end`` with the markers of ``selections`` that fall into it."""
    end = len(text) if end is None else end
    length = len(selections.needle)
    insertions: list[tuple[int, int, str]] = []
    for number, begins in enumerate(selections.starts, 1):
        opening, closing = marker_pair(selections.tag, number)
        # Where one match ends and the next begins, the first is closed before the next is opened.
        insertions += [(begins, 1, opening), (begins + length, 0, closing)]
    pieces: list[str] = []
    at = start
    for place, _, mark in sorted(insertions):
        if start <= place <= end:
            pieces += [text[at:place], mark]
            at = place
    return "".join([*pieces, text[at:end]])


def is_valid_for(text: str, version: int, selections: Selections) -> bool:
    """Whether ``selections`` are still those of ``text``, which has ``version``."""
    needle = selections.needle
    return version == selections.version and all(text.startswith(needle, at) for at in selections.starts)


def _preview(text: str, start: int, end: int) -> str:
    """One line of a table: what would break it is written out."""
    shown = text[start:end].replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    shown = "".join(each if each.isprintable() else f"\\u{ord(each):04x}" for each in shown)
    return f"{_CUT if start else ''}{shown}{_CUT if end < len(text) else ''}"
