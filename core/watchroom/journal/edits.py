"""Edits made by hand, as a journal remembers them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice

from watchroom.journal.protocol import Journal
from watchroom.journal.topics import outside_edits_of
from watchroom.model import OUTSIDE, REVERT, ZONES, Row, Zone
from watchroom.rules.conflicts import ConflictTracker
from watchroom.rules.decisions import as_undecided

_PAGE = 20
_REFUSED_PAGE = 100
_MOST_SETTLED = 10_000
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


def last_revert(
    journal: Journal,
    zone: Zone,
    path: str,
    is_own: Callable[[Row], bool],
    counts: Callable[[Row], bool],
) -> int:
    """Return the number of the newest row by which a person reverted an edit of ``path`` in ``zone``, 0 if
    there is none. The same edit made again after that row is a new edit. Raise `JournalError`.

    - ``is_own``: whether the row of an edit is of this checkout. Reverts of other edits are skipped.
    - ``counts``: whether a person's decision counts. Reverts that do not count are skipped.
    """
    reverts = islice((row for row in journal.settled(zone, path) if row.tool == REVERT), _MOST_REVERTS)
    return next(
        (row.seq for row in reverts if (edit := reverted_edit(journal, row, counts)) and is_own(edit)), 0
    )


def is_settled(journal: Journal, conflict: Row, counts: Callable[[Row], bool]) -> bool:
    """Whether ``conflict``, a row of ``journal`` that opened a conflict, is closed. ``counts``: whether a
    person's decision counts. Raise `JournalError`."""
    zone, path = conflict.zone, conflict.path
    met = conflict.detail.get("current", conflict.base)
    after = max(0, met - 1) if isinstance(met, int) else 0
    rows = {row.seq: row for row in journal.history(zone, path, after_version=after)}
    rows |= {row.seq: row for row in journal.settled(zone, path, after=conflict.seq, limit=_MOST_SETTLED)}
    rows |= {row.seq: row for row in _refused_since(journal, conflict)}
    tracker = ConflictTracker()
    for _, row in sorted(rows.items()):
        tracker.apply(row if counts(row) else as_undecided(row))
    return not tracker.is_open(conflict)


def _refused_since(journal: Journal, conflict: Row) -> Iterator[Row]:
    """The refused texts of the conflict's actor from the conflict on, newest first."""
    before = None
    refused = partial(journal.refused, conflict.zone, conflict.path, after=conflict.seq - 1)
    while rows := refused(before=before, limit=_REFUSED_PAGE):
        yield from (row for row in rows if row.actor == conflict.actor)
        before = rows[-1].seq


def reverted_edit(journal: Journal, row: Row, counts: Callable[[Row], bool]) -> Row | None:
    """Return the row of the edit that ``row`` reverts. Return None if ``row`` is not a person's revert of an
    edit at its own path, or if it does not count (``counts``). Raise `JournalError`."""
    is_revert = row.tool == REVERT and row.version is None and row.outcome == "ok"
    if not is_revert or row.kind != "human" or ZONES[row.zone].on_edit != "conflict":
        return None
    number = row.detail.get("conflict")
    if not isinstance(number, int) or isinstance(number, bool) or not 0 < number < min(row.seq, _END):
        return None
    edit = journal.row(number)
    if edit is None or (edit.actor, edit.zone, edit.path) != (OUTSIDE, row.zone, row.path):
        return None
    return edit if counts(row) else None
