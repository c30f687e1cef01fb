"""What one agent has seen of the documents: its own replica of each field, kept only where it differs.

Positions in a text, removals from a set and the replacing of a map count from what their writer last saw, not
from what others have written meanwhile: that is what makes concurrent edits both mean what they meant.
"""

from __future__ import annotations

import secrets
from typing import Final, TypeAlias

from watchroom.crdt import Document, Field, LWWMap, ORSet, Text, name_replica
from watchroom.model import Json

_PEER_BITS: Final = 63
Seen: TypeAlias = bytes | Text | ORSet | LWWMap
"""Of a text the moment, or a branch once it was edited there; of a set or a map a copy."""


class AgentView:
    """The view of ``actor``, one for each of its toolboxes. Used under the lock of the document."""

    def __init__(self, actor: str) -> None:
        self.actor = actor
        # Random, never made from the agent's name: an agent may run twice at once.
        self.replica = name_replica(actor, secrets.randbits(_PEER_BITS) | 1)
        self._seen: dict[tuple[str, str], Seen] = {}

    def has_seen(self, document: str, field: str) -> bool:
        return (document, field) in self._seen

    def saw(self, document: str, name: str, field: Field) -> None:
        """The actor was shown the field as it is."""
        if isinstance(field, Text):
            self._seen[document, name] = field.frontiers()
        elif isinstance(field, (ORSet, LWWMap)):
            self._seen[document, name] = field.copy()

    def saw_all(self, name: str, document: Document) -> None:
        """The actor was shown the whole document as it is."""
        for field in document.schema:
            self.saw(name, field, document.field(field))

    def remember(self, document: str, name: str, seen: Seen) -> None:
        self._seen[document, name] = seen

    def text(self, document: str, name: str, live: Text) -> Text:
        """The text in which the actor's positions count: the live one where the actor knows all of it."""
        seen = self._seen.get((document, name))
        if isinstance(seen, Text):
            return seen
        if not isinstance(seen, bytes) or seen == live.frontiers():
            return live
        branch = live.copy(seen)
        self._seen[document, name] = branch
        return branch

    def set(self, document: str, name: str) -> ORSet | None:
        """The set as the actor knows it, None where it never saw it."""
        seen = self._seen.get((document, name))
        return seen if isinstance(seen, ORSet) else None

    def map(self, document: str, name: str) -> LWWMap | None:
        """The map as the actor knows it, None where it never saw it."""
        seen = self._seen.get((document, name))
        return seen if isinstance(seen, LWWMap) else None

    def wrote(self, document: str, name: str, field: Field, delta: Json) -> None:
        """The actor wrote that delta to ``field``, which is the live one or its own branch."""
        seen = self._seen.get((document, name))
        if isinstance(field, Text):
            if field is not seen:
                self._seen[document, name] = field.frontiers()
        elif isinstance(seen, (ORSet, LWWMap)):
            seen.merge(delta)

    def forget(self, document: str) -> None:
        """Begin anew with a document: what is remembered may hold what was never committed."""
        self._seen = {key: seen for key, seen in self._seen.items() if key[0] != document}
        self.replica = name_replica(self.actor, secrets.randbits(_PEER_BITS) | 1)
