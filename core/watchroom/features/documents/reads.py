"""Details of realtime documents for front ends: their deltas in order, and replicas at a version."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from watchroom import validation
from watchroom.errors import DocumentNotFound
from watchroom.features.documents.replica import DocumentReplica
from watchroom.features.documents.rows import DOCUMENT_ZONE, parse_object
from watchroom.kernel.journal import Journal
from watchroom.model import Json, Row

__all__ = ["DocumentReplica", "find_version", "open_document", "read_deltas"]

_CHUNK: Final = 1000


def open_document(journal: Journal, name: str, *, version: int) -> DocumentReplica:
    """Return a replica of the document ``name`` at ``version``. It can be updated to later versions.

    The whole history is read. If a workspace is open, `Documents.open_replica` is faster, because it begins
    at a document checkpoint. Raise `DocumentNotFound`, `JournalError`.
    """
    if find_version(journal, name, 1) is None:
        raise DocumentNotFound(document=validation.escape_unstorable(name, 200), known="-")
    return DocumentReplica(name, journal, until=version)


def read_deltas(journal: Journal, name: str, *, after: int, until: int) -> Iterator[Mapping[str, Json]]:
    """Yield the changes of the document ``name`` with ``after`` < version ≤ ``until``, in order. Raise
    `JournalError`."""
    while found := journal.versions(DOCUMENT_ZONE, name, after=after, until=until, limit=_CHUNK):
        for row, content in found:
            yield parse_object(row, content)
        after = found[-1][0].version or until


def find_version(journal: Journal, name: str, version: int) -> Row | None:
    """Return the row of ``version`` of the document ``name``, None if there is none. Raise
    `JournalError`."""
    return journal.version(DOCUMENT_ZONE, name, version)
