"""What one agent has seen of the documents: its own replica of each field, kept only where it differs.

Positions in a text, removals from a set and the replacement of a map refer to what their writer last saw, not
to what others have written meanwhile: so concurrent edits keep their meaning."""

from __future__ import annotations

import secrets
from typing import Final, TypeAlias

from watchroom.crdt import Document, Field, LWWMap, ORSet, Text, name_replica
from watchroom.model import Json

_PEER_BITS: Final = 63
Seen: TypeAlias = bytes | ORSet | LWWMap
"""Of a text the moment, as its frontiers; of a set or a map a copy."""


class ReplicaNames:
    """The replicas by which a process writes to documents: one for each agent, whose sessions take turns. The
    engine's memory grows with the number of changes times that of replicas. May be used from any thread."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def name_of(self, actor: str) -> str:
        """The replica of ``actor``."""
        return self._names.setdefault(actor, make_replica(actor))

    def forget(self, actor: str) -> None:
        """From now on ``actor`` has another replica: what this one wrote was perhaps never committed."""
        self._names.pop(actor, None)


def make_replica(actor: str) -> str:
    """The name of a new replica of ``actor``."""
    # Random, never made from the agent's name alone: an agent may run twice at once.
    return name_replica(actor, secrets.randbits(_PEER_BITS) | 1)


class ReplicaView:
    """The view of ``actor``, one for each of its toolboxes. Used under the lock of the document."""

    def __init__(self, actor: str) -> None:
        self.actor = actor
        self.own_replica: str | None = None
        """By which it writes where the agent's other toolboxes wrote what it has not seen; None until then:
        an operation of a replica builds on all that came before it."""
        self._seen: dict[tuple[str, str], Seen] = {}

    def has_seen(self, document: str, field: str) -> bool:
        """Whether the actor has seen ``field`` of ``document``."""
        return (document, field) in self._seen

    def record_seen(self, document: str, name: str, field: Field) -> None:
        """The actor is shown ``field``, which is named ``name``, of ``document`` as it is."""
        if isinstance(field, Text):
            self._seen[document, name] = field.frontiers()
        elif isinstance(field, (ORSet, LWWMap)):
            self._seen[document, name] = field.copy()

    def record_seen_document(self, name: str, document: Document) -> None:
        """The actor is shown all fields of ``document``, which is named ``name``, as they are."""
        for field in document.schema:
            self.record_seen(name, field, document.field(field))

    def restore_seen(self, document: str, name: str, seen: Seen) -> None:
        """Set what the actor has seen of the field ``name`` of ``document`` to ``seen``."""
        self._seen[document, name] = seen

    def seen_moment(self, document: str, name: str) -> bytes | None:
        """The moment of the text ``name`` of ``document`` to which positions of the actor refer, None if it
        never saw one."""
        seen = self._seen.get((document, name))
        return seen if isinstance(seen, bytes) else None

    def set_as_seen(self, document: str, name: str) -> ORSet | None:
        """The set ``name`` of ``document`` as the actor saw it, None if it never did."""
        seen = self._seen.get((document, name))
        return seen if isinstance(seen, ORSet) else None

    def map_as_seen(self, document: str, name: str) -> LWWMap | None:
        """The map ``name`` of ``document`` as the actor saw it, None if it never did."""
        seen = self._seen.get((document, name))
        return seen if isinstance(seen, LWWMap) else None

    def record_write(self, document: str, name: str, field: Field, delta: Json) -> None:
        """The actor wrote ``delta`` to ``field``, which is the field ``name`` of ``document``, or a copy of
        it at the moment that the actor had seen."""
        seen = self._seen.get((document, name))
        if isinstance(field, Text):
            self._seen[document, name] = field.frontiers()
        elif isinstance(seen, (ORSet, LWWMap)):
            seen.merge(delta)

    def reset(self, document: str) -> None:
        """Forget ``document`` and the replica: what was seen may contain what was never committed."""
        self._seen = {key: seen for key, seen in self._seen.items() if key[0] != document}
        self.own_replica = None
