"""Edits of a document by an actor."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, NamedTuple

from watchroom import validation
from watchroom.algorithms.crdt import Document, LWWMap, LWWRegister, Stamp, TextEdit
from watchroom.errors import WrongFieldType
from watchroom.features.config.store import Store
from watchroom.features.documents.field_history import restore_seen_field, restore_text_view
from watchroom.features.documents.replica import LiveReplica, TextView
from watchroom.features.documents.replica_view import ReplicaNames, ReplicaView
from watchroom.features.documents.rows import ADDED, AT, BY, DOCUMENT_ZONE, REMOVED, SEEN
from watchroom.kernel.call_context import CallContext
from watchroom.model import Json, Row

_SHOWN: Final = 200
"""Maximum characters of a value in a row's detail."""


class EditedText(NamedTuple):
    """The result of an edit of a text.

    - ``row``: the row of the edit, None if nothing changed.
    - ``edit``: the replaced range and the new text.
    - ``length``: the new length of the text, without edits of others that its writer has not seen.
    - ``was_behind``: whether others had written to the text since its writer last saw it.
    """

    row: Row | None
    edit: TextEdit
    length: int
    was_behind: bool


class DocumentEditor:
    """Edits a document for an actor. Each edit is one row. Hold the document's lock to use it.

    Every method raises `FieldNotFound`, `WrongFieldType`, `JournalError`. It raises `NotText`, `TooLarge`,
    `InvalidKey`, `CounterOverflow` for values that cannot be stored.

    - ``store``: the journal.
    - ``live``: the document.
    - ``view``: the fields as the actor last saw them.
    - ``names``: the names of the replicas with which actors write.
    - ``call``: the call that edits.
    """

    def __init__(
        self, store: Store, live: LiveReplica, view: ReplicaView, names: ReplicaNames, call: CallContext
    ) -> None:
        self._store = store
        self._live = live
        self._view = view
        self._replica = names.name_of(view.actor)
        self._call = call
        self.has_written = False
        self.has_failed = False
        """Whether the replica contains an edit that was not committed."""

    @property
    def document(self) -> Document:
        """The document."""
        return self._live.document

    @property
    def newest(self) -> Row:
        """The row of the newest version."""
        return self._live.newest

    def edit_text(self, field: str, op: str, start: int, stop: int, inserted: str) -> EditedText:
        """Replace the characters from ``start`` up to ``stop`` (excluded) of the text ``field`` by
        ``inserted``.

        - ``op``: the name of the operation in the row.
        - ``start``, ``stop``: positions in the text as the actor last saw it, clamped to it.

        The edit builds on all edits in this replica, because concurrent edits cost memory and time in
        proportion to the number of their writers. Newer edits of other processes are not merged first,
        because each would cost a walk through the history.
        """
        text = self.document.text(field)
        mine = self._known_text(field)
        was_behind = mine.is_behind or self._live.has_unmerged_writes(field, self._replica)
        done, gone = mine.edit(text, start, stop, inserted, self._replica)
        # Before the commit, which can merge edits of other processes into the text.
        length = len(mine)
        row = None
        detail: dict[str, Json] = {"op": op, AT: done.position, ADDED: done.inserted, REMOVED: done.deleted}
        if gone:
            detail[SEEN] = mine.version
        if done.delta is None:
            note = self._call.note(DOCUMENT_ZONE, f"{self._live.name}/{field}", detail=detail)
            self._store.commits.commit(note)
        else:
            row = self._commit(field, done.delta, detail)
        return EditedText(row, done, length, was_behind)

    def _known_text(self, field: str) -> TextView:
        """Return the text ``field`` as the actor last saw it, aligned with this replica."""
        live, view = self._live, self._view
        known = view.text_as_seen(live.name, field)
        if known is None or not live.is_current(field, known):
            live.catch_up()
            known = restore_text_view(self._store.journal, live, view.actor, field)
            view.restore_seen(live.name, field, known)
        known.catch_up()
        return known

    def set(self, field: str, value: Json) -> Row:
        """Set the register ``field`` to ``value``, or replace the map ``field`` by it. Return the row.

        In a map, only the keys that the writer changed are written.
        """
        self._live.catch_up()
        found = self.document.field(field)
        if isinstance(found, LWWRegister):
            delta = found.set(value, self._stamp())
            return self._commit(field, delta, {"op": "set", "value": _preview(value)})
        if isinstance(found, LWWMap) and isinstance(value, Mapping):
            for key in value:
                validation.check_map_key(key)
            self._restore_view(field)
            seen = self._view.map_as_seen(self._live.name, field)
            if seen is None:
                # An actor that never read the map cannot remove keys from it.
                seen = LWWMap()
                self._view.restore_seen(self._live.name, field, seen)
            delta = found.replace(value, self._stamp(), seen)
            return self._commit(field, delta, {"op": "replace", "keys": [*delta][:50]})
        kind = self.document.schema[field]
        if isinstance(found, LWWMap):
            raise WrongFieldType(field=field, type=kind, wanted="lww_register (a map takes an object)")
        raise WrongFieldType(field=field, type=kind, wanted="lww_register, lww_map")

    def set_key(self, field: str, key: str, value: Json) -> Row:
        """Set ``key`` of the map ``field`` to ``value``. Return the row."""
        self._live.catch_up()
        found = self.document.map(field)
        validation.check_map_key(key)
        delta = found.set(key, value, self._stamp())
        return self._commit(field, delta, {"op": "set", "key": key[:_SHOWN], "value": _preview(value)})

    def remove_key(self, field: str, key: str) -> Row:
        """Remove ``key`` from the map ``field``, even if it is missing. Return the row."""
        self._live.catch_up()
        found = self.document.map(field)
        validation.check_map_key(key)
        delta = found.remove(key, self._stamp())
        return self._commit(field, delta, {"op": "remove", "key": key[:_SHOWN]})

    def add(self, field: str, element: str) -> Row:
        """Add ``element`` to the set ``field``. Return the row.

        A later removal by this writer does not remove additions that the writer has not seen.
        """
        self._live.catch_up()
        found = self.document.set(field)
        if any(each != self._view.actor for each in found.added_by(element)):
            self._restore_view(field)
        delta = found.add(element, self._replica, self._view.set_as_seen(self._live.name, field))
        return self._commit(field, delta, {"op": "add", "element": element[:_SHOWN]})

    def remove(self, field: str, element: str) -> Row:
        """Remove ``element`` from the set ``field``, except additions that the writer has not seen. Return
        the row."""
        self._live.catch_up()
        found = self.document.set(field)
        self._restore_view(field)
        delta = found.remove(element, self._view.set_as_seen(self._live.name, field))
        return self._commit(field, delta, {"op": "remove", "element": element[:_SHOWN]})

    def count(self, field: str, amount: int) -> Row:
        """Add ``amount``, which may be negative, to the counter ``field``. Return the row."""
        self._live.catch_up()
        found = self.document.counter(field)
        op = "increment" if amount >= 0 else "decrement"
        count = found.increment if amount >= 0 else found.decrement
        delta = count(abs(amount), self._replica)
        return self._commit(field, delta, {"op": op, "amount": abs(amount)})

    def _stamp(self) -> Stamp:
        return self.document.stamp(self._replica, self._store.journal.now() // 1_000_000)

    def _restore_view(self, field: str) -> None:
        """Restore ``field`` as the actor saw it in an earlier process."""
        if not self._view.has_seen(self._live.name, field):
            seen = restore_seen_field(self._store.journal, self._live, self._view.actor, field)
            if seen is not None:
                self._view.restore_seen(self._live.name, field, seen)

    def _commit(self, field: str, delta: Mapping[str, Json], detail: Mapping[str, Json]) -> Row:
        live, view = self._live, self._view
        draft = self._call.write(
            DOCUMENT_ZONE,
            live.name,
            json.dumps({field: delta}, ensure_ascii=False),
            detail={"field": field, **detail, BY: self._replica},
        )
        try:
            row = self._store.write(draft).row
        except BaseException:
            self.has_failed = True
            raise
        self.has_written = True
        view.record_write(live.name, field, delta)
        if row.version == live.version + 1:
            live.record_row(row)
        return row


def _preview(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)[:_SHOWN]
