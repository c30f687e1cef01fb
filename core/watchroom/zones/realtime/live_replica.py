"""A document as one process knows it: one replica, which all of its agents share."""

from __future__ import annotations

from collections.abc import Iterator
from threading import RLock

from watchroom.checkout.document_replica import BY, ZONE, DocumentReplica
from watchroom.crdt.checkpoint import Checkpoint
from watchroom.journal import Journal
from watchroom.model import Row


class LiveReplica(DocumentReplica):
    """A document to be used by one thread at a time: hold ``lock``.

    It may lag behind the journal, as any replica may: whoever is shown something has it caught up before.
    """

    def __init__(self, name: str, journal: Journal, start: Checkpoint | None) -> None:
        self.lock = RLock()
        self.checkpoint_size = 0
        """Bytes of the checkpoint as it was last kept, and of the edits since."""
        self._looked_at = 0
        self._ahead: dict[str, set[str]] = {}
        super().__init__(name, journal, start)

    def catch_up(self, until: int | None = None) -> None:
        super().catch_up(until)
        self._ahead.clear()

    def lacks(self, field: str, replica: str) -> bool:
        """Whether others than ``replica`` have written to the field what this one has not taken in."""
        for row in self._journal.history(ZONE, self.name, after_version=max(self.version, self._looked_at)):
            self._looked_at = row.version or 0
            for each in changed_fields(row):
                self._ahead.setdefault(each, set()).add(str(row.detail.get(BY, "")))
        return bool(self._ahead.get(field, set()) - {replica})


def changed_fields(row: Row) -> Iterator[str]:
    """The fields that the row's delta changes."""
    detail = row.detail
    several = detail.get("fields", [detail.get("field", "")])
    yield from map(str, several if isinstance(several, list) else [])
