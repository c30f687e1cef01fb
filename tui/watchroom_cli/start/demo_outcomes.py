"""How many rows of each outcome the journal of a demo has."""

from __future__ import annotations

from watchroom.features.overview.snapshots import open_fold
from watchroom.kernel.journal import Journal


def count_outcomes(journal: Journal) -> dict[str, int]:
    """Return how many rows there are of each outcome."""
    fold = open_fold(journal)
    while rows := journal.rows(fold.seq):
        fold.apply(rows)
    return {str(outcome): count for outcome, count in fold.model().outcomes.items()}
