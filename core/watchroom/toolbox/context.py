"""What a tool is given beside its parameters: who calls, the zones, and what the caller has seen."""

from __future__ import annotations

from collections.abc import Callable, Collection
from threading import Lock

from watchroom.model import Zone
from watchroom.texts import Catalogue, Language, catalogue
from watchroom.zones import Zones
from watchroom.zones.realtime import ReplicaView


class ToolContext:
    """The ``actor`` that calls, the ``zones`` it acts in, the ``language`` it reads; ``tool_names`` returns
    the names of all tools. ``reads_only``: it came in by something that lets it look and no more. One for all
    calls of a toolbox; may be used from any thread."""

    def __init__(
        self,
        actor: str,
        zones: Zones,
        language: Language,
        tool_names: Callable[[], Collection[str]],
        *,
        reads_only: bool = False,
    ) -> None:
        self.actor = actor
        self.reads_only = reads_only
        self.zones = zones
        self.language: Language = language
        self.tool_names = tool_names
        self.view = ReplicaView(actor)
        self._seen: dict[tuple[Zone, str], int] = {}
        self._lock = Lock()

    @property
    def texts(self) -> Catalogue:
        """The core's texts in the caller's language."""
        return catalogue(self.language)

    def record_seen(self, zone: Zone, path: str, version: int) -> None:
        """Remember that the actor read or wrote the whole of ``version`` of the file or board ``path`` of
        ``zone``."""
        with self._lock:
            self._seen[zone, path] = max(version, self._seen.get((zone, path), 0))

    def has_seen(self, zone: Zone, path: str) -> bool:
        """Return whether the actor saw a version of ``path`` in ``zone`` in this process."""
        with self._lock:
            return (zone, path) in self._seen

    def last_seen(self, zone: Zone, path: str) -> int:
        """Return the newest version of ``path`` in ``zone`` that the actor saw, in this process or before;
        0 if none."""
        with self._lock:
            seen = self._seen.get((zone, path))
        if seen is not None:
            return seen
        last_seen = self.zones.boards.last_seen if zone == "board" else self.zones.collab.last_seen
        return last_seen(self.actor, path)
