"""Styled text: a `Line` is a sequence of `Span`s with sanitized text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from rich.cells import cell_len

from watchroom_tui.formatters.columns import Column, fit, fit_path, wrap


class Span(NamedTuple):
    """A piece of a line. ``style``: names of component classes without their prefix, separated by spaces.
    Later names take precedence. An empty style is plain."""

    text: str
    style: str = ""


Line: TypeAlias = Sequence[Span]


def sentence(text: str, style: str = "") -> Line:
    """Return ``text`` as a cell that is cut at its end, even in a column that cuts in the middle. Only the
    last span of a cell is cut in the middle, so an empty span follows the text."""
    return [Span(text, style), Span("")]


def wrapped(line: Line, width: int) -> list[Line]:
    """Wrap ``line`` into lines of at most ``width`` cells. Lines after the first are indented to the second
    span."""
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
    """Return the number of cells of the line."""
    return sum(len(span.text) if span.text.isascii() else cell_len(span.text) for span in line)


def cut(line: Line, start: int, end: int) -> Line:
    """Return the characters of the line from ``start`` up to ``end``."""
    found: list[Span] = []
    at = 0
    for text, style in line:
        piece = text[max(0, start - at) : max(0, end - at)]
        if piece:
            found.append(Span(piece, style))
        at += len(text)
    return found


def fit_line(line: Line, width: int) -> Line:
    """Return the line in at most ``width`` cells."""
    spans: list[Span] = []
    for span in line:
        used = width_of([span])
        if used > width:
            return [*spans, Span(fit(span.text, max(0, width)), span.style)]
        spans.append(span)
        width -= used
    return spans


def mark(line: Line, pattern: re.Pattern[str], style: str) -> Line:
    """Return the line with ``style`` added to all matches of ``pattern``."""
    found = [match.span() for match in pattern.finditer("".join(span.text for span in line))]
    if not found:
        return line
    spans: list[Span] = []
    at = 0
    for piece, before in line:
        inside = {edge - at for each in found for edge in each if at < edge < at + len(piece)}
        for start, end in pairwise(sorted({0, len(piece)} | inside)):
            is_match = any(first <= at + start < last for first, last in found)
            spans.append(Span(piece[start:end], f"{before} {style}".strip() if is_match else before))
        at += len(piece)
    return spans


def align_cells(columns: Sequence[Column], cells: Sequence[Line], widths: Sequence[int]) -> Line:
    """Return the cells of an item as one line, each in its column. ``widths``: see `share_width`."""
    spans: list[Span] = []
    for column, cell, width in zip(columns, cells, widths, strict=True):
        if width > 0:
            spans += [Span(" ")] * bool(spans) + _fitted(column, cell, width)
    return spans


def wrap_cells(
    columns: Sequence[Column], cells: Sequence[Line], widths: Sequence[int], most: int
) -> Sequence[Line]:
    """Return the cells of an item as at most ``most`` lines. Wrap the column that ``grows`` if it is too
    narrow. Paths that would be cut in their middle stay on one line."""
    at = next((at for at, column in enumerate(columns) if column.grows), None)
    if at is None or not 1 < widths[at] < width_of(cells[at]) or _is_path(columns[at], cells[at]):
        return [align_cells(columns, cells, widths)]
    first, *rest_of_parts = wrapped([Span(""), *cells[at]], widths[at])
    parts = [first, *map(_without_first_blank, rest_of_parts)]
    if len(parts) > most:
        rest = [span for part in parts[most - 1 :] for span in part if span.text]
        last = Span(fit("".join(span.text for span in rest), widths[at]), rest[0].style)
        parts = [*parts[: most - 1], [last]]
    blank: Sequence[Line] = [()] * len(columns)
    lines = []
    for part, others in zip(parts, [cells, *[blank] * (len(parts) - 1)], strict=True):
        # Each part fits, so nothing is cut in its middle.
        row = [*others[:at], [*part, Span("")], *others[at + 1 :]]
        lines.append(align_cells(columns, row, widths))
    return lines


def _without_first_blank(part: Line) -> Line:
    """Return ``part``, a line that follows another, without the blank between the two."""
    at = next((at for at, span in enumerate(part) if span.text), None)
    if at is None or not part[at].text.startswith(" "):
        return part
    return [*part[:at], part[at]._replace(text=part[at].text[1:]), *part[at + 1 :]]


def _is_path(column: Column, cell: Line) -> bool:
    """Return whether the cell is one word in a column that cuts texts in their middle."""
    return column.cut == "middle" and " " not in "".join(span.text for span in cell).strip()


def _fitted(column: Column, cell: Line, width: int) -> list[Span]:
    """Return the cell in exactly ``width`` cells. The last span is padded or cut."""
    if not cell:
        return [Span(" " * width)]
    *first, last = cell
    used = width_of(first)
    if used == width and not last.text:
        return first
    if used >= width:
        return list(fit_line(cell, width))
    if column.align == "right":
        blank = max(0, width - used - width_of([last]))
        return [Span(" " * blank), *first, Span(fit(last.text, width - used - blank), last.style)]
    text = fit_path(last.text, width - used) if column.cut == "middle" else fit(last.text, width - used)
    return [*first, Span(text, last.style)]
