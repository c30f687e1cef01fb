"""What an edit of a realtime document wrote into its texts: whole lines, as its readers saw them then."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from watchroom.journal import Journal
from watchroom.model import Row
from watchroom.search.added_lines import Passage, added_passages

if TYPE_CHECKING:
    from watchroom.checkout.document_replica import DocumentReplica

_MOST_OPEN: Final = 16
"""So many documents are held at most; another one is read from its first version again."""


class DocumentPassages:
    """Reads what versions of the documents in ``journal`` wrote; cheap where those of a document come in
    order."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._open: dict[str, DocumentReplica] = {}

    def read(self, row: Row) -> Iterator[Passage]:
        """The lines that the version of ``row`` added to the document's texts, or changed. Raises
        `JournalError`."""
        version = row.version or 0
        if version < 2:
            return
        document = self._document(row.path, version - 1)
        before = _texts(document)
        document.catch_up(version)
        for name, text in _texts(document).items():
            if text != before[name]:
                yield from added_passages(before[name], text)

    def _document(self, name: str, version: int) -> DocumentReplica:
        # The engine is slow to load, and most journals have no documents.
        from watchroom.checkout.document_replica import DocumentReplica

        document = self._open.pop(name, None)
        if document is None or document.version > version:
            document = DocumentReplica(name, self._journal, until=version)
        document.catch_up(version)
        self._open[name] = document
        if len(self._open) > _MOST_OPEN:
            del self._open[next(iter(self._open))]
        return document


def _texts(replica: DocumentReplica) -> dict[str, str]:
    document = replica.document
    return {name: document.text(name).value for name, kind in document.schema.items() if kind == "rga"}
