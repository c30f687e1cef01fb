"""What every journal offers, embedded or on a server. No SQL and no file shows through here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Final, NamedTuple, Protocol, TypeAlias

from watchroom.journal.changed_paths import ChangedPath
from watchroom.journal.snapshots import Snapshot
from watchroom.model import Appended, Draft, Outcome, Row, Zone, is_step, outcome_of


class RowFilter(NamedTuple):
    """Which rows to give; a field that is None lets all pass. ``path`` matches anywhere in the path."""

    actor: str | None = None
    zone: Zone | None = None
    path: str | None = None
    tool: str | None = None
    outcome: Outcome | None = None
    since: int | None = None
    """Nanoseconds since the epoch."""
    after: int | None = None
    """seq > after."""
    steps: bool = True
    """Whether the steps of agents' sessions pass, too, and what commands print."""
    text: str | None = None
    """Stands in the actor, tool, path, error or message, whatever its case (of ASCII letters)."""

    def admits(self, row: Row) -> bool:
        """Whether ``row`` passes."""
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
        return self.text is None or any(_ascii_lower(self.text) in _ascii_lower(each) for each in fields)


_UPPER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}


def _ascii_lower(text: str) -> str:
    return text.translate(_UPPER)


class Damage(NamedTuple):
    """Something that is broken in the journal itself, and the path and version that it concerns, if one."""

    what: str
    zone: Zone = "workspace"
    path: str = ""
    version: int | None = None


NoteKey: TypeAlias = tuple[Zone, str, str, str]
"""Zone, path, actor and tool."""


class Presence(NamedTuple):
    """The lease of a process that runs sessions, a society or commands. ``process`` is its number on
    ``machine``, ``since`` when it began (nanoseconds since the epoch); ``resume`` the command that goes on
    with what it ran, empty where there is none. ``is_alive`` is false once the lease has run out."""

    id: str
    is_alive: bool
    process: int
    machine: str
    since: int
    resume: str = ""


BACKSTOP_SECONDS: Final = 5.0
"""Whoever waits for rows looks anyway after so long: not every medium tells of all that happens to it."""


class Changes(Protocol):
    """Waits for new rows of a journal. One thread waits; any may wake or close it. Made by `Journal.changes`.

    changes = journal.changes(after=seq)
    while True:
        for row in journal.rows(seq):
            seq = row.seq
        changes.wait(BACKSTOP_SECONDS)
    """

    def wait(self, seconds: float) -> None:
        """Return when there may be rows that were not there when the last wait ended, when `wake` is called,
        or after ``seconds``."""
        ...

    def wake(self) -> None:
        """End the wait, or the next one if nobody waits now."""
        ...

    def close(self) -> None:
        """End the wait, and let go of what it needs. May be called again."""
        ...


class Journal(Protocol):
    """Rows in an order that all readers agree on.

    A reader that has seen row N will never be shown a new row below N: an implementation whose
    transactions may commit out of order holds rows back until that is certain.
    """

    @property
    def is_shared(self) -> bool:
        """Whether processes on other machines may use it too."""
        ...

    def append(self, drafts: Sequence[Draft], *, all_or_nothing: bool = False) -> list[Appended]:
        """Make all ``drafts`` rows in one atomic commit, synced to disk if any of them is durable; what
        became of each, in their order (`watchroom.rules.append` is the whole rule).

        A `Write` whose expected version is not the current one becomes a row of outcome ``conflict`` that
        carries the refused content. One with a condition that does not hold becomes one of outcome
        ``failed`` with the condition's error, and so does one whose path is blocked by another file, but
        in a zone that is on disk first (`ZoneSpec`). A draft with a key that its actor used before makes
        no row, and gives the earlier one. Raises `JournalError`, `WorkspaceLocked`: then no draft became a
        row; and where they are to become rows ``all_or_nothing``, `HeadsMoved` if a `Write` would be refused.
        Raises `InvalidPath` if a `Write` names a path that breaks the rules of its zone
        (`watchroom.rules.row_files`).

            ((row, head),) = journal.append([Write("alice", "collab_write", "collab", "plan.md", "x")])
        """
        ...

    def changes(self, after: int | None = None) -> Changes:
        """What waits for rows from now on, whichever process makes them. If there are rows after ``after``
        already, its first wait ends at once. It is to be closed."""
        ...

    def exclusive(self, key: str) -> AbstractContextManager[None]:
        """Hold off every thread and process that asks for the same ``key``; appends go on meanwhile.

        For what reads, decides, and appends, for milliseconds, and never around a caller's code. Not
        re-entrant; keys are independent of each other. A holder that dies lets go of it. Raises
        `WorkspaceLocked` after some 10 seconds.
        """
        ...

    def claim(self, key: str) -> AbstractContextManager[bool]:
        """Have ``key`` to oneself for as long as the context lasts, hours perhaps; gives whether that is so:
        not where any other thread or process has it. Waits for nobody. A holder that dies lets go of it."""
        ...

    def is_claimed(self, key: str) -> bool:
        """Whether anybody has claimed ``key``."""
        ...

    def now(self) -> int:
        """The time by the journal's clock, in nanoseconds since the epoch: the same for all who use the
        journal, and never before the newest row's."""
        ...

    def present(self, resume: str = "") -> str:
        """Hold a lease that says that this process is there, until the journal is closed; returns its id, the
        same each time. ``resume`` is the command that goes on with what it runs, if it dies: the first call's
        counts. Rows of what it runs carry the id. Raises `JournalError`."""
        ...

    def presences(self) -> list[Presence]:
        """The leases that are held by any process, and those that ran out and were not forgotten since. Asked
        after rows were read, a lease that rows name and that is missing was released."""
        ...

    def forget_presence(self, presence: str) -> None:
        """Forget the lease with the id ``presence``, which has run out, once a row says so. Nothing happens
        where it is held, or forgotten."""
        ...

    def last_seq(self) -> int:
        """The newest row's number, 0 in an empty journal."""
        ...

    def seq_at(self, time_ns: int) -> int:
        """The number of the last row that is not younger than ``time_ns``, 0 if there is none."""
        ...

    def row(self, seq: int) -> Row | None:
        """The row with the number ``seq``, None if there is none."""
        ...

    def rows(self, after: int = 0, *, until: int | None = None, limit: int = 1000) -> list[Row]:
        """At most ``limit`` rows with ``after`` < seq ≤ ``until``, oldest first. Numbers may have gaps."""
        ...

    def rows_before(self, before: int, *, limit: int = 1000, only: RowFilter | None = None) -> list[Row]:
        """At most ``limit`` rows with seq < ``before`` that pass ``only``, newest first."""
        ...

    def head(self, zone: Zone, path: str, *, as_of: int | None = None) -> Row | None:
        """The row of the current version of ``path`` in ``zone``, or of the one that was current at row
        ``as_of``; None where there is none."""
        ...

    def heads_of(self, paths: Sequence[tuple[Zone, str]]) -> list[Row | None]:
        """The heads of ``paths`` (zone and path), in their order, as they stand at one moment; None where a
        path has none. One question."""
        ...

    def heads_with_content(self, paths: Sequence[tuple[Zone, str]]) -> list[tuple[Row, str | None] | None]:
        """As `heads_of` of ``paths``, each with its content, None of which was deleted. Raises
        `JournalDamaged`."""
        ...

    def version(self, zone: Zone, path: str, version: int) -> Row | None:
        """The row that made this ``version`` of ``path`` in ``zone``, None if there is none."""
        ...

    def heads(self, zone: Zone, prefix: str = "", *, as_of: int | None = None) -> Iterator[Row]:
        """The head of every path of ``zone`` that starts with ``prefix`` (deleted ones too), in order of
        path; as they were at row ``as_of``, if it is given."""
        ...

    def history(
        self, zone: Zone, path: str, *, after_version: int = 0, limit: int | None = None
    ) -> list[Row]:
        """At most ``limit`` rows of the versions of ``path`` in ``zone`` after ``after_version``, in
        order."""
        ...

    def versions(
        self, zone: Zone, path: str, *, after: int = 0, until: int | None = None, limit: int = 1000
    ) -> list[tuple[Row, str | None]]:
        """At most ``limit`` versions of ``path`` in ``zone`` with ``after`` < version ≤ ``until``, in
        order, each with its content. Raises `JournalDamaged`."""
        ...

    def changed_paths(
        self, after: int, until: int, *, zones: Sequence[Zone] | None = None
    ) -> list[ChangedPath]:
        """What became of each path that got versions with ``after`` < seq ≤ ``until``, only of ``zones``
        where these are given; in the order of zones and paths. Reads the rows between once, however many
        paths there are."""
        ...

    def refused(
        self, zone: Zone, path: str, *, after: int = 0, before: int | None = None, limit: int = 1000
    ) -> list[Row]:
        """At most ``limit`` rows of what was refused or failed on ``path`` in ``zone``, newest first, with
        ``after`` < seq < ``before``."""
        ...

    def last_note(self, zone: Zone, path: str, actor: str, tool: str) -> Row | None:
        """The newest successful row of ``tool`` by ``actor`` on ``path`` in ``zone`` that made no version."""
        ...

    def last_notes(self, keys: Sequence[NoteKey]) -> list[Row | None]:
        """As `last_note`, for each of ``keys`` (zone, path, actor, tool), in their order. One question."""
        ...

    def heads_and_notes(
        self, paths: Sequence[tuple[Zone, str]], keys: Sequence[NoteKey]
    ) -> tuple[list[Row | None], list[Row | None]]:
        """As `heads_of` of ``paths`` and `last_notes` of ``keys``, as they stand at one moment. One
        question."""
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
        """At most ``limit`` successful rows of ``tool`` by ``actor`` on ``path`` in ``zone`` that made no
        version, newest first, with ``after`` < seq ≤ ``until``."""
        ...

    def topic(
        self, name: str, *, after: int = 0, until: int | None = None, limit: int | None = None
    ) -> list[Row]:
        """At most ``limit`` rows of the topic ``name`` (see `watchroom.journal.topics`), newest first, with
        ``after`` < seq ≤ ``until``."""
        ...

    def newest_of_topics(self, prefix: str) -> list[Row]:
        """The newest row of each topic whose name begins with ``prefix``, which is not empty, in order. One
        question."""
        ...

    def rows_of_call(self, actor: str, call: str) -> list[Row]:
        """The rows that ``actor`` made on behalf of the tool call with the key ``call``, newest first."""
        ...

    def open_items(self, zone: Zone, holder: str = "") -> list[Row]:
        """The current versions in ``zone`` that are open for ``holder``, in order of path: deliveries
        (``handoff``) that this receiver has not acknowledged, open buffers (``buffer``) of this agent,
        agents (``agent``) of this task, ended ones too, commands (``command``) of this task that have no
        end, open tasks (``task``, no holder). Nothing that was closed is read."""
        ...

    def settled(self, zone: Zone, path: str, *, after: int = 0, limit: int = 100) -> list[Row]:
        """At most ``limit`` rows by which people settled conflicts of ``path`` in ``zone`` (resolved,
        dismissed, reverted), newest first, with seq > ``after``. Quick where there are none."""
        ...

    def content(self, seq: int) -> str | None:
        """The content that row ``seq`` carries, accepted or refused; None if it carries none."""
        ...

    def problems(self) -> list[Damage]:
        """What is broken in the journal itself: damaged pages, gaps in versions, contents that do not
        match their checksum. Reads everything."""
        ...

    def snapshot(self, form: str, *, as_of: int | None = None) -> Snapshot | None:
        """The newest snapshot of the format ``form`` that is kept, or the newest at or before row ``as_of``;
        None where there is none. It may be damaged, or of another journal: its reader checks it."""
        ...

    def keep_snapshot(self, form: str, seq: int, data: bytes) -> None:
        """Keep ``data``, what a reader made of all rows up to ``seq`` in the format ``form``, in place of
        what is kept of that row and format. No row tells of it; of old ones some go (see
        `watchroom.journal.snapshots.thin_out`), and all may be deleted at any moment. Raises
        `JournalError`."""
        ...

    def keep_blobs(self, blobs: Sequence[bytes]) -> None:
        """Keep ``blobs``, the bytes of files that are no texts (each at most 10 MB), as the newest ones. Of
        all only the newest 1 GB are kept (see `watchroom.journal.blobs`). No row tells of it. Raises
        `JournalError`."""
        ...

    def blob(self, checksum: str) -> bytes | None:
        """The blob with the SHA-256 (hex) ``checksum``, None where it is not kept."""
        ...

    def kept_blobs(self, among: Sequence[str] | None = None) -> list[str]:
        """The SHA-256 (hex) of the blobs that are kept, the oldest first; only of those ``among`` which they
        are, where these are given."""
        ...

    def close(self) -> None:
        """Let go of everything, the lease of this process too."""
        ...
