"""Rows by number, by page and by agent, each with its text."""

from __future__ import annotations

from itertools import islice
from typing import Final, NamedTuple

from watchroom.errors import JournalDamaged
from watchroom.journal import Journal, RowFilter
from watchroom.model import Row, Zone

PAGE: Final = 200
"""So many rows at most, unless asked otherwise."""
MOST_PATHS: Final = 10_000
"""Of so many paths at most the current versions are given."""


class RowText(NamedTuple):
    """A row and the text that it carries, None where it carries none."""

    row: Row
    text: str | None


class RowPage(NamedTuple):
    """Rows, newest first, and ``before``, the number to ask for the next page with; None at the end."""

    rows: tuple[Row, ...]
    before: int | None


def find_row(journal: Journal, number: int) -> RowText | None:
    """Row ``number`` of ``journal`` with its text, None if there is no such row. Raises `JournalError`."""
    row = journal.row(number)
    return None if row is None else RowText(row, find_content(journal, row))


def find_content(journal: Journal, row: Row | int | None) -> str | None:
    """Return the text that ``row``, or the row of that number, carries in ``journal``, accepted or refused.
    Return None if it carries none, if its text is damaged, or if there is no row. Raise `JournalError` if the
    journal cannot be asked."""
    if row is None:
        return None
    try:
        return journal.content(row if isinstance(row, int) else row.seq)
    except JournalDamaged:
        return None


def read_page(
    journal: Journal, before: int | None = None, *, only: RowFilter | None = None, limit: int = PAGE
) -> RowPage:
    """At most ``limit`` rows of ``journal`` older than row ``before`` (None: the newest) that pass ``only``.
    Raises `JournalError`."""
    start = journal.last_seq() + 1 if before is None else before
    rows = tuple(journal.rows_before(start, limit=limit, only=only))
    return RowPage(rows, rows[-1].seq if len(rows) == limit else None)


def read_activity(journal: Journal, agent: str, *, as_of: int, limit: int = PAGE) -> tuple[Row, ...]:
    """What ``agent`` did up to row ``as_of`` of ``journal``, without the steps of its sessions, newest first,
    at most ``limit`` rows. Raises `JournalError`."""
    return read_page(journal, as_of + 1, only=RowFilter(actor=agent, steps=False), limit=limit).rows


def read_heads(journal: Journal, zone: Zone, prefix: str = "", *, as_of: int) -> tuple[Row, ...]:
    """The current version at row ``as_of`` of each path of ``zone`` in ``journal`` that begins with
    ``prefix`` and was not deleted, by path, at most `MOST_PATHS`. Raises `JournalError`."""
    heads = (head for head in journal.heads(zone, prefix, as_of=as_of) if not head.deleted)
    return tuple(islice(heads, MOST_PATHS))


def list_private_files(journal: Journal, agent: str, *, as_of: int) -> tuple[Row, ...]:
    """The private files of ``agent`` in ``journal`` at row ``as_of``, by path. Raises `JournalError`."""
    return read_heads(journal, "private", f"{agent}/", as_of=as_of)


def list_task_files(journal: Journal, task: str, *, as_of: int) -> tuple[Row, ...]:
    """The files of ``task`` in ``journal`` at row ``as_of``, by path. Raises `JournalError`."""
    return read_heads(journal, "file", f"{task}/", as_of=as_of)
