"""Case-insensitive search in a text of any length, in slices. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_SLICE: Final = 1 << 19


class Finder:
    """Finder of ``words`` in a text. Matches do not overlap."""

    def __init__(self, words: str) -> None:
        self.pattern: Final = re.compile(re.escape(words), re.IGNORECASE)
        """Pattern of the words in a drawn line."""
        letters = [_variants(letter) for letter in words]
        self._longest = sum(max(map(len, each)) for each in letters)
        self._needle = b"".join(each[0] for each in letters)
        self._hard = (
            None
            if all(len(each) == 1 for each in letters)
            else re.compile(b"".join(b"(?:%b)" % b"|".join(map(re.escape, each)) for each in letters))
        )

    def matches(self, data: bytes, start: int = 0) -> Iterator[list[int]]:
        """Yield the offsets of the matches from ``start`` on, one list per slice."""
        while start < len(data):
            end = min(len(data), start + _SLICE)
            found, after = self._matches_between(data, start, end)
            yield found
            start = max(end, after)

    def _matches_between(self, data: bytes, start: int, end: int) -> tuple[list[int], int]:
        """Return the offsets of the matches that begin in a slice, and the end of the last match."""
        text = data[start : end + self._longest - 1]
        after = 0
        found: list[int] = []
        if self._hard is not None:
            for match in self._hard.finditer(text.lower()):
                if match.start() < end - start:
                    found.append(start + match.start())
                    after = match.end()
            return found, start + after
        text = text.lower()
        while 0 <= (place := text.find(self._needle, after)) < end - start:
            found.append(start + place)
            after = place + len(self._needle)
        return found, start + after

    def next(self, data: bytes, start: int) -> int:
        """Return the offset of the first match at or after ``start``, -1 if there are no more matches."""
        return next((found[0] for found in self.matches(data, start) if found), -1)

    def last(self, data: bytes, before: int) -> int:
        """Return the offset of the last match before ``before``, -1 if there are no earlier matches."""
        end = before
        while end > 0:
            start = max(0, end - _SLICE)
            found, _ = self._matches_between(data, start, end)
            if found:
                return found[-1]
            end = start
        return -1


def _variants(letter: str) -> list[bytes]:
    """Return the UTF-8 encodings of the case variants of a letter. The searched text has lower-case ASCII
    letters."""
    small = letter.lower()
    if letter.isascii():
        return [small.encode()]
    return [each.encode("utf-8", "ignore") for each in dict.fromkeys((small, letter.upper(), letter))]
