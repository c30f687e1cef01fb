"""Which part of a text became which: what somebody replaces who changes one text into another. Pure."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_WORD: Final = re.compile(r"\w+|\W")


class Passage(NamedTuple):
    """``old`` stands ``at`` so many characters from the start, and is to become ``new``. Never empty where
    the text is not."""

    at: int
    old: str
    new: str

    def occurrence(self, text: str) -> int:
        """How often the old part begins before this place, counted as overlapping: 0 for the first."""
        count, found = 0, text.find(self.old)
        while 0 <= found < self.at:
            count += 1
            found = text.find(self.old, found + 1)
        return count


def lines_changed(before: str, after: str) -> Passage | None:
    """The lines that changed, from the first to the last; None where nothing did. What was only put in comes
    with the line before it."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    if old == new:
        return None
    start, ends = _same(old, new)
    if start == len(old) - ends and old:
        start, ends = (start - 1, ends) if start else (start, ends - 1)
    at = sum(map(len, old[:start]))
    return Passage(at, "".join(old[start : len(old) - ends]), "".join(new[start : len(new) - ends]))


def words_changed(passage: Passage) -> Passage:
    """The words of a passage that changed, from the first to the last; the passage where that would leave
    nothing to look for."""
    old, new = _WORD.findall(passage.old), _WORD.findall(passage.new)
    start, ends = _same(old, new)
    changed = "".join(old[start : len(old) - ends])
    if not changed.strip():
        return passage
    at = passage.at + sum(map(len, old[:start]))
    return Passage(at, changed, "".join(new[start : len(new) - ends]))


def _same(old: list[str], new: list[str]) -> tuple[int, int]:
    """How many parts are the same at the start, and how many at the end."""
    most = min(len(old), len(new))
    start = next((n for n in range(most) if old[n] != new[n]), most)
    left = most - start
    ends = next((n for n in range(left) if old[-1 - n] != new[-1 - n]), left)
    return start, ends
