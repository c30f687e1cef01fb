"""Edits made by hand, as a journal remembers them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

from watchroom.journal.protocol import Journal
from watchroom.journal.topics import outside_edits_of
from watchroom.model import REVERT, Row, Zone

_PAGE = 20
_END = 2**63
"""No row has this number or a larger one."""
_MOST_REVERTS = 100
"""So many of the newest reverts of a path, made of edits anywhere, are looked through."""


def edits(journal: Journal, zone: Zone, path: str) -> Iterator[Row]:
    """The rows of edits of ``path`` in ``zone`` that made no version, newest first, by ``journal``."""
    until = None
    while rows := journal.topic(outside_edits_of(zone, path), until=until, limit=_PAGE):
        yield from rows
        until = rows[-1].seq - 1


def last_revert(journal: Journal, zone: Zone, path: str, is_own: Callable[[Row], bool]) -> int:
    """The number of the row in ``journal`` by which a person last took an edit of ``path`` in ``zone``
    back, 0 if nobody did. Of edits made elsewhere, those that are not ``is_own``, it is not asked.

    The same edit made again after that is a new one.
    """
    reverts = islice((row for row in journal.settled(zone, path) if row.tool == REVERT), _MOST_REVERTS)
    return next((row.seq for row in reverts if (edit := reverted_edit(journal, row)) and is_own(edit)), 0)


def reverted_edit(journal: Journal, revert: Row) -> Row | None:
    """The row of the edit that the row ``revert`` took back, by ``journal``."""
    number = revert.detail.get("conflict")
    if not isinstance(number, int) or isinstance(number, bool) or not 0 < number < _END:
        return None
    return journal.row(number)
