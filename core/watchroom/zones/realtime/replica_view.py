"""What one agent has seen of the documents: its own replica of each field, kept only where it differs.

Positions in a text, removals from a set and the replacement of a map refer to what their writer last saw, not
to what others have written meanwhile: so concurrent edits keep their meaning."""

from __future__ import annotations

import secrets
from typing import Final, TypeAlias

from watchroom.crdt import LWWMap, ORSet, Text, name_replica
from watchroom.model import Json
from watchroom.zones.realtime.live_replica import LiveReplica, TextView

_PEER_BITS: Final = 63
Seen: TypeAlias = TextView | ORSet | LWWMap
"""Of a set or a map a copy."""


class ReplicaNames:
    """The replicas by which a process writes to documents: one for each agent, whose sessions take turns. The
    engine's memory grows with the number of changes times that of replicas. May be used from any thread."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def name_of(self, actor: str) -> str:
        """The replica of ``actor``."""
        name = self._names.get(actor)
        if name is None:
            # Random, never made from the agent's name alone: an agent may run twice at once.
            name = self._names.setdefault(actor, name_replica(actor, secrets.randbits(_PEER_BITS) | 1))
        return name

    def forget(self, actor: str) -> None:
        """From now on ``actor`` has another replica: what this one wrote was perhaps never committed."""
        self._names.pop(actor, None)


class ReplicaView:
    """The view of ``actor``, one for each of its toolboxes. Used under the lock of the document."""

    def __init__(self, actor: str) -> None:
        self.actor = actor
        self._seen: dict[tuple[str, str], Seen] = {}

    def has_seen(self, document: str, field: str) -> bool:
        """Whether the actor has seen ``field`` of ``document``."""
        return (document, field) in self._seen

    def record_seen(self, live: LiveReplica, name: str) -> None:
        """The actor is shown the field ``name`` of ``live`` as it is. Raises `FieldNotFound`."""
        field = live.document.field(name)
        if isinstance(field, Text):
            self._seen[live.name, name] = live.view_text(name)
        elif isinstance(field, (ORSet, LWWMap)):
            self._seen[live.name, name] = field.copy()

    def record_seen_document(self, live: LiveReplica) -> None:
        """The actor is shown all fields of ``live`` as they are."""
        for field in live.document.schema:
            self.record_seen(live, field)

    def restore_seen(self, document: str, name: str, seen: Seen) -> None:
        """Set what the actor has seen of the field ``name`` of ``document`` to ``seen``."""
        self._seen[document, name] = seen

    def text_as_seen(self, document: str, name: str) -> TextView | None:
        """The text ``name`` of ``document`` as the actor knows it, None if it never saw one."""
        seen = self._seen.get((document, name))
        return seen if isinstance(seen, TextView) else None

    def set_as_seen(self, document: str, name: str) -> ORSet | None:
        """The set ``name`` of ``document`` as the actor saw it, None if it never did."""
        seen = self._seen.get((document, name))
        return seen if isinstance(seen, ORSet) else None

    def map_as_seen(self, document: str, name: str) -> LWWMap | None:
        """The map ``name`` of ``document`` as the actor saw it, None if it never did."""
        seen = self._seen.get((document, name))
        return seen if isinstance(seen, LWWMap) else None

    def record_write(self, document: str, name: str, delta: Json) -> None:
        """The actor wrote ``delta`` to the field ``name`` of ``document``."""
        seen = self._seen.get((document, name))
        if isinstance(seen, (ORSet, LWWMap)):
            seen.merge(delta)

    def reset(self, document: str) -> None:
        """Forget ``document``: what was seen may contain what was never committed."""
        self._seen = {key: seen for key, seen in self._seen.items() if key[0] != document}
