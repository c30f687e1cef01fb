"""A document in memory: one replica for all agents of a process."""

from __future__ import annotations

from collections.abc import Iterator
from threading import RLock
from typing import Final

from watchroom.checkout.document_replica import BY, ZONE, DocumentReplica
from watchroom.crdt import Text
from watchroom.crdt.checkpoint import Checkpoint
from watchroom.journal import Journal
from watchroom.model import Row

_MOST_BRANCHES: Final = 2
"""So many texts at earlier moments are kept: each is as large as the document."""


class LiveReplica(DocumentReplica):
    """The document ``name`` of ``journal``, starting from the checkpoint ``start``, for one thread at a time:
    hold ``lock``.

    It may lag behind the journal, as any replica may: catch up before showing it to anybody."""

    def __init__(self, name: str, journal: Journal, start: Checkpoint | None) -> None:
        self.lock = RLock()
        self._last_looked = 0
        self._unmerged: dict[str, set[str]] = {}
        self._branches: dict[tuple[str, str], Text] = {}
        """The copies of texts that were edited, by replica and field; what was used last is last."""
        self._written: dict[tuple[str, str], int] = {}
        """How many operations of a replica of this process a field has, merged here or not."""
        super().__init__(name, journal, start)

    def catch_up(self, until: int | None = None) -> None:
        """Merge newer versions, up to ``until`` if it is given. Raises `JournalError`."""
        super().catch_up(until)
        self._unmerged.clear()

    def text_at(self, field: str, moment: bytes, replica: str) -> Text:
        """The text ``field`` as it was at ``moment`` (a result of `Text.frontiers`), for ``replica`` to edit:
        the text itself where that has not changed since. A copy that ``replica`` has edited is at hand as
        long as few others edit copies of theirs; it is made anew from the history after that. Raises
        `FieldNotFound`, `WrongFieldType`, `JournalError`."""
        text = self.document.text(field)
        branch = self._branches.pop((replica, field), None)
        if moment == text.frontiers():
            return text
        if branch is None or branch.frontiers() != moment:
            if not text.has_reached(moment):
                self.catch_up()
            branch = text.copy(moment)
        self._branches[replica, field] = branch
        if len(self._branches) > _MOST_BRANCHES:
            del self._branches[next(iter(self._branches))]
        return branch

    def may_write(self, field: str, text: Text, replica: str) -> bool:
        """Whether ``replica``, which is of this process, may edit ``text``, a result of `text_at`: only where
        that has all that it ever wrote to ``field``, or one operation's name would be given twice."""
        written = max(self._written.get((field, replica), 0), self.document.text(field).count_of(replica))
        return text.count_of(replica) >= written

    def record_edit(self, field: str, text: Text, replica: str) -> None:
        """Take note that ``replica`` edited ``text``, a result of `text_at`."""
        self._written[field, replica] = text.count_of(replica)

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
