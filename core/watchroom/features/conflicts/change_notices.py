"""`ChangeNotices`: agents are notified when others change a file, board or document that they have seen."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from watchroom.features.config.agent_versions import NOTICED, AgentVersion, PathKey
from watchroom.features.config.store import Store
from watchroom.kernel.call_context import CallContext, CallNotices
from watchroom.kernel.journal import NoteKey, RowFilter
from watchroom.kernel.zones import ZONES
from watchroom.model import MAX_ROW, NOTICES, Json, Row, actor_kind
from watchroom.validation import escape_unstorable

MAX_NOTICES: Final = 5
"""Maximum number of paths in the notices of a result. The others follow with later results."""
LEFT: Final = "notices_left"
"""The field of a result with the number of changed paths whose notices follow later."""
_MAX_OLD_ROWS: Final = 1500
"""The number of newest rows that an agent's first call in a process reads."""
_MAX_LOOKUPS: Final = 20
"""Maximum number of paths changed in these rows that are looked up, because the agent saw them earlier."""
_MAX_VERSIONS: Final = 50
"""Maximum number of a path's newest versions that are searched for authors."""
_MAX_AUTHORS: Final = 5


class ChangeNotices:
    """The notices of changes by others. May be used from any thread. ``store``: the journal.

    The first row of a call records the notices in the call's result. So the rows of an agent determine what
    it knows, and a call without a row gives no notices.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def list_watched(self, agent: str) -> Sequence[PathKey]:
        """Return the paths whose changes ``agent`` is notified of. Empty for a person, and if a person
        switched notices off."""
        if actor_kind(agent) != "agent" or not self._store.registry.cached.change_notices:
            return ()
        if not self._store.agent_versions.is_loaded(agent):
            self._load(agent)
        return self._store.agent_versions.paths(agent)

    def _load(self, agent: str) -> None:
        """Find what ``agent`` saw in earlier processes."""
        self._store.commits.flush(agent)
        rows = self._store.journal.rows_before(MAX_ROW, limit=_MAX_OLD_ROWS, only=RowFilter(steps=False))
        own = [row for row in reversed(rows) if row.actor == agent]
        known = {(row.zone, row.path) for row in own if (row.version, row.base) != (None, None)}
        changed: dict[PathKey, int] = {}
        for row in rows:
            key = row.zone, row.path
            if row.version is not None and row.zone in NOTICED and row.actor != agent and key not in known:
                changed.setdefault(key, row.version)
        self._look_up(agent, [*changed.items()][:_MAX_LOOKUPS])
        self._store.agent_versions.load(agent, own)

    def _look_up(self, agent: str, changed: Sequence[tuple[PathKey, int]]) -> None:
        """Find the versions of ``changed`` paths that ``agent`` saw before the newest rows."""
        journal = self._store.journal
        keys: list[NoteKey] = [(*key, agent, ZONES[key[0]].show_call[0]) for key, _ in changed]
        notes = journal.last_notes(keys) if keys else []
        for ((zone, path), version), note in zip(changed, notes, strict=True):
            after = max(0, version - _MAX_VERSIONS)
            versions = journal.history(zone, path, after_version=after, limit=_MAX_VERSIONS)
            own = [row.version or 0 for row in versions if row.actor == agent]
            seen = max([*own, *([note.base or 0] if note is not None else [])], default=None)
            self._store.agent_versions.record_read(agent, "", zone, path, seen)

    def begin(self, call: CallContext, shown: PathKey | None) -> CallContext:
        """Return ``call`` with the notices for its result. ``shown``: the path whose current version the call
        returns. Raise `JournalError`."""
        caller, agent = call.caller, call.actor
        if caller is None or not caller.config.change_notices:
            return call
        news = sorted(self._find_news(agent, caller.watched, shown), key=lambda each: each.head.seq)
        found: list[tuple[_News, Mapping[str, Json]]] = []
        while news and len(found) < MAX_NOTICES:
            each = news.pop(0)
            if authors := self._find_authors(agent, each):
                found.append((each, _describe(each, authors)))

        def claim() -> Sequence[Mapping[str, Json]]:
            # Another call of the agent may have given them in the meantime.
            notify = self._store.agent_versions.notify
            return [notice for each, notice in found if notify(agent, each.key, each.version)]

        return replace(call, notices=CallNotices(claim, len(news))) if found else call

    def _find_news(self, agent: str, heads: Sequence[Row], shown: PathKey | None) -> Iterator[_News]:
        """Yield those of ``heads`` that ``agent`` does not know."""
        for head in heads:
            key = head.zone, head.path
            known = self._store.agent_versions.find(agent, key)
            if key != shown and known is not None and known.known < (head.version or 0):
                yield _News(head, known)

    def _find_authors(self, agent: str, news: _News) -> Sequence[str]:
        """Return the other authors of the versions that ``agent`` does not know."""
        (zone, path), version = news.key, news.version
        after = max(news.known.known, version - _MAX_VERSIONS)
        rows = self._store.journal.history(zone, path, after_version=after, limit=version - after)
        authors = dict.fromkeys(row.actor for row in rows if row.actor != agent)
        if not authors:
            self._store.agent_versions.record_read(agent, "", zone, path, version)
        return [*authors][:_MAX_AUTHORS]


class _News(NamedTuple):
    """The ``head`` of a path, and what an agent knows of the path."""

    head: Row
    known: AgentVersion

    @property
    def key(self) -> PathKey:
        return self.head.zone, self.head.path

    @property
    def version(self) -> int:
        return self.head.version or 0


def _describe(news: _News, authors: Sequence[str]) -> Mapping[str, Json]:
    """Return the notice as it is in a result."""
    zone, path = news.key
    tool, name = ZONES[zone].show_call
    call = f"{tool} {json.dumps({name: path}, ensure_ascii=False)}"
    return {
        "zone": zone,
        "path": path,
        "version": news.version,
        "seen": news.known.seen,
        "by": [escape_unstorable(each, 100) for each in authors],
        **({"deleted": True} if news.head.deleted else {"call": call}),
    }


def result_fields(call: CallContext) -> dict[str, Json]:
    """Return the fields of the result of ``call`` with the notices that its first row recorded."""
    notices = call.notices
    if notices is None or not notices.given:
        return {}
    left = {LEFT: notices.left} if notices.left else {}
    return {NOTICES: notices.given, **left}
