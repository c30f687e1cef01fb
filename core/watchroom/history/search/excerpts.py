"""Excerpts of the journal's texts, with the matching places.

SQLite's tokenizer finds the places, as for the index, so both split words in the same way.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from typing import Final, NamedTuple

from watchroom.history.search.passages import Passage
from watchroom.history.search.query import SEPARATOR, separate

_LENGTH: Final = 160
"""Maximum characters of an excerpt."""
_BEFORE: Final = 40
"""Maximum characters before the first match, if its line is longer."""
_PIECE: Final = 64_000
_OVERLAP: Final = 1000
_MAX_CHARACTERS: Final = 8_000_000
"""Maximum characters of all hits that are searched for matches. Later hits show their beginning."""
_START: Final = "\x02"
_END: Final = "\x03"
_MARKS: Final = re.compile(f"([{_START}{_END}])")


class Excerpt(NamedTuple):
    """A ``text``, the matching places in it (start and end), and the line of the first match in the row's
    text. The line is 0 if the text has no lines."""

    text: str
    matches: tuple[tuple[int, int], ...] = ()
    line: int = 0


class _Piece(NamedTuple):
    hit: int
    passage: Passage
    start: int
    """The offset of the piece in its passage."""


def make_excerpts(expression: str, hits: Sequence[Sequence[Passage]]) -> list[Excerpt]:
    """Return an excerpt of each of ``hits``, which are lists of passages.

    The excerpt surrounds the place where most words of ``expression`` (an FTS5 expression) match. If there is
    no match, it is the beginning.
    """
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
    left = _MAX_CHARACTERS
    for number, passages in enumerate(hits):
        for passage in passages:
            for start in range(0, max(1, len(passage.text) - _OVERLAP), _PIECE - _OVERLAP):
                if left <= 0:
                    return
                left -= min(_PIECE, len(passage.text) - start)
                yield _Piece(number, passage, start)


def _find_marks(expression: str, pieces: Sequence[_Piece]) -> Iterator[tuple[_Piece, list[tuple[int, int]]]]:
    """Yield each matching piece, with the matching places in its passage."""
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
    """Yield the marked places in ``text``, which begins at offset ``at``. Marks and separators are not
    counted."""
    begun = at
    for part in _MARKS.split(text.replace(SEPARATOR, "")):
        if part == _START:
            begun = at
        elif part == _END:
            yield begun, at
        else:
            at += len(part)


def _densest(text: str, marks: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Return the largest number of different words in one excerpt, and the first mark of that excerpt."""
    words = [text[start:end].casefold() for start, end in marks]
    best, first, end = (0, 0), 0, 0
    counts: dict[str, int] = {}
    for first in range(len(marks)):
        while end < len(marks) and marks[end][1] <= marks[first][0] + _LENGTH - _BEFORE:
            counts[words[end]] = counts.get(words[end], 0) + 1
            end += 1
        if end <= first:  # the match is longer than an excerpt
            end = first + 1
            counts[words[first]] = 1
        best = max(best, (len(counts), -first))
        counts[words[first]] -= 1
        if not counts[words[first]]:
            del counts[words[first]]
    return best[0], -best[1]


def _around(passage: Passage, marks: Sequence[tuple[int, int]], first: int) -> Excerpt:
    """Return the excerpt of ``passage`` that begins with the mark ``first``, or with its line."""
    at = marks[first][0]
    start = passage.text.rfind("\n", 0, at) + 1
    if at - start > _BEFORE:
        start = at - _BEFORE
    text = passage.text[start : start + _LENGTH]
    shown = [(max(0, a - start), min(len(text), b - start)) for a, b in marks]
    line = passage.line + passage.text.count("\n", 0, at) if passage.line else 0
    return Excerpt(text, tuple((a, b) for a, b in shown if a < b), line)
