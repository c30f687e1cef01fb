"""Edits made by hand, as a journal remembers them."""

from __future__ import annotations

from collections.abc import Iterator

from watchroom.journal.protocol import Journal
from watchroom.journal.topics import outside_edits_of
from watchroom.model import REVERT, Row, Zone

_PAGE = 20


def edits(journal: Journal, zone: Zone, path: str) -> Iterator[Row]:
    """The rows of edits of ``path`` in ``zone`` that made no version, newest first, by ``journal``."""
    until = None
    while rows := journal.topic(outside_edits_of(zone, path), until=until, limit=_PAGE):
        yield from rows
        until = rows[-1].seq - 1


def last_revert(journal: Journal, zone: Zone, path: str) -> int:
    """The number of the row in ``journal`` by which a person last took an edit of ``path`` in ``zone``
    back, 0 if nobody did.

    The same edit made again after that is a new one.
    """
    return next((row.seq for row in journal.settled(zone, path) if row.tool == REVERT), 0)
