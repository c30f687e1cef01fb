"""`ToolContext`: the first argument of a tool, beside its parameters."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING

from watchroom.kernel.call_context import CallContext
from watchroom.model import Zone
from watchroom.texts import Catalogue, Language, catalogue

if TYPE_CHECKING:
    from watchroom.features.documents.replica_view import ReplicaView
    from watchroom.features.services import Services


class LastSeenVersions(dict[tuple[Zone, str], int]):
    """The newest version of each file and board (zone, path) that the actor of a toolbox read or wrote in
    this process. May be used from any thread."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = Lock()

    def record(self, zone: Zone, path: str, version: int) -> None:
        """Record that the actor saw ``version`` of ``path`` in ``zone`` completely."""
        with self._lock:
            self[zone, path] = max(version, self.get((zone, path), 0))


@dataclass(frozen=True, slots=True)
class ToolContext:
    """The first argument of a tool, beside its parameters.

    - ``call``: the current call. A toolbox replaces it for each call; the other fields stay the same.
    - ``zones``: the services that the tool uses.
    - ``language``: the language of the response.
    - ``tool_names``: returns the names of all tools.
    - ``view``: the fields of realtime documents as the actor last saw them.
    - ``seen``: the versions of files and boards that the actor has seen.
    - ``reads_only``: whether the toolbox offers only tools that change nothing.
    """

    call: CallContext
    zones: Services
    language: Language
    tool_names: Callable[[], Collection[str]]
    view: ReplicaView
    seen: LastSeenVersions = field(default_factory=LastSeenVersions)
    reads_only: bool = False

    @property
    def actor(self) -> str:
        """The id of the caller."""
        return self.call.actor

    @property
    def texts(self) -> Catalogue:
        """The core's texts in the caller's language."""
        return catalogue(self.language)
