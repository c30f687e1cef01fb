"""Edits of one document by one actor."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, NamedTuple

from watchroom import validation
from watchroom.checkout.document_replica import BY, ZONE
from watchroom.crdt import Document, LWWMap, LWWRegister, Stamp, TextEdit
from watchroom.crdt.errors import WrongFieldType
from watchroom.model import UNCHECKED, Json, Note, Row, Write
from watchroom.zones.realtime.field_history import (
    ADDED,
    AT,
    REMOVED,
    SEEN,
    restore_seen_field,
    restore_text_view,
)
from watchroom.zones.realtime.live_replica import LiveReplica, TextView
from watchroom.zones.realtime.replica_view import ReplicaNames, ReplicaView
from watchroom.zones.store import Store

_SHOWN: Final = 200
"""Characters of a value that a row's detail tells."""


class EditedText(NamedTuple):
    """The result of an edit of a text. ``edit`` is what it did, ``length`` that of the text as its writer
    knows it; ``was_behind``: others had written to it since its writer last saw it. ``row`` is None where
    nothing changed."""

    row: Row | None
    edit: TextEdit
    length: int
    was_behind: bool


class DocumentEditor:
    """Edits the document ``live`` for the actor of ``view`` by its replica of ``names``, each edit one row by
    ``tool`` in ``store``. Used under the document's lock.

    Every method raises `FieldNotFound`, `WrongFieldType`, `JournalError`; and `NotText`, `TooLarge`,
    `InvalidKey`, `CounterOverflow` for what cannot be stored."""

    def __init__(
        self, store: Store, live: LiveReplica, view: ReplicaView, names: ReplicaNames, tool: str
    ) -> None:
        self._store = store
        self._live = live
        self._view = view
        self._replica = names.name_of(view.actor)
        self._tool = tool
        self.has_written = False
        self.has_failed = False
        """Whether the document holds an edit that never became a row."""

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
        ``inserted``, which is called ``op`` in the row; positions refer to the text as the actor last saw it,
        and are clamped to it.

        The edit builds on all that is in this replica, whoever wrote it: edits that do not know of each other
        cost memory and time that grow with the number of their writers. What other processes have written
        since is not merged for that: it would be merged edit by edit, each a walk through the history."""
        text = self.document.text(field)
        mine = self._known_text(field)
        was_behind = mine.is_behind or self._live.has_unmerged_writes(field, self._replica)
        done, gone = mine.edit(text, start, stop, inserted, self._replica)
        # Not after the commit: what other processes wrote meanwhile is then in a text that is the live one.
        length = len(mine)
        row = None
        detail: dict[str, Json] = {"op": op, AT: done.position, ADDED: done.inserted, REMOVED: done.deleted}
        if gone:
            detail[SEEN] = mine.version
        if done.delta is None:
            self._store.commits.commit(
                Note(self._view.actor, self._tool, ZONE, f"{self._live.name}/{field}", detail=detail)
            )
        else:
            row = self._commit(field, done.delta, detail)
        return EditedText(row, done, length, was_behind)

    def _known_text(self, field: str) -> TextView:
        """The text ``field`` as the actor knows it, beside what others have written to this replica."""
        live, view = self._live, self._view
        known = view.text_as_seen(live.name, field)
        if known is None or not live.is_current(field, known):
            live.catch_up()
            known = restore_text_view(self._store.journal, live, view.actor, field)
            view.restore_seen(live.name, field, known)
        known.catch_up()
        return known

    def set(self, field: str, value: Json) -> Row:
        """Set the register ``field`` to ``value``; or replace a map by it, of which only what the writer
        changed is written. Returns the row."""
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
        """Set ``key`` of the map ``field`` to ``value``; returns the row."""
        self._live.catch_up()
        found = self.document.map(field)
        validation.check_map_key(key)
        delta = found.set(key, value, self._stamp())
        return self._commit(field, delta, {"op": "set", "key": key[:_SHOWN], "value": _preview(value)})

    def remove_key(self, field: str, key: str) -> Row:
        """Remove ``key``, present or not, from the map ``field``; returns the row."""
        self._live.catch_up()
        found = self.document.map(field)
        validation.check_map_key(key)
        delta = found.remove(key, self._stamp())
        return self._commit(field, delta, {"op": "remove", "key": key[:_SHOWN]})

    def add(self, field: str, element: str) -> Row:
        """Add ``element`` to the set ``field``, beside additions of it that the writer did not know of: they
        stay if it removes its own. Returns the row."""
        self._live.catch_up()
        found = self.document.set(field)
        if any(each != self._view.actor for each in found.added_by(element)):
            self._restore_view(field)
        delta = found.add(element, self._replica, self._view.set_as_seen(self._live.name, field))
        return self._commit(field, delta, {"op": "add", "element": element[:_SHOWN]})

    def remove(self, field: str, element: str) -> Row:
        """Remove what the writer has seen of ``element`` from the set ``field``: an addition that it did not
        know of stays. Returns the row."""
        self._live.catch_up()
        found = self.document.set(field)
        self._restore_view(field)
        delta = found.remove(element, self._view.set_as_seen(self._live.name, field))
        return self._commit(field, delta, {"op": "remove", "element": element[:_SHOWN]})

    def count(self, field: str, amount: int) -> Row:
        """Add ``amount``, which may be negative, to the counter ``field``; returns the row."""
        self._live.catch_up()
        found = self.document.counter(field)
        op = "increment" if amount >= 0 else "decrement"
        count = found.increment if amount >= 0 else found.decrement
        delta = count(abs(amount), self._replica)
        return self._commit(field, delta, {"op": op, "amount": abs(amount)})

    def _stamp(self) -> Stamp:
        return self.document.stamp(self._replica, self._store.journal.now() // 1_000_000)

    def _restore_view(self, field: str) -> None:
        """What the actor saw of the field in an earlier process."""
        if not self._view.has_seen(self._live.name, field):
            seen = restore_seen_field(self._store.journal, self._live, self._view.actor, field)
            if seen is not None:
                self._view.restore_seen(self._live.name, field, seen)

    def _commit(self, field: str, delta: Mapping[str, Json], detail: Mapping[str, Json]) -> Row:
        live, view = self._live, self._view
        draft = Write(
            view.actor,
            self._tool,
            ZONE,
            live.name,
            json.dumps({field: delta}, ensure_ascii=False),
            expected=UNCHECKED,
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
