"""Styled text: a `Line` is a sequence of `Span`s, whose text is sanitized already."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from rich.cells import cell_len

from watchroom_tui.columns import wrap


class Span(NamedTuple):
    """A piece of a line. ``style`` names a component class without its prefix, or several with blanks between
    them, the last above the others; empty: plain."""

    text: str
    style: str = ""


Line: TypeAlias = Sequence[Span]


def wrapped(line: Line, width: int) -> list[Line]:
    """``line`` in lines of at most ``width`` cells; all but the first begin below the second span."""
    if len(line) < 2 or sum(cell_len(span.text) for span in line) <= width:
        return [line]
    indent = Span(" " * cell_len(line[0].text))
    lines: list[list[Span]] = [[line[0]]]
    used = start = cell_len(indent.text)
    for span in line[1:]:
        for number, piece in enumerate(wrap(span.text, width - start, first=width - used)):
            if number:
                lines.append([indent])
                used = start
            lines[-1].append(Span(piece, span.style))
            used += cell_len(piece)
    return list(lines)


def width_of(line: Line) -> int:
    """How many cells the line takes."""
    return sum(len(span.text) if span.text.isascii() else cell_len(span.text) for span in line)


def cut(line: Line, start: int, end: int) -> Line:
    """The characters of the line from ``start`` up to ``end``."""
    found: list[Span] = []
    at = 0
    for text, style in line:
        piece = text[max(0, start - at) : max(0, end - at)]
        if piece:
            found.append(Span(piece, style))
        at += len(text)
    return found
