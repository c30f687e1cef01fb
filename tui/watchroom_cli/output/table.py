"""A table as lines of text, with a header."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from rich.cells import cell_len
from watchroom.model import Json
from watchroom.texts import Catalogue
from watchroom_tui.presentation.sanitize import sanitize

MAX_ALIGNED_CELLS: Final = 40
"""Max width of a column, in cells. Longer values are printed in full, and shift the rest of the line."""


def format_table(table: Sequence[Mapping[str, Json]], texts: Catalogue) -> list[str]:
    """Return the lines of ``table``: a header, then the entries, with numbers aligned right. All entries have
    the same keys. An empty table has no lines. Safe to print."""
    if not table:
        return []
    head = [texts(f"show.column.{key}") for key in table[0]]
    cells = [[_cell(value, texts) for value in entry.values()] for entry in table]
    numeric = [
        all(isinstance(entry[key], int) and not isinstance(entry[key], bool) for entry in table)
        for key in table[0]
    ]
    widths = [min(MAX_ALIGNED_CELLS, max(map(cell_len, column))) for column in zip(head, *cells, strict=True)]
    return [_line(each, widths, numeric) for each in (head, *cells)]


def _cell(value: Json, texts: Catalogue) -> str:
    if isinstance(value, bool):
        return texts("show.yes" if value else "show.no")
    return sanitize("" if value is None else str(value)) or "-"


def _line(cells: Sequence[str], widths: Sequence[int], numeric: Sequence[bool]) -> str:
    padded = [
        " " * (width - cell_len(cell)) + cell if is_number else cell + " " * (width - cell_len(cell))
        for cell, width, is_number in zip(cells, widths, numeric, strict=True)
    ]
    return "  ".join(padded).rstrip()
