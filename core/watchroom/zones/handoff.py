"""The handoff zone: formal deliveries from one agent to another (FILES-2).

A later delivery of the same file replaces the earlier one on disk; the journal keeps them all.
"""

from __future__ import annotations

from watchroom import validation
from watchroom.errors import NotFound
from watchroom.journal.protocol import NoteKey
from watchroom.journal.topics import deliveries_to
from watchroom.model import Note, Row, Write
from watchroom.rules.handoffs import ACKNOWLEDGE_TOOL, READ_TOOL, Delivery, handoff_path
from watchroom.rules.row_files import find_row_flaw
from watchroom.zones.store import Store


class HandoffZone:
    """Deliveries from one agent to another, in ``store``."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def deliver(
        self, actor: str, receiver: str, filename: str, content: str, *, tool: str, message: str = ""
    ) -> Row:
        """Put ``content`` into the inbox of ``receiver`` as ``filename``, from ``actor``, by ``tool`` with a
        ``message``. Returns the delivery's row. Raises `UnknownAgent`, `InvalidName`, `NotText`,
        `TooLarge`."""
        self._store.registry.agent(receiver)
        path = handoff_path(actor, receiver, validation.check_handoff_name(filename))
        validation.encode_text(content)
        return self._store.write(Write(actor, tool, "handoff", path, content, message)).row

    def inbox(self, actor: str, *, tool: str, acknowledged: bool = False) -> list[Delivery]:
        """What was delivered to ``actor``, oldest first; what it has ``acknowledged`` only if asked for. The
        reading is noted as one by ``tool``."""
        found = self._delivered(actor) if acknowledged else self._store.journal.open_items("handoff", actor)
        self._store.note_reading(actor, tool, "handoff", "", None)
        # `verify` names the rows whose paths no tool takes.
        readable = [row for row in found if find_row_flaw(row) is None]
        deliveries = [Delivery.from_row(row) for row in sorted(readable, key=lambda row: row.seq)]
        for tool in (READ_TOOL, ACKNOWLEDGE_TOOL) if acknowledged else (READ_TOOL,):
            keys: list[NoteKey] = [("handoff", each.row.path, actor, tool) for each in deliveries]
            notes = self._store.journal.last_notes(keys)
            deliveries = [
                each.advance(note) if note else each for each, note in zip(deliveries, notes, strict=True)
            ]
        return deliveries

    def _delivered(self, actor: str) -> list[Row]:
        """The newest version of everything that was ever delivered to the actor."""
        rows = self._store.journal.topic(deliveries_to(actor))
        paths = list(dict.fromkeys(row.path for row in rows))
        heads = self._store.journal.heads_of([("handoff", path) for path in paths])
        # Those that are deleted were withdrawn.
        return [head for head in heads if head is not None and not head.deleted]

    def read(self, actor: str, sender: str, filename: str) -> tuple[str, Row]:
        """The content and the row of what ``sender`` delivered to ``actor`` as ``filename``. Raises
        `NotFound`, `UnknownAgent`."""
        row = self._delivery(actor, sender, filename)
        self._store.note_reading(actor, READ_TOOL, "handoff", row.path, row.version)
        return self._store.content(row), row

    def acknowledge(self, actor: str, sender: str, filename: str, message: str = "") -> Row:
        """Confirm, as ``actor``, what ``sender`` delivered as ``filename``, with a ``message``; a later
        delivery of the same file is unconfirmed again. Returns the note's row. Raises `NotFound`,
        `UnknownAgent`."""
        row = self._delivery(actor, sender, filename)
        note = Note(actor, ACKNOWLEDGE_TOOL, "handoff", row.path, message=message, base=row.version)
        return self._store.commits.commit(note).row

    def _delivery(self, actor: str, sender: str, filename: str) -> Row:
        path = handoff_path(validation.check_agent_id(sender), actor, filename)
        self._store.check_path("handoff", path, filename)
        if validation.is_metadata_name(filename):
            validation.check_handoff_name(filename)
        head = self._store.journal.head("handoff", path)
        if head is None or head.deleted:
            if sender not in self._store.registry.ever_known():
                self._store.registry.agent(sender)
            raise NotFound(path=filename, zone=path.partition("/")[0])
        return head
