"""Excerpts of the journal's own texts, with the places that match.

SQLite's tokenizer finds the places, as it made the index: no second notion of a word can disagree with it.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from typing import Final, NamedTuple

from watchroom.search.added_lines import Passage
from watchroom.search.query import SEPARATOR, separate

_LENGTH: Final = 160
"""Characters of an excerpt."""
_BEFORE: Final = 40
"""Of these before the first match, where its line is longer."""
_PIECE: Final = 64_000
_OVERLAP: Final = 1000
_MOST_CHARACTERS: Final = 8_000_000
"""Of the texts of all hits together: of what comes after that the beginning is shown."""
_START: Final = "\x02"
_END: Final = "\x03"
_MARKS: Final = re.compile(f"([{_START}{_END}])")


class Excerpt(NamedTuple):
    """A ``text``, the places in it that match, and the line of the row's text in which the first one is, 0
    where it has no lines."""

    text: str
    matches: tuple[tuple[int, int], ...] = ()
    line: int = 0


class _Piece(NamedTuple):
    hit: int
    passage: Passage
    start: int
    """Where it begins in the passage."""


def make_excerpts(expression: str, hits: Sequence[Sequence[Passage]]) -> list[Excerpt]:
    """An excerpt of the passages of each of ``hits``, around the place where most of ``expression`` (of FTS5)
    matches; their beginning where nothing does."""
    best: dict[int, tuple[int, Excerpt]] = {}
    pieces = [*_pieces(hits)]
    for piece, marks in _find_marks(expression, pieces):
        score, first = _densest(piece.passage.text, marks)
        if score > best.get(piece.hit, (0, None))[0]:
            best[piece.hit] = score, _around(piece.passage, marks, first)
    return [
        best[number][1] if number in best else Excerpt(passages[0].text[:_LENGTH] if passages else "")
        for number, passages in enumerate(hits)
    ]


def _pieces(hits: Iterable[Sequence[Passage]]) -> Iterator[_Piece]:
    left = _MOST_CHARACTERS
    for number, passages in enumerate(hits):
        for passage in passages:
            for start in range(0, max(1, len(passage.text) - _OVERLAP), _PIECE - _OVERLAP):
                if left <= 0:
                    return
                left -= min(_PIECE, len(passage.text) - start)
                yield _Piece(number, passage, start)


def _find_marks(expression: str, pieces: Sequence[_Piece]) -> Iterator[tuple[_Piece, list[tuple[int, int]]]]:
    """Each piece that matches, with the places in its passage."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(
            "CREATE VIRTUAL TABLE pieces USING fts5(body, tokenize='unicode61 remove_diacritics 2')"
        )
        connection.executemany(
            "INSERT INTO pieces(rowid, body) VALUES(?,?)",
            (
                (number, separate(piece.passage.text[piece.start : piece.start + _PIECE]))
                for number, piece in enumerate(pieces)
            ),
        )
        sql = f"SELECT rowid, highlight(pieces, 0, '{_START}', '{_END}') FROM pieces WHERE pieces MATCH ?"
        for number, text in connection.execute(f"{sql} ORDER BY rowid", (expression,)):
            yield pieces[number], [*_marks_in(text, pieces[number].start)]


def _marks_in(text: str, at: int) -> Iterator[tuple[int, int]]:
    """The places that are marked in ``text``, which begins at ``at``, without marks and separators."""
    begun = at
    for part in _MARKS.split(text.replace(SEPARATOR, "")):
        if part == _START:
            begun = at
        elif part == _END:
            yield begun, at
        else:
            at += len(part)


def _densest(text: str, marks: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """How many different words are matched in one excerpt at most, and by which mark it begins."""
    words = [text[start:end].casefold() for start, end in marks]
    best, first, end = (0, 0), 0, 0
    counts: dict[str, int] = {}
    for first in range(len(marks)):
        while end < len(marks) and marks[end][1] <= marks[first][0] + _LENGTH - _BEFORE:
            counts[words[end]] = counts.get(words[end], 0) + 1
            end += 1
        if end <= first:  # one that is longer than an excerpt
            end = first + 1
            counts[words[first]] = 1
        best = max(best, (len(counts), -first))
        counts[words[first]] -= 1
        if not counts[words[first]]:
            del counts[words[first]]
    return best[0], -best[1]


def _around(passage: Passage, marks: Sequence[tuple[int, int]], first: int) -> Excerpt:
    """The excerpt of ``passage`` that begins with the mark number ``first``, or with the line of it."""
    at = marks[first][0]
    start = passage.text.rfind("\n", 0, at) + 1
    if at - start > _BEFORE:
        start = at - _BEFORE
    text = passage.text[start : start + _LENGTH]
    shown = [(max(0, a - start), min(len(text), b - start)) for a, b in marks]
    line = passage.line + passage.text.count("\n", 0, at) if passage.line else 0
    return Excerpt(text, tuple((a, b) for a, b in shown if a < b), line)
