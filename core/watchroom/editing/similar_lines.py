"""The lines that are most similar to a text that was not found. Pure."""

from __future__ import annotations

from typing import Final, NamedTuple

MOST: Final = 3
_LEAST: Final = 60.0
"""Percent of likeness below which a line is no help."""
_LONGEST: Final = 200


class SimilarLine(NamedTuple):
    """A line with its ``number`` (from 1) and its ``likeness`` in percent."""

    number: int
    text: str
    likeness: float


def find_similar_lines(text: str, needle: str) -> tuple[SimilarLine, ...]:
    """The lines of ``text`` that are most similar to the longest line of ``needle``, best first."""
    # Loaded where something was not found, and not before.
    from rapidfuzz import fuzz, process

    wanted = max((line.strip() for line in needle.split("\n")), key=len)[:_LONGEST]
    if not wanted:
        return ()
    lines = [line[:_LONGEST] for line in text.split("\n")]
    found = process.extract(
        wanted, lines, scorer=fuzz.ratio, processor=str.strip, limit=MOST, score_cutoff=_LEAST
    )
    return tuple(SimilarLine(index + 1, line.rstrip("\r"), likeness) for line, likeness, index in found)


def matches_except_line_ends(text: str, needle: str) -> bool:
    """Whether ``needle`` would occur in ``text`` if its line ends were the same."""
    plain = needle.replace("\r\n", "\n")
    return (plain != needle and plain in text) or (plain.replace("\n", "\r\n") in text and "\n" in plain)
