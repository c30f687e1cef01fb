"""`AgentVersions`: the versions of files, boards and documents that agents have seen. In memory, no I/O."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from threading import Lock
from typing import Final, NamedTuple, TypeAlias

from watchroom.kernel.rules.details import get_int, get_list, get_text, met_version
from watchroom.kernel.zones import DOCUMENTS, SECTIONED, ZONES
from watchroom.model import NOTICES, Row, Zone, actor_kind

NOTICED: Final[tuple[Zone, ...]] = tuple(zone for zone, spec in ZONES.items() if spec.show_call[0])
"""Zones in which agents get notices of changes by others."""
MAX_PATHS: Final = 50
"""Maximum number of paths per agent. The most recently seen are kept."""
_MAX_AGENTS: Final = 200
PathKey: TypeAlias = tuple[Zone, str]


class AgentVersion(NamedTuple):
    """The versions of a path that an agent knows.

    - ``seen``: the newest version that it read or wrote.
    - ``notified``: the newest version that it was notified of, 0 for none.
    """

    seen: int
    notified: int = 0

    @property
    def known(self) -> int:
        """The version after which changes are news."""
        return max(self)


class AgentVersions:
    """The versions of paths that agents know, derived from the rows of agents. May be used from any
    thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._agents: OrderedDict[str, OrderedDict[PathKey, AgentVersion]] = OrderedDict()
        self._loaded: set[str] = set()

    def record(self, row: Row) -> None:
        """Record what the actor of ``row`` saw: the version that it made, or that refused its own."""
        if row.version is None:
            version = met_version(row) if row.outcome == "conflict" else None
            self._see(row.actor, row.zone, row.path, version)
        elif row.zone in DOCUMENTS or (row.zone in SECTIONED and row.tool != ZONES[row.zone].write_tool):
            # The author of a change to a part does not know the versions since it last read the whole.
            self._see(row.actor, row.zone, row.path, row.version, after=row.version - 1)
        else:
            self._see(row.actor, row.zone, row.path, row.version)

    def record_read(self, actor: str, tool: str, zone: Zone, path: str, version: int | None) -> None:
        """Record that ``actor`` read ``version`` of ``path`` with ``tool``. None: it read no text."""
        if tool != ZONES[zone].read_old_tool:
            self._see(actor, zone, path, version)

    def _see(
        self, actor: str, zone: Zone, path: str, version: int | None, *, after: int | None = None
    ) -> None:
        """Record that ``actor`` saw ``version``. ``after``: if ``actor`` knows a version, it must be this
        one."""
        if version is None or zone not in NOTICED or actor_kind(actor) != "agent":
            return
        key = zone, path.partition(ZONES[zone].part_separator or "\0")[0]
        with self._lock:
            paths = self._paths_of(actor)
            known = paths.pop(key, None)
            if known is None:
                paths[key] = AgentVersion(version)
            elif after is None or known.known == after:
                paths[key] = known._replace(seen=max(known.seen, version))
            else:
                paths[key] = known
            if len(paths) > MAX_PATHS:
                paths.popitem(last=False)

    def load(self, agent: str, rows: Iterable[Row]) -> None:
        """Record the versions that ``agent`` knows according to ``rows`` of earlier processes, oldest
        first."""
        for row in rows:
            if row.actor != agent:
                continue
            if row.version is None and row.outcome == "ok":
                self.record_read(agent, row.tool, row.zone, row.path, row.base)
            else:
                self.record(row)
            for key, version in _notified(row):
                self.notify(agent, key, version)
        with self._lock:
            self._paths_of(agent)
            self._loaded.add(agent)

    def is_loaded(self, agent: str) -> bool:
        """Return whether the rows of earlier processes are known."""
        return agent in self._loaded

    def paths(self, agent: str) -> list[PathKey]:
        """Return the paths that ``agent`` has seen, the most recently seen last."""
        with self._lock:
            return [*self._agents.get(agent, ())]

    def find(self, agent: str, key: PathKey) -> AgentVersion | None:
        """Return the versions of the path ``key`` that ``agent`` knows, None if it has not seen the path."""
        with self._lock:
            return self._find(agent, key)

    def notify(self, agent: str, key: PathKey, version: int) -> bool:
        """Record that ``agent`` is notified of ``version``. Return False if it knows the version already."""
        with self._lock:
            known = self._find(agent, key)
            if known is None or known.known >= version:
                return False
            self._agents[agent][key] = known._replace(notified=version)
            return True

    def _find(self, agent: str, key: PathKey) -> AgentVersion | None:
        paths = self._agents.get(agent)
        return None if paths is None else paths.get(key)

    def _paths_of(self, agent: str) -> OrderedDict[PathKey, AgentVersion]:
        paths = self._agents.setdefault(agent, OrderedDict())
        self._agents.move_to_end(agent)
        if len(self._agents) > _MAX_AGENTS:
            forgotten, _ = self._agents.popitem(last=False)
            self._loaded.discard(forgotten)
        return paths


def _notified(row: Row) -> Iterable[tuple[PathKey, int]]:
    """Yield the paths and versions that ``row`` notified its actor of."""
    if f'"{NOTICES}"' not in row.detail_json:
        return
    for each in get_list(row.detail, NOTICES):
        if isinstance(each, dict):
            zone, path, version = get_text(each, "zone"), get_text(each, "path"), get_int(each, "version")
            if zone in NOTICED and version is not None:
                yield (zone, path), version
