"""A document as one process knows it: one replica, which all of its agents share."""

from __future__ import annotations

from threading import RLock

from watchroom.crdt.checkpoint import Checkpoint
from watchroom.journal import Journal
from watchroom.tree.tail import Tail


class Live(Tail):
    """A document to be used by one thread at a time: hold ``lock``."""

    def __init__(self, name: str, journal: Journal, start: Checkpoint | None) -> None:
        self.lock = RLock()
        self.kept = 0
        """Bytes of the checkpoint as it was last kept."""
        super().__init__(name, journal, start)
