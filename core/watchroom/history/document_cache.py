"""Replicas of realtime documents at given versions, for readers that go through a journal row by row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from watchroom.kernel.journal import Journal

if TYPE_CHECKING:
    from watchroom.features.documents.replica import DocumentReplica

_MAX_OPEN: Final = 16


class DocumentCache:
    """The replicas of the 16 most recently read documents of ``journal``.

    Reading the versions of a document in ascending order is cheap. An earlier version, or an evicted
    document, is read from its first version.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._open: dict[str, DocumentReplica] = {}

    def at(self, name: str, version: int) -> DocumentReplica:
        """Return the document ``name`` at ``version``. Raise `JournalDamaged`, `JournalError`."""
        # The engine loads slowly, and most journals have no documents.
        from watchroom.features.documents.replica import DocumentReplica

        document = self._open.pop(name, None)
        if document is None or document.version > version:
            document = DocumentReplica(name, self._journal, until=version)
        document.catch_up(version)
        self._open[name] = document
        if len(self._open) > _MAX_OPEN:
            del self._open[next(iter(self._open))]
        return document
