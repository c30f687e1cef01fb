"""A document in memory: one replica for all agents of a process."""

from __future__ import annotations

from collections.abc import Iterator
from threading import RLock

from watchroom.checkout.document_replica import BY, ZONE, DocumentReplica
from watchroom.crdt.checkpoint import Checkpoint
from watchroom.journal import Journal
from watchroom.model import Row


class LiveReplica(DocumentReplica):
    """The document ``name`` of ``journal``, starting from the checkpoint ``start``, for one thread at a time:
    hold ``lock``.

    It may lag behind the journal, as any replica may: catch up before showing it to anybody."""

    def __init__(self, name: str, journal: Journal, start: Checkpoint | None) -> None:
        self.lock = RLock()
        self._last_looked = 0
        self._unmerged: dict[str, set[str]] = {}
        super().__init__(name, journal, start)

    def catch_up(self, until: int | None = None) -> None:
        """Merge newer versions, up to ``until`` if it is given. Raises `JournalError`."""
        super().catch_up(until)
        self._unmerged.clear()

    def has_unmerged_writes(self, field: str, replica: str) -> bool:
        """Whether replicas other than ``replica`` have written to ``field`` since this one caught up."""
        for row in self._journal.history(ZONE, self.name, after_version=max(self.version, self._last_looked)):
            self._last_looked = row.version or 0
            for each in changed_fields(row):
                self._unmerged.setdefault(each, set()).add(str(row.detail.get(BY, "")))
        return bool(self._unmerged.get(field, set()) - {replica})


def changed_fields(row: Row) -> Iterator[str]:
    """The names of the fields that the delta in ``row`` changes."""
    detail = row.detail
    several = detail.get("fields", [detail.get("field", "")])
    yield from map(str, several if isinstance(several, list) else [])
