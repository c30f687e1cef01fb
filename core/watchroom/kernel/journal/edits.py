"""The journal's records of external edits: changes of files that were not made by a tool."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice

from watchroom.kernel.journal.protocol import Journal
from watchroom.kernel.journal.topics import outside_edits_of
from watchroom.kernel.rules.conflicts import ConflictTracker, as_undecided
from watchroom.kernel.zones import ZONES
from watchroom.model import OUTSIDE, REVERT, Row, Zone

_PAGE = 20
_REFUSED_PAGE = 100
_MAX_SETTLED = 10_000
_END = 2**63
"""A number above every row number."""
_MAX_REVERTS = 100
"""Maximum number of a path's newest reverts that are searched."""


def edits(journal: Journal, zone: Zone, path: str) -> Iterator[Row]:
    """Yield the rows of external edits of ``path`` in ``zone`` that made no version, newest first."""
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
    """Return the number of the newest row in which a person reverted an external edit of ``path``, or 0.

    The same edit after that row is a new edit. Raise `JournalError`.

    - ``is_own``: returns whether the row of an edit is from this checkout. Reverts of other edits are
      skipped.
    - ``counts``: returns whether a person's decision counts. Reverts that do not count are skipped.
    """
    reverts = islice((row for row in journal.settled(zone, path) if row.tool == REVERT), _MAX_REVERTS)
    return next(
        (row.seq for row in reverts if (edit := reverted_edit(journal, row, counts)) and is_own(edit)), 0
    )


def is_settled(journal: Journal, conflict: Row, counts: Callable[[Row], bool]) -> bool:
    """Return whether the conflict that the row ``conflict`` opened is closed.

    ``counts``: returns whether a person's decision counts. Raise `JournalError`.
    """
    zone, path = conflict.zone, conflict.path
    met = conflict.detail.get("current", conflict.base)
    after = max(0, met - 1) if isinstance(met, int) else 0
    rows = {row.seq: row for row in journal.history(zone, path, after_version=after)}
    rows |= {row.seq: row for row in journal.settled(zone, path, after=conflict.seq, limit=_MAX_SETTLED)}
    rows |= {row.seq: row for row in _refused_since(journal, conflict)}
    tracker = ConflictTracker()
    for _, row in sorted(rows.items()):
        tracker.apply(row if counts(row) else as_undecided(row))
    return not tracker.is_open(conflict)


def _refused_since(journal: Journal, conflict: Row) -> Iterator[Row]:
    """Yield the refused rows of the conflict's actor since the conflict, newest first."""
    before = None
    refused = partial(journal.refused, conflict.zone, conflict.path, after=conflict.seq - 1)
    while rows := refused(before=before, limit=_REFUSED_PAGE):
        yield from (row for row in rows if row.actor == conflict.actor)
        before = rows[-1].seq


def reverted_edit(journal: Journal, row: Row, counts: Callable[[Row], bool]) -> Row | None:
    """Return the row of the external edit that ``row`` reverts.

    Return None if ``row`` is not a person's revert of an edit of its own path, or if it does not count
    (``counts``). Raise `JournalError`.
    """
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
