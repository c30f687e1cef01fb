"""Count the rows of a demo's journal by outcome."""

from __future__ import annotations

from watchroom.features.overview.snapshots import open_fold
from watchroom.kernel.journal import Journal


def count_outcomes(journal: Journal) -> dict[str, int]:
    """Return the number of rows by outcome."""
    fold = open_fold(journal)
    while rows := journal.rows(fold.seq):
        fold.apply(rows)
    return {str(outcome): count for outcome, count in fold.model().outcomes.items()}
