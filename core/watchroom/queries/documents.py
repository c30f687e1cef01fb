"""Realtime documents: their changes in order, and a replica as of a version."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from watchroom import validation
from watchroom.checkout.document_replica import ZONE, DocumentReplica, parse_object
from watchroom.crdt.errors import DocumentNotFound
from watchroom.journal import Journal
from watchroom.model import Json, Row

__all__ = ["DocumentReplica", "find_version", "open_document", "read_deltas"]

_CHUNK: Final = 1000


def open_document(journal: Journal, name: str, *, version: int) -> DocumentReplica:
    """A replica of the document ``name`` in ``journal`` at ``version``; it can catch up with later ones. Its
    whole history is read: where a workspace is open, `RealtimeZone.open_replica` begins at a checkpoint.
    Raises `DocumentNotFound`, `JournalError`."""
    if find_version(journal, name, 1) is None:
        raise DocumentNotFound(document=validation.escape_unstorable(name, 200), known="-")
    return DocumentReplica(name, journal, until=version)


def read_deltas(journal: Journal, name: str, *, after: int, until: int) -> Iterator[Mapping[str, Json]]:
    """The changes of the document ``name`` in ``journal`` with ``after`` < version ≤ ``until``, in order, as
    they are asked for. Raises `JournalError`."""
    while found := journal.versions(ZONE, name, after=after, until=until, limit=_CHUNK):
        for row, content in found:
            yield parse_object(row, content)
        after = found[-1][0].version or until


def find_version(journal: Journal, name: str, version: int) -> Row | None:
    """The row in ``journal`` that made this ``version`` of the document ``name``, None if there is none.
    Raises `JournalError`."""
    return journal.version(ZONE, name, version)
