"""Rows for front ends: by number, by page, by agent, and the current versions of a zone."""

from __future__ import annotations

from itertools import islice
from typing import Final, NamedTuple

from watchroom.errors import JournalDamaged
from watchroom.kernel.journal import Journal, RowFilter
from watchroom.model import Row, Zone

PAGE: Final = 200
"""The default number of rows in a page."""
MAX_PATHS: Final = 10_000
"""Maximum number of paths that `read_heads` returns."""


class RowText(NamedTuple):
    """A row and its text, None if it has none."""

    row: Row
    text: str | None


class RowPage(NamedTuple):
    """Rows, newest first. ``before``: the argument for the next page, None at the end."""

    rows: tuple[Row, ...]
    before: int | None


def find_row(journal: Journal, number: int) -> RowText | None:
    """Return the row ``number`` with its text, None if there is no such row. Raise `JournalError`."""
    row = journal.row(number)
    return None if row is None else RowText(row, find_content(journal, row))


def find_content(journal: Journal, row: Row | int | None) -> str | None:
    """Return the accepted or refused text of ``row``, a row or its number.

    Return None if the row does not exist, or if its text is missing or damaged. Raise `JournalError` if the
    journal cannot be read.
    """
    if row is None:
        return None
    try:
        return journal.content(row if isinstance(row, int) else row.seq)
    except JournalDamaged:
        return None


def read_page(
    journal: Journal, before: int | None = None, *, only: RowFilter | None = None, limit: int = PAGE
) -> RowPage:
    """Return the newest rows before row ``before`` (default: all rows). Raise `JournalError`.

    - ``only``: a filter, default none.
    - ``limit``: the maximum number of rows, default 200.
    """
    start = journal.last_seq() + 1 if before is None else before
    rows = tuple(journal.rows_before(start, limit=limit, only=only))
    return RowPage(rows, rows[-1].seq if len(rows) == limit else None)


def read_activity(journal: Journal, agent: str, *, as_of: int, limit: int = PAGE) -> tuple[Row, ...]:
    """Return the newest ``limit`` rows of ``agent`` up to row ``as_of``, newest first, without the steps of
    its sessions. Raise `JournalError`."""
    return read_page(journal, as_of + 1, only=RowFilter(actor=agent, steps=False), limit=limit).rows


def read_heads(journal: Journal, zone: Zone, prefix: str = "", *, as_of: int) -> tuple[Row, ...]:
    """Return the versions of ``zone`` that were current at row ``as_of``, sorted by path, at most
    `MAX_PATHS`.

    Deleted paths, and paths that do not begin with ``prefix``, are left out. Raise `JournalError`.
    """
    heads = (head for head in journal.heads(zone, prefix, as_of=as_of) if not head.deleted)
    return tuple(islice(heads, MAX_PATHS))
