"""Realtime documents as files of a history: the values that each version left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from watchroom.errors import JournalDamaged
from watchroom.journal import Journal
from watchroom.model import Row

if TYPE_CHECKING:
    from watchroom.checkout.document_replica import DocumentReplica

_MOST_OPEN: Final = 16
"""So many documents are held at most; another one is read from its first version again."""


class DocumentTexts:
    """Renders versions of the documents in ``journal``; cheap where those of a document come in order."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._open: dict[str, DocumentReplica] = {}

    def render(self, row: Row) -> bytes | None:
        """The values of the document after the version that ``row`` made; None where the journal has lost
        a part of it."""
        # The engine is slow to load, and most histories have no documents.
        from watchroom.checkout.document_replica import DocumentReplica

        document = self._open.pop(row.path, None)
        try:
            if document is None or document.version > (row.version or 0):
                document = DocumentReplica(row.path, self._journal, until=row.version)
            document.catch_up(row.version)
        except JournalDamaged:
            return None
        self._open[row.path] = document
        if len(self._open) > _MOST_OPEN:
            del self._open[next(iter(self._open))]
        return document.render_values()
