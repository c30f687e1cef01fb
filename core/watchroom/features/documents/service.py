"""Creates, opens, merges and repairs realtime documents.

Deltas merge in any order, so a write is never refused as outdated.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Final

from watchroom import validation
from watchroom.algorithms.crdt import Document, Text, agent_of, check_schema
from watchroom.algorithms.crdt.remote_state import (
    Writers,
    collect_claims,
    count_known_operations,
    extract_fields,
)
from watchroom.errors import DocumentExists, DocumentNotFound, InvalidState, JournalError, WatchroomError
from watchroom.features.config.store import Store
from watchroom.features.documents.checkpoints import Checkpoints
from watchroom.features.documents.document_editor import DocumentEditor
from watchroom.features.documents.field_history import unproven_claims
from watchroom.features.documents.replica import DocumentReplica, LiveReplica
from watchroom.features.documents.replica_check import check_in_child
from watchroom.features.documents.replica_view import ReplicaNames, ReplicaView
from watchroom.features.documents.rows import CREATE, DOCUMENT_ZONE, MERGE
from watchroom.kernel.call_context import CallContext
from watchroom.kernel.checkout.edits import EDIT_TOOL
from watchroom.kernel.rules.row_files import find_row_flaw
from watchroom.model import Json, Row

MAX_STATE: Final = 64 * 1024 * 1024
"""Maximum characters of a remote replica's state as JSON."""
_log = logging.getLogger("watchroom")


class Documents:
    """The realtime documents of a workspace. May be used from any thread. ``store``: the journal and the
    files."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._checkpoints = Checkpoints(store.checkout.folder, store.journal, store.commits, store.background)
        self._lock = Lock()
        self._documents: dict[str, LiveReplica] = {}
        self._names = ReplicaNames()

    def create(self, call: CallContext, name: str, schema: Json, message: str = "") -> Row:
        """Create the document ``name`` with ``schema`` (field name to field type) and ``message``. Return its
        row. Raise `InvalidPath`, `InvalidSchema`, `DocumentExists`."""
        validation.check_document_id(name)
        text = json.dumps({"schema": check_schema(schema)}, ensure_ascii=False)
        with self._store.journal.exclusive(f"realtime/{name}"):
            first = self._store.journal.version(DOCUMENT_ZONE, name, 1)
            draft = call.with_tool(CREATE).write(DOCUMENT_ZONE, name, text, message, 0)
            row = first or self._store.write(draft).row
        if first is not None:
            fields = ", ".join(f"{field} ({kind})" for field, kind in self._get(name).document.schema.items())
            raise DocumentExists(document=name, by=first.actor, fields=fields)
        with self._hold(name) as live:
            self._checkpoints.keep(live)
        return row

    def open_replica(self, name: str) -> DocumentReplica:
        """Return a new replica of the document ``name`` for reading. Raise `DocumentNotFound`,
        `JournalError`."""
        return self._load(name)

    @contextmanager
    def read_document(
        self, call: CallContext, view: ReplicaView, name: str, field: str = ""
    ) -> Iterator[DocumentEditor]:
        """Open the document ``name`` to read ``field``, or all fields if that is empty.

        ``view``: the fields as the caller last saw them. The read fields are added to it. The read is
        recorded. Raise `DocumentNotFound`, `FieldNotFound`, `JournalError`.
        """
        with self._hold(name) as live:
            live.catch_up()
            version = live.version
            yield DocumentEditor(self._store, live, view, self._names, call)
            # After the context, because a refused read shows nothing.
            if field:
                view.record_seen(live, field)
            else:
                view.record_seen_document(live)
        self._store.note_reading(call, DOCUMENT_ZONE, f"{name}/{field}" if field else name, version)

    @contextmanager
    def edit_document(self, call: CallContext, view: ReplicaView, name: str) -> Iterator[DocumentEditor]:
        """Open the document ``name`` to edit it. ``view``: the fields as the caller last saw them. Raise
        `DocumentNotFound`, `JournalError`."""
        with self._hold(name) as live:
            editor = DocumentEditor(self._store, live, view, self._names, call)
            try:
                yield editor
            except WatchroomError:
                raise
            except BaseException:
                # The edit may be incomplete.
                editor.has_failed = True
                raise
            finally:
                if editor.has_failed:
                    self._evict(live)
                    view.reset(name)
                    self._names.forget(view.actor)
            if editor.has_written:
                self._checkpoints.keep(live)

    def merge_state(self, call: CallContext, name: str, state: Json) -> Row:
        """Merge the ``state`` of a replica outside the workspace into the document ``name``, atomically
        (FILES-4.9). Return the row. Raise `DocumentNotFound`, `InvalidState`, `JournalError`."""
        with self._hold(name) as live:
            live.catch_up()
            schema = live.document.schema
            fields = extract_fields(state, schema)
            writers = Writers(live.replicas, self._known_agents(live), call.actor)
            here = count_known_operations(live.document, writers)
            ours = live.document.state()["fields"]
        text = _encode_fields({field: fields[field] for field in schema if field in fields})
        check_in_child(schema, fields, ours, here, writers, self._store.journal.now() // 1_000_000)
        claims = collect_claims(schema, fields, writers) - collect_claims(schema, ours, writers)
        for claim in unproven_claims(claims, self._store.journal, live, writers):
            raise InvalidState(rule="state_forged", field=claim.field)
        detail: dict[str, Json] = {"fields": [*fields]}
        row = self._store.write(call.with_tool(MERGE).write(DOCUMENT_ZONE, name, text, detail=detail)).row
        with self._hold(name) as live:
            live.catch_up()
            self._checkpoints.keep(live)
        return row

    def _known_agents(self, live: LiveReplica) -> frozenset[str]:
        """Return the agents whose writes this workspace knows: agents that are or were registered, or that
        wrote the document."""
        return self._store.registry.ever_known() | {agent_of(replica) for replica in live.replicas}

    def update_checkpoints(self, documents: Iterable[str] | None = None) -> list[Row]:
        """Update the checkpoints of ``documents``, default all, to the state of the journal. Return the rows
        that record edits of the files.

        A process may have ended before writing them, or somebody may have edited them.
        """
        before = self._store.journal.last_seq()
        for head in self._heads():
            if documents is not None and head.path not in documents:
                continue
            is_behind = documents is None and self._checkpoints.says(head.path) != head.version
            if is_behind or not self._checkpoints.is_whole(head.path):
                self.rewrite_checkpoint(head.path)
        rows = self._store.journal.rows(before)
        return [row for row in rows if row.zone == DOCUMENT_ZONE and row.tool == EDIT_TOOL]

    def find_differing_checkpoints(self) -> list[str]:
        """Return the documents whose checkpoints differ from their rows."""
        return [head.path for head in self._heads() if self._is_checkpoint_different(head)]

    def _heads(self) -> Iterator[Row]:
        """Yield the newest version of each document that may have a file."""
        return (head for head in self._store.journal.heads(DOCUMENT_ZONE) if find_row_flaw(head) is None)

    def _is_checkpoint_different(self, head: Row) -> bool:
        found = self._checkpoints.look(head.path)
        if found is None or not 0 < found.version <= (head.version or 0):
            return True
        try:
            expected = DocumentReplica(head.path, self._store.journal, until=found.version).document
        except JournalError:
            return True
        return expected.values() != found.document.values() or _comparable_states(
            expected
        ) != _comparable_states(found.document)

    def rewrite_checkpoint(self, name: str, *, from_rows: bool = False) -> None:
        """Rewrite the checkpoint of the document ``name``, if possible. An edited file is first recorded as a
        row.

        ``from_rows``: read only the rows, because the file cannot be trusted.
        """
        try:
            live = self._load(name)
            if from_rows:
                self._checkpoints.keep_edit(name)
                live = LiveReplica(name, self._store.journal, None)
                with self._lock:
                    known = self._documents.get(name)
                if known is not None:
                    with known.lock:
                        self._evict(known)
            with live.lock:
                self._checkpoints.replace(live)
        except (OSError, WatchroomError):
            # One unreadable document must not block the others; `verify` reports it.
            _log.exception("the checkpoint of %r could not be mended", name)

    def close(self) -> None:
        """Write the overdue checkpoints, and close them."""
        self._checkpoints.close()

    @contextmanager
    def _hold(self, name: str) -> Iterator[LiveReplica]:
        """Hold the lock of the live replica of the document ``name``. Raise `DocumentNotFound`,
        `JournalError`."""
        while True:
            live = self._get(name)
            with live.lock:
                # Another thread may have discarded it while this one waited for the lock.
                if not live.is_discarded:
                    yield live
                    return

    def _get(self, name: str) -> LiveReplica:
        with self._lock:
            live = self._documents.get(name)
        if live is None:
            loaded = self._load(name)
            with self._lock:
                live = self._documents.setdefault(name, loaded)
            if not self._checkpoints.is_whole(name):
                with live.lock:
                    self._checkpoints.keep(live)
        return live

    def _load(self, name: str) -> LiveReplica:
        head = self._store.journal.head(DOCUMENT_ZONE, name)
        if head is None:
            known = ", ".join(each.path for each in self._store.journal.heads(DOCUMENT_ZONE))
            raise DocumentNotFound(document=validation.escape_unstorable(name, 200), known=known or "-")
        return LiveReplica(name, self._store.journal, self._checkpoints.read(name, head.version or 0))

    def _evict(self, live: LiveReplica) -> None:
        """Discard ``live``, whose lock the caller holds."""
        live.is_discarded = True
        with self._lock:
            if self._documents.get(live.name) is live:
                del self._documents[live.name]


def _encode_fields(fields: Json) -> str:
    """Return a state as the content of a row. Raise `InvalidState`."""
    try:
        text = json.dumps(fields, ensure_ascii=False, allow_nan=False)
        text.encode()
    except (ValueError, RecursionError) as error:
        raise InvalidState(rule="state_value") from error
    if len(text) > MAX_STATE:
        raise InvalidState(rule="state_size")
    return text


def _comparable_states(document: Document) -> list[Json]:
    """Return the states of all fields in a comparable form. For a text, this is the number of operations of
    each replica, because equal texts may have different bytes."""
    found = [document.field(name) for name in document.schema]
    return [
        sorted(each.version_vector().items()) if isinstance(each, Text) else each.state() for each in found
    ]
