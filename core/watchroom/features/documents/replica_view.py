"""The fields of documents that an actor has seen, and the names of the replicas with which actors write.

Positions in a text, removals from a set and the replacement of a map refer to the value that their writer
last saw. They do not refer to later writes of others. So concurrent edits keep their meaning.
"""

from __future__ import annotations

import secrets
from typing import Final, TypeAlias

from watchroom.algorithms.crdt import LWWMap, ORSet, Text, name_replica
from watchroom.features.documents.replica import LiveReplica, TextView
from watchroom.model import Json

_PEER_BITS: Final = 63
Seen: TypeAlias = TextView | ORSet | LWWMap
"""A field as an actor saw it. Sets and maps are copies."""


class ReplicaNames:
    """The names of the replicas with which a process writes to documents. May be used from any thread.

    Each agent has one replica, shared by its sessions, because the engine's memory grows with the number of
    changes times the number of replicas.
    """

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def name_of(self, actor: str) -> str:
        """Return the name of the replica of ``actor``."""
        name = self._names.get(actor)
        if name is None:
            # The name is random, and not made from the agent's name alone, because an agent may run twice at
            # once.
            name = self._names.setdefault(actor, name_replica(actor, secrets.randbits(_PEER_BITS) | 1))
        return name

    def forget(self, actor: str) -> None:
        """Give ``actor`` a new replica from now on, because writes of the old replica may never have been
        committed."""
        self._names.pop(actor, None)


class ReplicaView:
    """The fields that ``actor`` has seen, for one toolbox. Hold the lock of the document to use it."""

    def __init__(self, actor: str) -> None:
        self.actor = actor
        self._seen: dict[tuple[str, str], Seen] = {}

    def has_seen(self, document: str, field: str) -> bool:
        """Return whether the actor has seen ``field`` of ``document``."""
        return (document, field) in self._seen

    def record_seen(self, live: LiveReplica, name: str) -> None:
        """Record that the actor is shown the field ``name`` of ``live``. Raise `FieldNotFound`."""
        field = live.document.field(name)
        if isinstance(field, Text):
            self._seen[live.name, name] = live.view_text(name)
        elif isinstance(field, (ORSet, LWWMap)):
            self._seen[live.name, name] = field.copy()

    def record_seen_document(self, live: LiveReplica) -> None:
        """Record that the actor is shown all fields of ``live``."""
        for field in live.document.schema:
            self.record_seen(live, field)

    def restore_seen(self, document: str, name: str, seen: Seen) -> None:
        """Set the field ``name`` of ``document`` to ``seen``, the value that the actor has seen."""
        self._seen[document, name] = seen

    def text_as_seen(self, document: str, name: str) -> TextView | None:
        """Return the text ``name`` of ``document`` as the actor last saw it, None if the actor never saw
        it."""
        seen = self._seen.get((document, name))
        return seen if isinstance(seen, TextView) else None

    def set_as_seen(self, document: str, name: str) -> ORSet | None:
        """Return the set ``name`` of ``document`` as the actor last saw it, None if the actor never saw
        it."""
        seen = self._seen.get((document, name))
        return seen if isinstance(seen, ORSet) else None

    def map_as_seen(self, document: str, name: str) -> LWWMap | None:
        """Return the map ``name`` of ``document`` as the actor last saw it, None if the actor never saw
        it."""
        seen = self._seen.get((document, name))
        return seen if isinstance(seen, LWWMap) else None

    def record_write(self, document: str, name: str, delta: Json) -> None:
        """Apply ``delta``, which the actor wrote to the field ``name`` of ``document``, to the value that the
        actor has seen."""
        seen = self._seen.get((document, name))
        if isinstance(seen, (ORSet, LWWMap)):
            seen.merge(delta)

    def reset(self, document: str) -> None:
        """Forget ``document``, because its seen fields may contain edits that were never committed."""
        self._seen = {key: seen for key, seen in self._seen.items() if key[0] != document}
