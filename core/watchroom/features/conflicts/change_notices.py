"""`ChangeNotices`: agents are notified when others change a file, board or document that they have seen."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from threading import Lock
from typing import Final, NamedTuple, TypeAlias

from watchroom.algorithms.merge import diff_lines
from watchroom.features.boards.rows import BOARD_ZONE, PARTIAL_TOOLS
from watchroom.features.config.store import Store
from watchroom.features.documents.rows import DOCUMENT_ZONE
from watchroom.features.files.rows import SHARED_FILE_ZONE
from watchroom.kernel.journal import NoteKey, RowFilter
from watchroom.kernel.rules.details import met_version
from watchroom.kernel.zones import ZONES
from watchroom.model import MAX_ROW, Json, Note, Row, Zone

NOTIFY_OF_CHANGE: Final = "notify_of_change"
"""The tool of a note that an agent was notified of a change. Its base is the version."""
MAX_NOTICES: Final = 5
"""Maximum number of paths in the notices of a call. The others follow with later calls."""
_CALLS: Final[Mapping[Zone, tuple[str, str]]] = {
    SHARED_FILE_ZONE: ("collab_read", "filepath"),
    # The parameter has the name of the zone.
    BOARD_ZONE: ("whiteboard_read", BOARD_ZONE),
    DOCUMENT_ZONE: ("realtime_get_document_snapshot", "doc_id"),
}
"""By zone, the tool that shows the current version, and its parameter. Clients' own tools have notices of
their own for files in working trees."""
_MAX_ROWS: Final = 500
"""Maximum number of new rows that a call reads. If there are more, it asks for the heads instead."""
_MAX_OLD_ROWS: Final = 1500
"""The number of newest rows that an agent's first call in a process searches for changes by others."""
_MAX_LOOKUPS: Final = 20
"""Maximum number of changed paths per call for which the agent's earlier reads and versions are looked up."""
_MAX_OWN_VERSIONS: Final = 20
"""The number of newest versions of a path that are searched for the agent's own."""
_MAX_PATHS: Final = 500
"""Maximum number of paths per agent. The most recently seen are kept."""
_MAX_AGENTS: Final = 200
_MAX_VERSIONS: Final = 50
_MAX_NAMED: Final = 5
_MAX_BYTES: Final = 200_000
"""Maximum size of a text whose changed lines are counted, because the caller waits."""
_Key: TypeAlias = tuple[Zone, str]


class ChangeNotice(NamedTuple):
    """A path that others changed since an agent saw it.

    - ``seen``, ``version``: the version that the agent saw, and the current one.
    - ``actors``: the authors of the versions in between.
    - ``lines``: the number of changed lines, None if it is not known.
    """

    zone: Zone
    path: str
    seen: int
    version: int
    actors: tuple[str, ...]
    lines: int | None

    @property
    def detail(self) -> dict[str, Json]:
        """The notice as a field of a result."""
        tool, name = _CALLS[self.zone]
        call = f"{tool} {json.dumps({name: self.path}, ensure_ascii=False)}"
        fields: dict[str, Json] = {"path": self.path, "version": self.version, "seen": self.seen}
        fields["by"] = list[Json](self.actors)
        return {**fields, **({} if self.lines is None else {"lines": self.lines}), "call": call}


class _Sight:
    """What an agent has seen, and what others have written since."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.checked = -1
        self.seen: OrderedDict[_Key, int] = OrderedDict()
        """By path: the version that the agent has seen, 0 if it has seen none."""
        self.written: OrderedDict[_Key, int] = OrderedDict()

    def apply(self, agent: str, rows: Iterable[Row]) -> None:
        """Apply ``rows``, oldest first."""
        for row in rows:
            self.checked = max(self.checked, row.seq)
            if row.zone not in _CALLS:
                continue
            key = row.zone, row.path.partition("/")[0] if row.zone == DOCUMENT_ZONE else row.path
            if row.actor != agent:
                _raise_to(self.written, key, row.version)
            elif not _is_partial(row) or self.seen.get(key, 0) in (0, (row.version or 0) - 1):
                # Whoever changes a part does not know the versions between its last read and its own.
                _raise_to(self.seen, key, _seen_version(row))

    def find_changed(self) -> list[_Key]:
        """Return the paths that others changed, the most recently changed last."""
        return [key for key, version in self.written.items() if 0 < self.seen.get(key, 0) < version]


def _raise_to(versions: OrderedDict[_Key, int], key: _Key, version: int | None) -> None:
    if version is None:
        return
    versions[key] = max(version, versions.get(key, 0))
    versions.move_to_end(key)
    if len(versions) > _MAX_PATHS:
        versions.popitem(last=False)


def _is_partial(row: Row) -> bool:
    """Return whether ``row`` is a version that its author made without reading the whole text."""
    return row.version is not None and (row.zone == DOCUMENT_ZONE or row.tool in PARTIAL_TOOLS)


def _seen_version(row: Row) -> int | None:
    """Return the version that the actor of ``row`` has seen, None if it has seen none."""
    if row.version is not None:
        return row.version
    if row.outcome == "conflict":
        return met_version(row)
    is_reading = row.zone == DOCUMENT_ZONE or row.tool in (ZONES[row.zone].read_tool, NOTIFY_OF_CHANGE)
    return row.base if row.outcome == "ok" and is_reading else None


class ChangeNotices:
    """The changes that agents have not been notified of. Usable from any thread.

    What an agent has seen is derived from its rows. A call reads the rows since the agent's last call, in one
    query. It asks more only about paths that others changed. ``store``: the journal.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = Lock()
        self._sights: OrderedDict[str, _Sight] = OrderedDict()

    def take(self, agent: str) -> list[ChangeNotice]:
        """Return the changes by others that ``agent`` has not been notified of, at most `MAX_NOTICES`, each
        once. Raise `JournalError`, `WorkspaceLocked`."""
        sight = self._sight_of(agent)
        if not sight.lock.acquire(blocking=False):
            # Another call of the agent takes them.
            return []
        try:
            self._update(sight, agent)
            # The settings are read only now, because that is another query.
            if not sight.find_changed() or not self._store.registry.current().change_notices:
                return []
            # The agent's newest reads may not be rows yet.
            self._store.commits.flush()
            self._update(sight, agent)
            found = [self._describe(agent, key, sight) for key in sight.find_changed()[-MAX_NOTICES:]]
            for each in found:
                note = Note(agent, NOTIFY_OF_CHANGE, each.zone, each.path, base=each.version, durable=False)
                self._store.commits.note(note)
                _raise_to(sight.seen, (each.zone, each.path), each.version)
            return found
        finally:
            sight.lock.release()

    def _sight_of(self, agent: str) -> _Sight:
        with self._lock:
            sight = self._sights.setdefault(agent, _Sight())
            self._sights.move_to_end(agent)
            if len(self._sights) > _MAX_AGENTS:
                self._sights.popitem(last=False)
            return sight

    def _update(self, sight: _Sight, agent: str) -> None:
        """Apply the rows since the last call."""
        journal = self._store.journal
        if sight.checked < 0:
            sight.checked = max(0, journal.last_seq() - _MAX_OLD_ROWS)
        only = RowFilter(after=sight.checked, steps=False)
        rows = journal.rows_before(MAX_ROW, limit=_MAX_ROWS, only=only)
        sight.apply(agent, reversed(rows))
        if len(rows) == _MAX_ROWS and sight.seen:
            heads = journal.heads_of([*sight.seen])
            sight.apply(agent, (head for head in heads if head is not None))
        self._look_up(sight, agent)

    def _look_up(self, sight: _Sight, agent: str) -> None:
        """Find what the agent saw in earlier processes of the paths that others changed."""
        unknown = [key for key in sight.written if key not in sight.seen][-_MAX_LOOKUPS:]
        if not unknown:
            return
        journal = self._store.journal
        keys: list[NoteKey] = [
            (zone, path, agent, tool)
            for zone, path in unknown
            for tool in (_CALLS[zone][0], NOTIFY_OF_CHANGE)
        ]
        notes = journal.last_notes(keys)
        for at, (zone, path) in enumerate(unknown):
            after = max(0, sight.written[zone, path] - _MAX_OWN_VERSIONS)
            versions = journal.history(zone, path, after_version=after, limit=_MAX_OWN_VERSIONS)
            own = [row.version or 0 for row in versions if row.actor == agent]
            bases = [note.base or 0 for note in notes[2 * at : 2 * at + 2] if note is not None]
            _raise_to(sight.seen, (zone, path), max((*own, *bases), default=0))

    def _describe(self, agent: str, key: _Key, sight: _Sight) -> ChangeNotice:
        (zone, path), seen, version = key, sight.seen[key], sight.written[key]
        versions = self._store.journal.history(zone, path, after_version=seen - 1, limit=_MAX_VERSIONS)
        head = self._store.journal.version(zone, path, version)
        newer = [*versions[1:], *([head] if head is not None else [])]
        actors = tuple(dict.fromkeys(row.actor for row in newer if row.actor != agent))[:_MAX_NAMED]
        lines = None
        if zone != DOCUMENT_ZONE and head is not None and versions and versions[0].version == seen:
            lines = self._count_lines(versions[0], head)
        return ChangeNotice(zone, path, seen, version, actors, lines)

    def _count_lines(self, old: Row, new: Row) -> int | None:
        """Return the number of changed lines: for each change, the lines of the longer side."""
        if max(old.size or 0, new.size or 0) > _MAX_BYTES:
            return None
        changes = diff_lines(self._store.content(old), self._store.content(new))
        return sum(max(each.old_end - each.old_start, each.new_end - each.new_start) for each in changes)
