"""Readers of realtime documents, current and past. Call them in threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from threading import Lock
from typing import TYPE_CHECKING, Final, NamedTuple

from watchroom.algorithms.crdt.history import AttributedFields, DocumentHistory, attribute_document
from watchroom.features.documents.reads import DocumentReplica, find_version, open_document, read_deltas
from watchroom.kernel.journal import Journal
from watchroom.model import Json, Row
from watchroom.texts import Catalogue

from watchroom_tui.formatters.document_drawing import DocumentDrawing

if TYPE_CHECKING:
    from watchroom import Workspace

_CHUNK: Final = 1000


class DocumentSnapshot(NamedTuple):
    """A document at a version. ``row`` is the row of the version, ``newest`` is the number of the newest
    version."""

    name: str
    picture: AttributedFields
    drawing: DocumentDrawing
    row: Row
    newest: int

    @property
    def version(self) -> int:
        return self.row.version or 0


class DocumentReader:
    """Reader of one document at a time. Thread-safe: a read waits for the previous read."""

    def __init__(self, journal: Journal, texts: Catalogue) -> None:
        self._journal = journal
        self._texts = texts
        self._lock = Lock()
        self._tail: DocumentReplica | None = None
        self._timeline: DocumentHistory | None = None

    def now(
        self, name: str, newest: int, workspace: Workspace | None, former: AttributedFields | None = None
    ) -> DocumentSnapshot:
        """Return the document at the version ``newest``, or a little later.

        - ``workspace``: if given, reading starts at the checkpoint of the document.
        - ``former``: the fields at an earlier version. Later changes are marked.

        Raise `JournalError` and `DocumentNotFound`.
        """
        with self._lock:
            tail = self._tail_of(name, newest, workspace)
            tail.catch_up(newest)
            return self._drawn(tail, attribute_document(tail.document, former), tail.newest)

    def then(self, name: str, version: int, progress: Callable[[float], None]) -> DocumentSnapshot | None:
        """Return the document at ``version``, None if another document is being read. The first call reads
        the complete history and reports the read share to ``progress``."""
        with self._lock:
            tail = self._tail
            if tail is None or tail.name != name:
                return None
            timeline = self._updated_timeline(tail, progress)
            picture = attribute_document(timeline.restore(version))
            row = find_version(self._journal, name, max(1, min(version, tail.version)))
            return self._drawn(tail, picture, row or tail.newest)

    def _drawn(self, tail: DocumentReplica, picture: AttributedFields, row: Row) -> DocumentSnapshot:
        drawing = DocumentDrawing(picture, tail.document.schema, self._texts)
        return DocumentSnapshot(tail.name, picture, drawing, row, tail.version)

    def _tail_of(self, name: str, newest: int, workspace: Workspace | None) -> DocumentReplica:
        if self._tail is None or self._tail.name != name or self._tail.version > newest:
            self._tail, self._timeline = None, None
            if workspace is not None:
                self._tail = workspace.realtime.open_replica(name)
            else:
                self._tail = open_document(self._journal, name, version=newest)
        return self._tail

    def _updated_timeline(self, tail: DocumentReplica, progress: Callable[[float], None]) -> DocumentHistory:
        if self._timeline is None:
            self._timeline = DocumentHistory(tail.document, tail.version, self._between(tail.name))
        for delta in self._between(tail.name)(self._timeline.version, tail.version):
            self._timeline.add(delta)
            if self._timeline.version % _CHUNK == 0:
                progress(self._timeline.version / tail.version)
        return self._timeline

    def _between(self, name: str) -> Callable[[int, int], Iterator[Mapping[str, Json]]]:
        return lambda after, until: read_deltas(self._journal, name, after=after, until=until)
