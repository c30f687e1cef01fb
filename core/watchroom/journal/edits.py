"""Edits made by hand, as a journal remembers them."""

from __future__ import annotations

from collections.abc import Iterator

from watchroom.journal.protocol import Journal
from watchroom.model import OUTSIDE, REVERT, Row, Zone

_PAGE = 20


def edits(journal: Journal, zone: Zone, path: str) -> Iterator[Row]:
    """The rows of edits of the path that made no version, newest first."""
    before = None
    while rows := journal.refused(zone, path, before=before, limit=_PAGE):
        yield from (row for row in rows if row.actor == OUTSIDE)
        before = rows[-1].seq


def last_revert(journal: Journal, zone: Zone, path: str) -> int:
    """The number of the row by which a person last took an edit of the path back, 0 if nobody did.

    The same edit made again after that is a new one.
    """
    return next((row.seq for row in journal.settled(zone, path) if row.tool == REVERT), 0)
