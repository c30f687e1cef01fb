"""Waiting for what no row tells of: that rows were indexed."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

from watchroom.journal import Journal

PATIENCE = 20.0


def wait_until(journal: Journal, holds: Callable[[], bool]) -> None:
    """Look again every few milliseconds."""
    changes = journal.changes()
    until = monotonic() + PATIENCE
    while not holds():
        assert monotonic() < until
        changes.wait(0.01)
    changes.close()
