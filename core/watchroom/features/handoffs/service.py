"""`Handoffs` delivers, lists, reads and acknowledges handoffs."""

from __future__ import annotations

from watchroom import validation
from watchroom.errors import InvalidHandOver, NotFound
from watchroom.features.config.store import Store
from watchroom.features.handoffs.rows import (
    ACKNOWLEDGE_TOOL,
    AGENT_ZONE,
    BRIEFING_FILE,
    HANDOFF_ZONE,
    READ_TOOL,
    Delivery,
    hand_over_detail,
    handoff_path,
)
from watchroom.kernel.call_context import CallContext
from watchroom.kernel.journal.protocol import NoteKey
from watchroom.kernel.journal.topics import deliveries_to
from watchroom.kernel.rules.row_files import find_row_flaw
from watchroom.model import Draft, Row
from watchroom.texts import catalogue


class Handoffs:
    """The handoffs between agents. ``store``: the journal and the files."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def deliver(
        self, call: CallContext, receiver: str, filename: str, content: str, *, message: str = ""
    ) -> Row:
        """Deliver a file from the caller to another agent. Return the delivery's row.

        - ``receiver``: the id of the agent that receives the file.
        - ``filename``: its name in the inbox. An earlier delivery with this name is replaced.
        - ``content``: its text.
        - ``message``: a text about the file for the receiver.

        Raise `UnknownAgent`, `InvalidName`, `NotText`, `TooLarge`.
        """
        self._store.registry.agent(receiver)
        path = handoff_path(call.actor, receiver, validation.check_handoff_name(filename))
        validation.encode_text(content)
        return self._store.write(call.write(HANDOFF_ZONE, path, content, message)).row

    def hand_over(
        self, call: CallContext, agent: str, receiver: str, briefing: str, *, is_prompt: bool = False
    ) -> Row:
        """Record that ``receiver`` continues the work of ``agent``, and deliver the ``briefing``. Return the
        note's row. Neither agent is stopped.

        ``is_prompt``: the receiver gets the briefing as its prompt, so that it is not delivered.

        Raise `UnknownAgent`, `InvalidHandOver`, `NotText`, `TooLarge`.
        """
        registry = self._store.registry
        giver, taker = registry.agent(agent).id, registry.agent(receiver).id
        if giver == taker:
            raise InvalidHandOver(agent=giver, rule="hand_over_self")
        validation.encode_text(briefing)
        drafts: list[Draft] = []
        if not is_prompt:
            message = catalogue(registry.current().language)("briefing.delivery", agent=giver)
            delivery = call.write(HANDOFF_ZONE, handoff_path(giver, taker, BRIEFING_FILE), briefing, message)
            self._store.check_place(delivery)
            drafts.append(delivery)
        detail = hand_over_detail(taker)
        drafts.append(call.note(AGENT_ZONE, giver, message=taker, content=briefing, detail=detail))
        return self._store.commits.commit_all(drafts, all_or_nothing=True)[-1].row

    def inbox(self, call: CallContext, *, acknowledged: bool = False) -> list[Delivery]:
        """Return the handoffs to the caller, oldest first. The read is recorded.

        ``acknowledged``: whether to include handoffs that the caller acknowledged, default False.
        """
        actor = call.actor
        found = self._delivered(actor) if acknowledged else self._store.journal.open_items("handoff", actor)
        self._store.note_reading(call, "handoff", "", None)
        # `verify` reports the rows whose paths are not valid for tools.
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
        """Return the current version of every handoff to the actor."""
        rows = self._store.journal.topic(deliveries_to(actor))
        paths = list(dict.fromkeys(row.path for row in rows))
        heads = self._store.journal.heads_of([("handoff", path) for path in paths])
        # Deleted handoffs were withdrawn.
        return [head for head in heads if head is not None and not head.deleted]

    def read(self, call: CallContext, sender: str, filename: str) -> tuple[str, Row]:
        """Return the text and the row of the handoff ``filename`` from ``sender`` to the caller. The read is
        recorded. Raise `NotFound`, `UnknownAgent`."""
        row = self._delivery(call.actor, sender, filename)
        content = self._store.content(row)
        self._store.note_reading(call.with_tool(READ_TOOL), "handoff", row.path, row.version)
        return content, row

    def acknowledge(self, call: CallContext, sender: str, filename: str, message: str = "") -> Row:
        """Acknowledge the handoff ``filename`` from ``sender`` to the caller. Return the note's row.

        ``message``: an answer to the sender. A later delivery of the same file needs a new acknowledgement.
        Raise `NotFound`, `UnknownAgent`.
        """
        row = self._delivery(call.actor, sender, filename)
        note = call.with_tool(ACKNOWLEDGE_TOOL).note("handoff", row.path, message=message, base=row.version)
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
