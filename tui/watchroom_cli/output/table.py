"""A table as lines of text, with a head."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from rich.cells import cell_len
from watchroom.model import Json
from watchroom.texts import Catalogue
from watchroom_tui.presentation.sanitize import sanitize

WIDEST: Final = 40
"""Columns are lined up to so many cells; a longer value is printed whole, and moves what follows it."""


def format_table(table: Sequence[Mapping[str, Json]], texts: Catalogue) -> list[str]:
    """The lines of ``table``, of which each entry has the same keys: first the columns' names, then its
    entries, numbers at the right of their column. Nothing for a table without entries. Safe to print."""
    if not table:
        return []
    head = [texts(f"show.column.{key}") for key in table[0]]
    cells = [[_cell(value, texts) for value in entry.values()] for entry in table]
    numeric = [
        all(isinstance(entry[key], int) and not isinstance(entry[key], bool) for entry in table)
        for key in table[0]
    ]
    widths = [min(WIDEST, max(map(cell_len, column))) for column in zip(head, *cells, strict=True)]
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
