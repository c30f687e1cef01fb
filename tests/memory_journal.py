"""A journal in the memory of one process, for tests, and as the shortest description of a backend.

It is not durable. Its numbers can have gaps, as those of a server.
"""

from __future__ import annotations

import secrets
import time
from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from threading import Condition as ThreadCondition
from threading import Lock, RLock
from typing import Final
from weakref import WeakSet

from watchroom.errors import WorkspaceLocked
from watchroom.kernel.journal.protocol import ChangedPath, Changes, Damage, LocalChanges, NoteKey, RowFilter
from watchroom.kernel.journal.side_stores import Presence, Snapshot, excess_snapshots, max_snapshots
from watchroom.kernel.journal.sql import VersionGroup, join_groups
from watchroom.kernel.journal.topics import holder_of, is_open_item, topic_of
from watchroom.kernel.rules import append as rules
from watchroom.model import CALL, SETTLING_TOOLS, Appended, Draft, Row, Zone
from watchroom.platform.process_lock import LOCK_SECONDS
from watchroom.validation import sha256

_FOREVER: Final = 2**63 - 1


class MemoryJournal:
    """`Journal` in the memory of this process. Thread-safe.

    ``gap``: numbers to leave out before each append, because readers must not rely on consecutive numbers.
    """

    def __init__(self, gap: int = 0) -> None:
        self._gap = gap
        self._lock = RLock()
        self._rows: list[Row] = []
        self._contents: dict[int, str] = {}
        self._versions: dict[tuple[Zone, str], list[Row]] = {}
        self._paths: dict[Zone, list[bytes]] = defaultdict(list)
        self._refused: dict[tuple[Zone, str], list[Row]] = defaultdict(list)
        self._notes: dict[NoteKey, list[Row]] = defaultdict(list)
        self._topics: dict[str, list[Row]] = defaultdict(list)
        self._settled: dict[tuple[Zone, str], list[Row]] = defaultdict(list)
        self._calls: dict[tuple[str, str], list[Row]] = defaultdict(list)
        self._open: dict[tuple[Zone, str], dict[str, Row]] = defaultdict(dict)
        self._keyed: dict[tuple[str, str], Row] = {}
        self._waiting: WeakSet[LocalChanges] = WeakSet()
        self._held: set[str] = set()
        self._claimed: set[str] = set()
        self._released = ThreadCondition(Lock())
        self.presence = MemoryPresence()
        self.snapshots = MemorySnapshots()
        self.blobs = MemoryBlobs()

    @property
    def is_shared(self) -> bool:
        return False

    def append(self, drafts: Sequence[Draft], *, all_or_nothing: bool = False) -> list[Appended]:
        with self._lock:
            last = self.last_seq()
            now = max(time.time_ns(), self._rows[-1].time if self._rows else 0)
            appended = rules.append(drafts, self, last + self._gap, now, all_or_nothing=all_or_nothing)
            for draft, (row, _) in zip(drafts, appended, strict=True):
                if row.seq > last:
                    last = row.seq
                    self._keep(row, draft)
            for changes in self._waiting:
                changes.wake()
        return appended

    def _keep(self, row: Row, draft: Draft) -> None:
        self._rows.append(row)
        place = row.zone, row.path
        if draft.content is not None:
            self._contents[row.seq] = draft.content
        if row.version is not None:
            if place not in self._versions:
                insort(self._paths[row.zone], row.path.encode())
            self._versions.setdefault(place, []).append(row)
        elif row.outcome == "ok":
            self._notes[*place, row.actor, row.tool].append(row)
        if row.outcome != "ok":
            self._refused[place].append(row)
        elif row.tool in SETTLING_TOOLS:
            self._settled[place].append(row)
        topic = topic_of(row)
        if topic is not None:
            self._topics[topic].append(row)
        detail = row.detail
        if isinstance(call := detail.get(CALL), str):
            self._calls[row.actor, call].append(row)
        if draft.key:
            self._keyed[row.actor, draft.key] = row
        self._keep_open_items(row)

    def _keep_open_items(self, row: Row) -> None:
        if row.version is not None and row.zone in ("handoff", "buffer", "task", "agent", "command"):
            items = self._open[row.zone, holder_of(row)]
            items.pop(row.path, None)
            if is_open_item(row):
                items[row.path] = row
        elif row.zone == "handoff" and row.tool == "acknowledge_handoff" and row.outcome == "ok":
            items = self._open["handoff", row.actor]
            known = items.get(row.path)
            if known is not None and (known.version or 0) <= (row.base or 0):
                del items[row.path]

    def live_below(self, zone: Zone, path: str) -> Iterable[str]:
        """See `watchroom.kernel.rules.append.Heads`."""
        return (head.path for head in self.heads(zone, path + "/") if not head.deleted)

    def appended(self, actor: str, key: str) -> Appended | None:
        """See `watchroom.kernel.rules.append.Heads`."""
        row = self._keyed.get((actor, key))
        return None if row is None else Appended(row, self.head(row.zone, row.path, as_of=row.seq - 1))

    def changes(self, after: int | None = None) -> Changes:
        changes = LocalChanges()
        with self._lock:
            self._waiting.add(changes)
            if after is not None and self.last_seq() > after:
                changes.wake()
        return changes

    @contextmanager
    def exclusive(self, key: str) -> Iterator[None]:
        with self._released:
            if not self._released.wait_for(lambda: key not in self._held, LOCK_SECONDS):
                raise WorkspaceLocked(seconds=round(LOCK_SECONDS), holder="-")
            self._held.add(key)
        try:
            yield
        finally:
            with self._released:
                self._held.remove(key)
                self._released.notify_all()

    @contextmanager
    def claim(self, key: str) -> Iterator[bool]:
        with self._lock:
            is_held = key not in self._claimed
            self._claimed.add(key)
        try:
            yield is_held
        finally:
            if is_held:
                with self._lock:
                    self._claimed.remove(key)

    def is_claimed(self, key: str) -> bool:
        return key in self._claimed

    def now(self) -> int:
        with self._lock:
            return max(time.time_ns(), self._rows[-1].time if self._rows else 0)

    def last_seq(self) -> int:
        with self._lock:
            return self._rows[-1].seq if self._rows else 0

    def seq_at(self, time_ns: int) -> int:
        with self._lock:
            index = bisect_right(self._rows, time_ns, key=lambda row: row.time)
            return self._rows[index - 1].seq if index else 0

    def row(self, seq: int) -> Row | None:
        found = self.rows(seq - 1, until=seq, limit=1)
        return found[0] if found else None

    def rows(self, after: int = 0, *, until: int | None = None, limit: int = 1000) -> list[Row]:
        with self._lock:
            start = _index_after(self._rows, after)
            end = len(self._rows) if until is None else _index_after(self._rows, until)
            return self._rows[start : min(end, start + limit)]

    def rows_before(self, before: int, *, limit: int = 1000, only: RowFilter | None = None) -> list[Row]:
        with self._lock:
            indexes = range(_index_after(self._rows, before - 1) - 1, -1, -1)
            earlier = map(self._rows.__getitem__, indexes)
            return list(islice((row for row in earlier if only is None or only.admits(row)), limit))

    def head(self, zone: Zone, path: str, *, as_of: int | None = None) -> Row | None:
        with self._lock:
            versions = self._versions.get((zone, path), [])
            count = len(versions) if as_of is None else _index_after(versions, as_of)
            return versions[count - 1] if count else None

    def heads_of(self, paths: Sequence[tuple[Zone, str]]) -> list[Row | None]:
        with self._lock:
            return [self.head(zone, path) for zone, path in paths]

    def heads_with_content(self, paths: Sequence[tuple[Zone, str]]) -> list[tuple[Row, str | None] | None]:
        with self._lock:
            return [head and (head, self._contents.get(head.seq)) for head in self.heads_of(paths)]

    def version(self, zone: Zone, path: str, version: int) -> Row | None:
        with self._lock:
            versions = self._versions.get((zone, path), [])
            return versions[version - 1] if 0 < version <= len(versions) else None

    def heads(self, zone: Zone, prefix: str = "", *, as_of: int | None = None) -> Iterator[Row]:
        start = prefix.encode()
        with self._lock:
            paths = self._paths[zone]
            index = bisect_left(paths, start)
            found = []
            while index < len(paths) and paths[index].startswith(start):
                found.append(self.head(zone, paths[index].decode(), as_of=as_of))
                index += 1
        return (head for head in found if head is not None)

    def history(
        self, zone: Zone, path: str, *, after_version: int = 0, limit: int | None = None
    ) -> list[Row]:
        with self._lock:
            later = self._versions.get((zone, path), [])[max(0, after_version) :]
        return later if limit is None else later[:limit]

    def versions(
        self, zone: Zone, path: str, *, after: int = 0, until: int | None = None, limit: int = 1000
    ) -> list[tuple[Row, str | None]]:
        with self._lock:
            found = self._versions.get((zone, path), [])[max(0, after) : until][:limit]
            return [(row, self._contents.get(row.seq)) for row in found]

    def changed_paths(
        self, after: int, until: int, *, zones: Sequence[Zone] | None = None
    ) -> list[ChangedPath]:
        found: dict[tuple[Zone, str, str], list[Row]] = defaultdict(list)
        for row in self.rows(after, until=until, limit=_FOREVER):
            if row.version is not None and (zones is None or row.zone in zones):
                found[row.zone, row.path, row.actor].append(row)
        return join_groups(
            VersionGroup(*place, rows[0].version or 0, rows[-1].version or 0, rows[-1].seq, len(rows))
            for place, rows in found.items()
        )

    def refused(
        self, zone: Zone, path: str, *, after: int = 0, before: int | None = None, limit: int = 1000
    ) -> list[Row]:
        until = None if before is None else before - 1
        return self._newest(self._refused.get((zone, path)), after, until, limit)

    def last_note(self, zone: Zone, path: str, actor: str, tool: str) -> Row | None:
        return next(iter(self.notes(zone, path, actor, tool, limit=1)), None)

    def last_notes(self, keys: Sequence[NoteKey]) -> list[Row | None]:
        with self._lock:
            return [self.last_note(*key) for key in keys]

    def heads_and_notes(
        self, paths: Sequence[tuple[Zone, str]], keys: Sequence[NoteKey]
    ) -> tuple[list[Row | None], list[Row | None]]:
        with self._lock:
            return self.heads_of(paths), self.last_notes(keys)

    def notes(
        self,
        zone: Zone,
        path: str,
        actor: str,
        tool: str,
        *,
        after: int = 0,
        until: int | None = None,
        limit: int | None = None,
    ) -> list[Row]:
        return self._newest(self._notes.get((zone, path, actor, tool)), after, until, limit)

    def topic(
        self, name: str, *, after: int = 0, until: int | None = None, limit: int | None = None
    ) -> list[Row]:
        return self._newest(self._topics.get(name), after, until, limit)

    def newest_of_topics(self, prefix: str) -> list[Row]:
        with self._lock:
            newest = [rows[-1] for name, rows in self._topics.items() if rows and name.startswith(prefix)]
        return sorted(newest, key=lambda row: row.seq)

    def rows_of_call(self, actor: str, call: str) -> list[Row]:
        return self._newest(self._calls.get((actor, call)), 0, None, None)

    def open_items(self, zone: Zone, holder: str = "") -> list[Row]:
        with self._lock:
            items = self._open.get((zone, holder), {})
            return [items[path] for path in sorted(items, key=str.encode)]

    def settled(self, zone: Zone, path: str, *, after: int = 0, limit: int = 100) -> list[Row]:
        return self._newest(self._settled.get((zone, path)), after, None, limit)

    def content(self, seq: int) -> str | None:
        with self._lock:
            return self._contents.get(seq)

    def problems(self) -> list[Damage]:
        return []

    def close(self) -> None:
        """Do nothing: the rows exist as long as the journal."""

    def _newest(self, rows: list[Row] | None, after: int, until: int | None, limit: int | None) -> list[Row]:
        """Return the rows with ``after`` < seq ≤ ``until`` of ``rows``, newest first. ``rows`` are in
        order."""
        with self._lock:
            found = rows or []
            end = _index_after(found, _FOREVER if until is None else until)
            newest = found[_index_after(found, after) : end][::-1]
        return newest if limit is None else newest[:limit]


def _index_after(rows: Sequence[Row], seq: int) -> int:
    """Return the number of ``rows`` (in order) up to ``seq``."""
    return bisect_right(rows, seq, key=lambda row: row.seq)


class MemoryPresence:
    """`PresenceStore` of this process only."""

    def __init__(self) -> None:
        self._held: Presence | None = None

    def hold(self, resume: str = "") -> str:
        if self._held is None:
            self._held = Presence(secrets.token_hex(6), True, 0, "", time.time_ns(), resume)
        return self._held.id

    def all(self) -> list[Presence]:
        return [] if self._held is None else [self._held]

    def forget(self, lease: str) -> None:
        """Do nothing: a lease lasts as long as the journal."""


class MemorySnapshots:
    """`SnapshotStore` in memory."""

    def __init__(self) -> None:
        self._kept: dict[str, dict[int, bytes]] = defaultdict(dict)

    @property
    def forms(self) -> list[str]:
        """The formats that have snapshots."""
        return [*self._kept]

    def newest(self, form: str, *, as_of: int | None = None) -> Snapshot | None:
        kept = self._kept.get(form, {})
        seq = max((each for each in [*kept] if as_of is None or each <= as_of), default=None)
        return None if seq is None else Snapshot(seq, kept[seq])

    def keep(self, form: str, seq: int, data: bytes) -> None:
        kept = self._kept[form]
        kept[seq] = data
        for each in excess_snapshots(sorted(kept), max_snapshots(len(data))):
            del kept[each]


class MemoryBlobs:
    """`BlobStore` in memory, of any size."""

    def __init__(self) -> None:
        self._kept: dict[str, bytes] = {}

    def keep(self, blobs: Sequence[bytes]) -> None:
        for data in blobs:
            checksum = sha256(data)
            self._kept.pop(checksum, None)
            self._kept[checksum] = data

    def find(self, checksum: str) -> bytes | None:
        return self._kept.get(checksum)

    def kept(self, among: Sequence[str] | None = None) -> list[str]:
        return [each for each in self._kept if among is None or each in among]
