"""Leases of processes, and their expiry."""

from __future__ import annotations

import time

from watchroom.kernel.journal import Journal

PATIENCE = 30


def wait_until_lost(journal: Journal, process: int) -> None:
    """Wait until no lease of a killed process is alive. In a file it ends with the process, on a server
    seconds later."""
    deadline = time.monotonic() + PATIENCE
    while any(each.is_alive for each in journal.presence.all() if each.process == process):
        assert time.monotonic() < deadline
        time.sleep(0.02)
