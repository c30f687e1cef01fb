"""The interface of every journal, embedded or on a server. It hides SQL and files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from threading import Event
from typing import Final, NamedTuple, Protocol, TypeAlias

from watchroom.kernel.journal.side_stores import BlobStore, PresenceStore, SnapshotStore
from watchroom.model import Appended, Draft, Outcome, Row, Zone, is_step, outcome_of


class RowFilter(NamedTuple):
    """A filter of rows. A field that is None lets all rows pass.

    - ``path``: a part of the path.
    - ``since``: the earliest time, in nanoseconds since the epoch.
    - ``after``: only rows with larger numbers.
    - ``steps``: whether the steps of sessions and the output of commands pass.
    - ``text``: a part of the actor, tool, path, error or message. The case of ASCII letters is ignored.
    """

    actor: str | None = None
    zone: Zone | None = None
    path: str | None = None
    tool: str | None = None
    outcome: Outcome | None = None
    since: int | None = None
    after: int | None = None
    steps: bool = True
    text: str | None = None

    def admits(self, row: Row) -> bool:
        """Return whether ``row`` passes."""
        named = (
            (self.actor, row.actor),
            (self.zone, row.zone),
            (self.tool, row.tool),
            (self.outcome, outcome_of(row)),
        )
        if any(wanted is not None and wanted != found for wanted, found in named):
            return False
        if self.since is not None and row.time < self.since:
            return False
        if self.after is not None and row.seq <= self.after:
            return False
        if not self.steps and is_step(row):
            return False
        if self.path is not None and self.path not in row.path:
            return False
        fields = (row.actor, row.tool, row.path, row.error, row.message)
        return self.text is None or any(ascii_lower(self.text) in ascii_lower(each) for each in fields)


_UPPER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}


def ascii_lower(text: str) -> str:
    """Return ``text`` with ASCII letters in lower case."""
    return text.translate(_UPPER)


class Damage(NamedTuple):
    """A damage of the journal itself, and the affected path and version, if any."""

    what: str
    zone: Zone = "workspace"
    path: str = ""
    version: int | None = None


class ChangedPath(NamedTuple):
    """A path that got versions between two rows.

    - ``first``, ``last``: the oldest and the newest of these versions.
    - ``seq``: the row of the newest version.
    - ``actors``: the authors with their numbers of versions, in the order of their first versions.
    """

    zone: Zone
    path: str
    first: int
    last: int
    seq: int
    actors: tuple[tuple[str, int], ...]

    @property
    def before(self) -> int:
        """The version that was current before all of these versions, 0 if there was none."""
        return self.first - 1

    @property
    def versions(self) -> int:
        """The number of these versions."""
        return sum(count for _, count in self.actors)


NoteKey: TypeAlias = tuple[Zone, str, str, str]
"""Zone, path, actor and tool."""


BACKSTOP_SECONDS: Final = 5.0
"""Timeout of waits for rows. Readers then check again, because some media do not report all changes."""


class Changes(Protocol):
    """Waits for new rows of a journal. One thread waits, and any thread may wake or close it. See
    `Journal.changes`.

    changes = journal.changes(after=seq)
    while True:
        for row in journal.rows(seq):
            seq = row.seq
        changes.wait(BACKSTOP_SECONDS)
    """

    def wait(self, seconds: float) -> None:
        """Wait until there may be rows newer than the end of the last wait, until `wake` is called, or until
        ``seconds`` have passed."""
        ...

    def wake(self) -> None:
        """End the wait, or the next wait if no thread waits."""
        ...

    def close(self) -> None:
        """End the wait, and release its resources. May be repeated."""
        ...


class LocalChanges:
    """`Changes` that end only by `wake`."""

    def __init__(self) -> None:
        self._woken = Event()

    def wait(self, seconds: float) -> None:
        self._woken.wait(seconds)
        self._woken.clear()

    def wake(self) -> None:
        self._woken.set()

    def close(self) -> None:
        self._woken.set()


class Journal(Protocol):
    """Rows in an order that is the same for all readers.

    Once a reader has seen row N, no new row below N appears. An implementation whose transactions may commit
    out of order must hold rows back until this is guaranteed.
    """

    @property
    def presence(self) -> PresenceStore:
        """The leases of processes."""
        ...

    @property
    def snapshots(self) -> SnapshotStore:
        """The snapshots of readers' states."""
        ...

    @property
    def blobs(self) -> BlobStore:
        """The bytes of binary files."""
        ...

    @property
    def is_shared(self) -> bool:
        """Whether processes on other machines may also use the journal."""
        ...

    def append(self, drafts: Sequence[Draft], *, all_or_nothing: bool = False) -> list[Appended]:
        """Append ``drafts`` in one atomic commit. Return the outcome of each, in order.

        The commit is synced to disk if any draft is durable. `watchroom.kernel.rules.append` has the whole
        rule:

        - A `Write` whose expected version is not the current version becomes a row with the outcome
          ``conflict`` and the refused content.
        - A `Write` with a condition that does not hold, or with a path that is blocked by another file,
          becomes a row with the outcome ``failed``. Zones that are on disk first (`ZoneSpec`) are never
          blocked.
        - A draft with a key that its actor used before makes no new row, and returns the earlier row.

        Raise `JournalError`, `WorkspaceLocked`, and `InvalidPath` if a `Write` names a path that breaks the
        rules of its zone (`watchroom.kernel.rules.row_files`). If ``all_or_nothing``, raise `HeadsMoved` if a
        `Write` would be refused. After an error other than `OutcomeUnknown`, no draft became a row.

            ((row, head),) = journal.append([Write("alice", "collab_write", "collab", "plan.md", "x")])
        """
        ...

    def changes(self, after: int | None = None) -> Changes:
        """Return an object that waits for new rows of any process. The caller closes it.

        If rows after ``after`` already exist, the first wait ends immediately.
        """
        ...

    def exclusive(self, key: str) -> AbstractContextManager[None]:
        """Hold the lock of ``key`` among all threads and processes. Appends are not blocked.

        For sections of milliseconds that read, decide and append. Never call a caller's code while holding
        it. Not re-entrant. If the holder dies, the lock is released. Raise `WorkspaceLocked` after 10
        seconds.
        """
        ...

    def claim(self, key: str) -> AbstractContextManager[bool]:
        """Claim ``key`` while the context lasts, which may be hours.

        The value of the context is True if the claim succeeded, and False if another thread or process has
        it. Never waits. If the holder dies, the claim ends.
        """
        ...

    def is_claimed(self, key: str) -> bool:
        """Return whether ``key`` is claimed."""
        ...

    def now(self) -> int:
        """Return the time of the journal's clock, in nanoseconds since the epoch.

        All users of the journal have the same clock. It is never behind the newest row.
        """
        ...

    def last_seq(self) -> int:
        """Return the number of the newest row, 0 in an empty journal."""
        ...

    def seq_at(self, time_ns: int) -> int:
        """Return the number of the last row that is not newer than ``time_ns``, 0 if there is none."""
        ...

    def row(self, seq: int) -> Row | None:
        """Return the row with the number ``seq``, None if there is none."""
        ...

    def rows(self, after: int = 0, *, until: int | None = None, limit: int = 1000) -> list[Row]:
        """Return at most ``limit`` rows with ``after`` < seq ≤ ``until``, oldest first. Numbers may have
        gaps."""
        ...

    def rows_before(self, before: int, *, limit: int = 1000, only: RowFilter | None = None) -> list[Row]:
        """Return at most ``limit`` rows with seq < ``before`` that pass ``only``, newest first."""
        ...

    def head(self, zone: Zone, path: str, *, as_of: int | None = None) -> Row | None:
        """Return the row of the current version of ``path`` in ``zone``, or of the version that was current
        at row ``as_of``; None if there is none."""
        ...

    def heads_of(self, paths: Sequence[tuple[Zone, str]]) -> list[Row | None]:
        """Return the heads of ``paths`` (zone and path) at one moment, in their order, None for a path
        without versions. One query."""
        ...

    def heads_with_content(self, paths: Sequence[tuple[Zone, str]]) -> list[tuple[Row, str | None] | None]:
        """Return the heads of ``paths`` as `heads_of` does, each with its content (None: deleted). Raise
        `JournalDamaged`."""
        ...

    def heads(self, zone: Zone, prefix: str = "", *, as_of: int | None = None) -> Iterator[Row]:
        """Yield the head of every path of ``zone`` that starts with ``prefix``, sorted by path. Deletions are
        included.

        ``as_of``: yield the heads at that row.
        """
        ...

    def version(self, zone: Zone, path: str, version: int) -> Row | None:
        """Return the row of ``version`` of ``path`` in ``zone``, None if there is none."""
        ...

    def history(
        self, zone: Zone, path: str, *, after_version: int = 0, limit: int | None = None
    ) -> list[Row]:
        """Return at most ``limit`` rows of versions of ``path`` in ``zone`` after ``after_version``, in
        order."""
        ...

    def versions(
        self, zone: Zone, path: str, *, after: int = 0, until: int | None = None, limit: int = 1000
    ) -> list[tuple[Row, str | None]]:
        """Return at most ``limit`` versions of ``path`` in ``zone`` with ``after`` < version ≤ ``until``, in
        order, each with its content. Raise `JournalDamaged`."""
        ...

    def changed_paths(
        self, after: int, until: int, *, zones: Sequence[Zone] | None = None
    ) -> list[ChangedPath]:
        """Return each path with new versions in ``after`` < seq ≤ ``until``, sorted by zone and path.

        ``zones``: default all. The rows in this range are read once for all paths.
        """
        ...

    def refused(
        self, zone: Zone, path: str, *, after: int = 0, before: int | None = None, limit: int = 1000
    ) -> list[Row]:
        """Return at most ``limit`` rows on ``path`` in ``zone`` that were refused or failed, newest first,
        with ``after`` < seq < ``before``."""
        ...

    def last_note(self, zone: Zone, path: str, actor: str, tool: str) -> Row | None:
        """Return the newest row in the result of `notes`, None if there is none."""
        ...

    def last_notes(self, keys: Sequence[NoteKey]) -> list[Row | None]:
        """Return `last_note` of each of ``keys`` (zone, path, actor, tool), in their order. One query."""
        ...

    def heads_and_notes(
        self, paths: Sequence[tuple[Zone, str]], keys: Sequence[NoteKey]
    ) -> tuple[list[Row | None], list[Row | None]]:
        """Return `heads_of` of ``paths`` and `last_notes` of ``keys`` at one moment. One query."""
        ...

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
        """Return at most ``limit`` successful notes of ``tool`` by ``actor`` on ``path`` in ``zone``, newest
        first, with ``after`` < seq ≤ ``until``. Notes are rows that made no version."""
        ...

    def topic(
        self, name: str, *, after: int = 0, until: int | None = None, limit: int | None = None
    ) -> list[Row]:
        """Return at most ``limit`` rows of the topic ``name`` (see `watchroom.kernel.journal.topics`), newest
        first, with ``after`` < seq ≤ ``until``."""
        ...

    def newest_of_topics(self, prefix: str) -> list[Row]:
        """Return the newest row of each topic whose name begins with ``prefix`` (not empty), oldest first.
        One query."""
        ...

    def rows_of_call(self, actor: str, call: str) -> list[Row]:
        """Return the rows of the tool call with the key ``call`` by ``actor``, newest first."""
        ...

    def open_items(self, zone: Zone, holder: str = "") -> list[Row]:
        """Return the current versions in ``zone`` that are open for ``holder``, in order of path:

        - ``handoff``: deliveries that this receiver has not acknowledged.
        - ``buffer``: open buffers of this agent.
        - ``agent``: agents of this task, including ended agents.
        - ``command``: commands of this task that have not ended.
        - ``task``: open tasks, for no holder.

        Closed items are not read.
        """
        ...

    def settled(self, zone: Zone, path: str, *, after: int = 0, limit: int = 100) -> list[Row]:
        """Return at most ``limit`` rows in which people settled conflicts of ``path`` in ``zone`` (resolved,
        dismissed, reverted), newest first, with seq > ``after``. Fast without such rows."""
        ...

    def content(self, seq: int) -> str | None:
        """Return the content of row ``seq``, accepted or refused; None if it has none."""
        ...

    def problems(self) -> list[Damage]:
        """Return the damages of the journal: damaged pages, gaps in versions, and contents that do not match
        their checksum. Reads the whole journal."""
        ...

    def close(self) -> None:
        """Release all resources, including the lease of this process."""
        ...
