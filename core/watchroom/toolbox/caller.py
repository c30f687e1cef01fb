"""Who calls a tool, and what the toolbox remembers of it."""

from __future__ import annotations

from threading import Lock

from watchroom.texts import Catalogue, Language, catalogue
from watchroom.zones import Attention, CollabZone, HandoffZone, PrivateZone, Requests, SessionZone, Settling
from watchroom.zones.realtime import RealtimeZone, View


class Caller:
    """An actor with the zones that it acts in. May be used from any thread."""

    def __init__(
        self,
        actor: str,
        private: PrivateZone,
        handoff: HandoffZone,
        collab: CollabZone,
        settling: Settling,
        attention: Attention,
        requests: Requests,
        sessions: SessionZone,
        realtime: RealtimeZone,
        language: Language,
    ) -> None:
        self.actor = actor
        self.private = private
        self.handoff = handoff
        self.collab = collab
        self.settling = settling
        self.attention = attention
        self.requests = requests
        self.sessions = sessions
        self.realtime = realtime
        self.view = View(actor)
        self.language = language
        self._seen: dict[str, int] = {}
        self._lock = Lock()

    @property
    def texts(self) -> Catalogue:
        return catalogue(self.language)

    def has_seen(self, path: str, version: int) -> None:
        """The actor was given the whole of this version of a collaborative file, or wrote it."""
        with self._lock:
            self._seen[path] = max(version, self._seen.get(path, 0))

    def last_seen(self, path: str) -> int:
        """The newest version of a collaborative file that the actor saw, in this process or before."""
        with self._lock:
            seen = self._seen.get(path)
        return self.collab.last_seen(self.actor, path) if seen is None else seen
