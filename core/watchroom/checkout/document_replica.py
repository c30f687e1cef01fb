"""A replica of a realtime document, built from its rows: version 1 contains its schema, each later version a
delta."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from watchroom.crdt import Document, check_schema
from watchroom.crdt.checkpoint import Checkpoint, capture_state, encode_checkpoint
from watchroom.crdt.errors import DocumentDamaged, FieldNotFound, InvalidSchema, InvalidState
from watchroom.journal import Journal
from watchroom.model import Json, Row

ZONE: Final = "realtime"
BY: Final = "replica"
"""What a row's detail names the replica by that made its delta; a replica from elsewhere is not named."""
_CHUNK: Final = 1000


class DocumentReplica:
    """The document ``name``, which exists in ``journal``, as of its version ``until`` (by default its
    newest), starting from the checkpoint ``start``. Not for two threads at a time. Raises `JournalError`
    where a row cannot be read."""

    def __init__(
        self, name: str, journal: Journal, start: Checkpoint | None = None, *, until: int | None = None
    ) -> None:
        self.name = name
        self._journal = journal
        versions = journal.versions(ZONE, name, limit=1)
        if not versions:
            # A name that is damaged in the journal finds no row.
            raise DocumentDamaged(version=1, document=name)
        first, content = versions[0]
        try:
            schema = check_schema(parse_object(first, content).get("schema"))
        except InvalidSchema as error:
            raise unreadable_version(first) from error
        self.newest: Row = first
        self.document, self._replicas = Document(schema), set[str]()
        reached = journal.version(ZONE, name, start.version) if start else None
        if start and reached and start.document.schema == schema:
            self.newest, self.document, self._replicas = reached, start.document, set(start.replicas)
        self.catch_up(until)

    @property
    def version(self) -> int:
        """The newest version that it contains."""
        return self.newest.version or 0

    @property
    def replicas(self) -> frozenset[str]:
        """The replicas of this workspace that wrote to the document."""
        return frozenset(self._replicas)

    def catch_up(self, until: int | None = None) -> None:
        """Merge newer versions, up to ``until`` if it is given. Raises `JournalError`."""
        while found := self._journal.versions(ZONE, self.name, after=self.version, until=until, limit=_CHUNK):
            deltas = [parse_object(row, content) for row, content in found]
            try:
                self.document.merge_all(deltas)
            except (InvalidState, FieldNotFound):
                self._merge_one_by_one(found, deltas)
            for row, _ in found:
                self.record_row(row)

    def _merge_one_by_one(
        self, found: list[tuple[Row, str | None]], deltas: list[Mapping[str, Json]]
    ) -> None:
        """Find the row that cannot be merged; to merge another once more changes nothing."""
        for (row, _), delta in zip(found, deltas, strict=True):
            try:
                self.document.merge(delta)
            except (InvalidState, FieldNotFound) as error:
                raise unreadable_version(row) from error

    def record_row(self, row: Row) -> None:
        """Take note that the document contains the delta of ``row``."""
        self.newest = row
        replica = row.detail.get(BY)
        if isinstance(replica, str):
            self._replicas.add(replica)

    def checkpoint(self) -> bytes:
        """The document's file."""
        return encode_checkpoint(self.capture())

    def render_values(self) -> bytes:
        """The values of all fields as people read them, in JSON: texts by their lines. The same version has
        the same bytes, whoever built it."""
        values = {
            name: value.split("\n") if isinstance(value, str) and "\n" in value else value
            for name, value in self.document.values().items()
        }
        return (json.dumps(values, ensure_ascii=False, indent=1, sort_keys=True) + "\n").encode()

    def capture(self) -> Mapping[str, Json]:
        """The document as it is now, for `encode_checkpoint` to make its file of."""
        checkpoint = Checkpoint(self.name, self.version, self.replicas, self.document)
        return capture_state(checkpoint, self.newest.timestamp, self.newest.actor)


def parse_object(row: Row, content: str | None) -> Mapping[str, Json]:
    """The JSON object in ``content``, that of ``row``. Raises `DocumentDamaged`."""
    try:
        found = json.loads(content or "")
    except (ValueError, RecursionError) as error:
        raise unreadable_version(row) from error
    if not isinstance(found, dict):
        raise unreadable_version(row)
    return found


def unreadable_version(row: Row) -> DocumentDamaged:
    """The error for a ``row`` that cannot be read."""
    return DocumentDamaged(version=row.version, document=row.path)
