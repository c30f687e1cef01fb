"""One atomic, durable commit for all who wait for it. Knows no files.

Threads that commit at the same moment share one append: one of them leads, and commits for everyone who
waits. Between processes the journal lets one at a time append.

The rows of one thread are in the order in which it asked for them: a note comes before everything that the
thread commits later. Where the journal's server is away, notes may come later.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Final, NamedTuple, Protocol

from watchroom.call_context import with_call_context
from watchroom.errors import JournalBusy, JournalError, WorkspaceLocked
from watchroom.follower import Follower
from watchroom.journal import Journal
from watchroom.journal.errors import JournalReplaced, JournalUnreachable, OutcomeUnknown
from watchroom.model import HUMAN_PREFIX, Appended, Draft, Note

_MOST_AT_ONCE: Final = 512
_MOST_NOTES: Final = 10_000
"""So many notes at most wait for a server that is away."""
_OF_ALL: Final = (JournalBusy, JournalReplaced, JournalUnreachable, OutcomeUnknown, WorkspaceLocked)
"""Errors that affect the whole batch."""
_log = logging.getLogger("watchroom")


class AppendStatistics(NamedTuple):
    """How often this process appended to the journal, how many rows it made, and how many at most at once."""

    appends: int
    rows: int
    most_rows: int


class RowConsumer(Protocol):
    """What commits wait for, once their rows are durable."""

    def check(self, drafts: Sequence[Draft]) -> None:
        """Raises `WorkspaceLocked` where `materialize` would wait for ``drafts`` in vain. Quick."""
        ...

    def add(self, drafts: Sequence[Draft], appended: Sequence[Appended]) -> None:
        """Take note of what became of ``drafts``: ``appended``, in their order. Quick."""
        ...

    def materialize(self, appended: Sequence[Appended]) -> None:
        """Do what has to be done for the rows in ``appended`` before their commits return. Raises nothing."""
        ...


class _Ticket:
    """A draft on its way, and what became of it. A thread that is not the first one sleeps on ``wake`` until
    it is done, or asked to lead."""

    __slots__ = ("appended", "draft", "error", "wake")

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.appended: Appended | None = None
        self.error: BaseException | None = None
        self.wake: Lock | None = None

    @property
    def is_done(self) -> bool:
        return self.appended is not None or self.error is not None

    def rouse(self) -> None:
        if self.wake is not None and self.wake.locked():
            self.wake.release()

    def result(self) -> Appended:
        if self.error is not None:
            raise self.error
        if self.appended is None:
            raise RuntimeError("a ticket was read before its turn")
        return self.appended


class GroupCommit:
    """Commits drafts to ``journal``. May be used from any thread."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._follower = Follower("notes")
        self._consumer: RowConsumer | None = None
        self._queue = Lock()
        self._waiting: deque[_Ticket] = deque()
        self._notes: deque[_Ticket] = deque()
        self._flushing = Lock()
        """Held while notes become rows: what is committed meanwhile comes after them."""
        self._has_leader = False
        self._sign: Callable[[Draft], Draft] | None = None
        self._listeners: list[Callable[[], None]] = []
        self._statistics = AppendStatistics(0, 0, 0)

    @property
    def statistics(self) -> AppendStatistics:
        """What this process appended since it opened the workspace."""
        return self._statistics

    def follow(self, consumer: RowConsumer) -> None:
        """Have every commit from now on wait for ``consumer``."""
        self._consumer = consumer

    def sign_with(self, sign: Callable[[Draft], Draft]) -> None:
        """Have ``sign`` give what is committed in place of each draft of a person. What it raises, `commit`
        and `commit_all` raise."""
        self._sign = sign

    def sign(self, draft: Draft) -> Draft:
        """Return ``draft`` as it is committed: signed, if a person made it and signing is set up. For a
        caller of `append`, which does not sign. Raise what signing raises."""
        return self._sign(draft) if self._sign and draft.actor.startswith(HUMAN_PREFIX) else draft

    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call ``listener`` after each append of this process. Return the function that ends this.

        The caller of `commit`, `commit_all` or `flush` calls it on its own thread, once the outcome of every
        draft is known. After `append` a background thread calls it. What it raises is logged.
        """
        self._listeners.append(listener)

        def end() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return end

    def commit(self, draft: Draft) -> Appended:
        """Make ``draft`` a row; returns what became of it when that is on disk and its file in place.

        Raises `JournalError`, `WorkspaceLocked`: then there is no row.
        """
        if self._consumer is not None:
            self._consumer.check([draft])
        ticket = _Ticket(self._prepared(draft))
        wake: Lock | None = None
        with self._queue:
            if self._has_leader:
                ticket.wake = wake = Lock()
                wake.acquire()
                self._waiting.append(ticket)
            self._has_leader = True
        has_led = self._lead(ticket) if wake is None else self._wait(ticket, wake)
        if has_led:
            self._notify()
        return ticket.result()

    def commit_all(self, drafts: Sequence[Draft], *, all_or_nothing: bool = False) -> list[Appended]:
        """Make rows of ``drafts`` in one transaction; returns what became of each, in their order. Raises
        `JournalError`, `WorkspaceLocked`: then there is no row; where they are to become rows
        ``all_or_nothing``, `HeadsMoved` if one would be refused."""
        if not drafts:
            return []
        if self._consumer is not None:
            self._consumer.check(drafts)
        given = [self._prepared(draft) for draft in drafts]
        appended = self._append(given, all_or_nothing=all_or_nothing)
        self._materialize(appended)
        self._notify()
        return appended

    def append(self, drafts: Sequence[Draft], *, all_or_nothing: bool = False) -> list[Appended]:
        """Make rows of ``drafts`` without waiting for their files. For who lays out files; everybody else
        calls `commit`. Raises `JournalError`, `WorkspaceLocked`, and, where they are to become rows
        ``all_or_nothing``, `HeadsMoved`."""
        appended = self._append(drafts, all_or_nothing=all_or_nothing)
        if self._listeners:
            # The caller may hold locks that a subscriber waits for.
            self._follower.schedule("subscribers", self._notify)
        return appended

    def _append(self, drafts: Sequence[Draft], *, all_or_nothing: bool = False) -> list[Appended]:
        with self._flushing:
            self._append_notes()
        appended = self._journal.append(drafts, all_or_nothing=all_or_nothing)
        self._record(drafts, appended)
        return appended

    def _record(self, drafts: Sequence[Draft], appended: Sequence[Appended]) -> None:
        """Take note of ``appended``. Raises nothing: the rows stand, and an error would make them twice."""
        appends, rows, most = self._statistics
        self._statistics = AppendStatistics(appends + 1, rows + len(drafts), max(most, len(drafts)))
        if self._consumer is not None:
            try:
                self._consumer.add(drafts, appended)
            except Exception:  # noqa: BLE001  # it follows the journal, and finds these rows there
                _log.exception("rows were not handed on")

    def _notify(self) -> None:
        for listener in tuple(self._listeners):
            try:
                listener()
            except Exception:  # noqa: BLE001  # one subscriber must not affect the caller, nor the others
                _log.exception("a subscriber to commits failed")

    def note(self, draft: Note) -> None:
        """Make ``draft`` a row soon: with the next commit, or within some 20 ms; when the journal's server is
        back, if it is away."""
        self._notes.append(_Ticket(with_call_context(draft)))
        self._follower.schedule("notes", self.flush)

    def flush(self) -> None:
        """Commit the notes that wait, and wait for those that others commit. Raises `JournalError`,
        `WorkspaceLocked`."""
        with self._flushing:
            has_notes = bool(self._notes)
            error = self._append_notes()
        if error is not None:
            raise error
        if has_notes:
            self._notify()

    def _append_notes(self, most_left: int = 0) -> BaseException | None:
        """Make rows of the notes that wait, until at most ``most_left`` are left. Return the error that ended
        it."""
        while len(self._notes) > most_left:
            notes = self._taken(self._notes)
            self._append_tickets(notes)
            errors = [note.error for note in notes if isinstance(note.error, _OF_ALL)]
            self._keep(notes)
            if errors:
                return errors[0]
        return None

    def close(self) -> None:
        """Commit the notes that wait, and end."""
        self._follower.close()

    def _prepared(self, draft: Draft) -> Draft:
        return self.sign(with_call_context(draft))

    def _materialize(self, appended: Sequence[Appended]) -> None:
        if self._consumer is not None and appended:
            self._consumer.materialize(appended)

    def _wait(self, ticket: _Ticket, wake: Lock) -> bool:
        """Sleep until others have committed the ticket, or lead. Return whether this thread led."""
        try:
            wake.acquire()
            return not ticket.is_done and self._lead(ticket)
        except BaseException:
            self._abandon(ticket)
            raise

    def _lead(self, mine: _Ticket) -> bool:
        """Commit for all waiting threads, let the next one lead, then write the files. Return True."""
        batch = self._taken(self._waiting)
        if mine not in batch:
            batch.insert(0, mine)
        try:
            self._append_batch(batch)
        finally:
            self._hand_over()
            try:
                self._materialize([ticket.appended for ticket in batch if ticket.appended])
            finally:
                for ticket in batch:
                    if not ticket.is_done:
                        ticket.error = JournalError(reason="the thread that led was interrupted")
                    if ticket is not mine:
                        ticket.rouse()
        return True

    def _append_batch(self, batch: list[_Ticket]) -> None:
        """Make rows of the batch, and of the notes that wait. Nothing is raised."""
        with self._flushing:
            self._append_notes(_MOST_AT_ONCE)
            notes = self._taken(self._notes)
            self._append_tickets([*notes, *batch])
            self._keep(notes)

    def _append_tickets(self, batch: list[_Ticket]) -> None:
        if not batch:
            return
        drafts = [ticket.draft for ticket in batch]
        try:
            appended = self._journal.append(drafts)
        except _OF_ALL as error:
            # All have waited; none need wait as long again, one after the other. And what may be a row
            # already would be another one.
            for ticket in batch:
                ticket.error = error
        except Exception as error:  # noqa: BLE001  # it is raised where the ticket is read
            if len(batch) == 1:
                batch[0].error = error
                return
            # One bad draft must not take the others with it.
            for ticket in batch:
                self._append_tickets([ticket])
        else:
            for ticket, result in zip(batch, appended, strict=True):
                ticket.appended = result
            self._record(drafts, appended)

    def _keep(self, notes: Sequence[_Ticket]) -> None:
        """Have those of ``notes`` that made no row, since the server is away, made rows when it is back."""
        kept = [note for note in notes if isinstance(note.error, JournalUnreachable)]
        with self._queue:
            for note in reversed(kept[: max(0, _MOST_NOTES - len(self._notes))]):
                note.error = None
                self._notes.appendleft(note)
        if kept:
            self._follower.schedule("notes", self.flush)

    def _hand_over(self) -> None:
        with self._queue:
            if self._waiting:
                self._waiting[0].rouse()
            else:
                self._has_leader = False

    def _abandon(self, ticket: _Ticket) -> None:
        """The ticket's thread was interrupted: nobody may wait for it to lead."""
        with self._queue:
            if ticket not in self._waiting:
                return
            was_next = self._waiting[0] is ticket
            self._waiting.remove(ticket)
        if was_next:
            self._hand_over()

    def _taken(self, queue: deque[_Ticket]) -> list[_Ticket]:
        with self._queue:
            return [queue.popleft() for _ in range(min(_MOST_AT_ONCE, len(queue)))]
