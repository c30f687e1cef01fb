"""Who calls a tool, and what the toolbox remembers of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING

from watchroom.model import Zone
from watchroom.registry import Registry
from watchroom.texts import Catalogue, Language, catalogue
from watchroom.zones import (
    Acknowledgements,
    BoardZone,
    CollabZone,
    ConflictSettlement,
    HandoffZone,
    Members,
    PrivateZone,
    RequestZone,
    SessionZone,
    TaskFiles,
)
from watchroom.zones.buffers.zone import BufferZone
from watchroom.zones.realtime import AgentView, RealtimeZone
from watchroom.zones.task_errors import AgentEnded

if TYPE_CHECKING:
    from watchroom.zones.commands import Commands


@dataclass(frozen=True, slots=True)
class Zones:
    """Everything that tools act in."""

    registry: Registry
    private: PrivateZone
    handoff: HandoffZone
    collab: CollabZone
    boards: BoardZone
    settling: ConflictSettlement
    attention: Acknowledgements
    requests: RequestZone
    sessions: SessionZone
    realtime: RealtimeZone
    files: TaskFiles
    members: Members
    buffers: BufferZone
    commands: Callable[[], Commands]


class Caller:
    """An actor with the zones that it acts in. May be used from any thread."""

    def __init__(self, actor: str, zones: Zones, language: Language) -> None:
        self.actor = actor
        self.language = language
        self.registry = zones.registry
        self.private = zones.private
        self.handoff = zones.handoff
        self.collab = zones.collab
        self.boards = zones.boards
        self.settling = zones.settling
        self.attention = zones.attention
        self.requests = zones.requests
        self.sessions = zones.sessions
        self.realtime = zones.realtime
        self.files = zones.files
        self.members = zones.members
        self.buffers = zones.buffers
        self._commands = zones.commands
        self.view = AgentView(actor)
        self._seen: dict[tuple[Zone, str], int] = {}
        self._lock = Lock()

    @property
    def commands(self) -> Commands:
        return self._commands()

    @property
    def texts(self) -> Catalogue:
        return catalogue(self.language)

    def must_not_have_ended(self) -> None:
        """Raises `AgentEnded` where the actor worked on a task and does no more."""
        if self.members.has_ended(self.actor):
            raise AgentEnded(agent=self.actor)

    def has_seen(self, zone: Zone, path: str, version: int) -> None:
        """The actor was given the whole of this version of a shared file or board, or wrote it."""
        with self._lock:
            self._seen[zone, path] = max(version, self._seen.get((zone, path), 0))

    def last_seen(self, zone: Zone, path: str) -> int:
        """The newest version of a shared file or board that the actor saw, in this process or before."""
        with self._lock:
            seen = self._seen.get((zone, path))
        if seen is not None:
            return seen
        last_seen = self.boards.last_seen if zone == "board" else self.collab.last_seen
        return last_seen(self.actor, path)
