"""Group commit: threads that commit at the same moment share one atomic, durable append.

One of the threads leads, and commits for all waiting threads. The journal lets one process append at a time.

The rows of a thread keep their order: a note comes before all later commits of the thread. A note that the
journal cannot take now, for example because the disk is full, comes later.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Final, NamedTuple, Protocol

from watchroom.errors import (
    DraftRefused,
    JournalBusy,
    JournalDamaged,
    JournalDenied,
    JournalError,
    JournalReplaced,
    JournalUnreachable,
    OutcomeUnknown,
    WorkspaceLocked,
)
from watchroom.kernel.background import Background
from watchroom.kernel.journal import Journal
from watchroom.model import HUMAN_PREFIX, Appended, Draft, Note

_MAX_BATCH: Final = 512
"""Maximum number of drafts in one append."""
_MAX_NOTES: Final = 10_000
"""Maximum number of notes that are kept while the journal cannot take them. The oldest are dropped."""
_RETRY_SECONDS: Final = 0.5
"""Seconds until kept notes are appended again, unless a commit comes first."""
_BATCH_ERRORS: Final = (JournalBusy, JournalReplaced, JournalUnreachable, OutcomeUnknown, WorkspaceLocked)
"""Errors that affect the whole batch."""
_FINAL_ERRORS: Final = (DraftRefused, JournalDamaged, JournalDenied, OutcomeUnknown)
"""Errors after which a note is not appended again: it would be refused again, or could become two rows."""
_log = logging.getLogger("watchroom")


class AppendStatistics(NamedTuple):
    """The number of this process's appends, of their rows, and of the rows in the largest append."""

    appends: int
    rows: int
    max_rows: int


class RowConsumer(Protocol):
    """Writes the files of rows. Commits wait for it once their rows are durable."""

    def check(self, drafts: Sequence[Draft]) -> None:
        """Raise `WorkspaceLocked` if `materialize` could not write the files of ``drafts``. Must be fast."""
        ...

    def add(self, drafts: Sequence[Draft], appended: Sequence[Appended]) -> None:
        """Remember that ``drafts`` became ``appended``, in the same order. Must be fast."""
        ...

    def materialize(self, appended: Sequence[Appended]) -> None:
        """Write the files of the rows in ``appended`` before their commits return. Must not raise."""
        ...


@dataclass(slots=True, eq=False)
class _Ticket:
    """A draft and its outcome, None until it is committed. A thread that does not lead sleeps on ``wake``
    until its draft is committed, or until it must lead."""

    draft: Draft
    outcome: Appended | BaseException | None = None
    wake: Lock | None = None

    def rouse(self) -> None:
        if self.wake is not None and self.wake.locked():
            self.wake.release()


class GroupCommit:
    """Commits drafts to ``journal``. May be used from any thread. ``background`` commits notes."""

    def __init__(self, journal: Journal, background: Background) -> None:
        self._journal = journal
        self._background = background
        self._consumer: RowConsumer | None = None
        self._queue = Lock()
        self._waiting: deque[_Ticket] = deque()
        self._notes: deque[_Ticket] = deque()
        self._flushing = Lock()
        """Held while notes are committed, so that later commits come after them."""
        self._has_leader = False
        self._sign: Callable[[Draft], Draft] | None = None
        self._statistics = AppendStatistics(0, 0, 0)

    @property
    def statistics(self) -> AppendStatistics:
        """The appends of this process since the workspace was opened."""
        return self._statistics

    def follow(self, consumer: RowConsumer) -> None:
        """Make all later commits wait for ``consumer``."""
        self._consumer = consumer

    def sign_with(self, sign: Callable[[Draft], Draft]) -> None:
        """Call ``sign`` with each draft of a person, and commit its result instead. `commit` and `commit_all`
        raise its errors."""
        self._sign = sign

    def sign(self, draft: Draft) -> Draft:
        """Return ``draft`` in its committed form: signed if a person made it and signing is set up.

        For callers of `append`, which does not sign. Raise the errors of signing.
        """
        return self._sign(draft) if self._sign and draft.actor.startswith(HUMAN_PREFIX) else draft

    def commit(self, draft: Draft) -> Appended:
        """Commit ``draft``. Return its outcome once the row is durable and its file is written.

        Raise `JournalError`, `WorkspaceLocked`. After an error other than `OutcomeUnknown` there is no row.
        """
        if self._consumer is not None:
            self._consumer.check([draft])
        ticket = _Ticket(self.sign(_storable(draft)))
        wake: Lock | None = None
        with self._queue:
            if self._has_leader:
                ticket.wake = wake = Lock()
                wake.acquire()
                self._waiting.append(ticket)
            self._has_leader = True
        if wake is None:
            self._lead(ticket)
        else:
            self._wait(ticket, wake)
        if not isinstance(ticket.outcome, Appended):
            raise ticket.outcome or RuntimeError("a ticket has no outcome yet")
        return ticket.outcome

    def commit_all(self, drafts: Sequence[Draft], *, all_or_nothing: bool = False) -> list[Appended]:
        """Commit ``drafts`` in one transaction. Return their outcomes in the same order.

        Raise `JournalError`, `WorkspaceLocked`. After an error other than `OutcomeUnknown` there are no
        rows. With ``all_or_nothing``, also raise `HeadsMoved` if one of the drafts would be refused.
        """
        if not drafts:
            return []
        if self._consumer is not None:
            self._consumer.check(drafts)
        given = [self.sign(_storable(draft)) for draft in drafts]
        appended = self._append(given, all_or_nothing=all_or_nothing)
        if self._consumer is not None:
            self._consumer.materialize(appended)
        self._background.report_append()
        return appended

    def append(self, drafts: Sequence[Draft], *, all_or_nothing: bool = False) -> list[Appended]:
        """Append ``drafts`` without waiting for their files. Raise the errors of `commit_all`.

        For code that writes files and holds their lock. All other code calls `commit`.
        """
        appended = self._append(drafts, all_or_nothing=all_or_nothing)
        self._background.report_append()
        return appended

    def _append(self, drafts: Sequence[Draft], *, all_or_nothing: bool = False) -> list[Appended]:
        with self._flushing:
            self._append_notes()
        appended = self._journal.append(drafts, all_or_nothing=all_or_nothing)
        self._record(drafts, appended)
        return appended

    def _record(self, drafts: Sequence[Draft], appended: Sequence[Appended]) -> None:
        """Report ``appended`` to the consumer. No error is raised: the rows exist, and after an error the
        caller would append them again."""
        appends, rows, most = self._statistics
        self._statistics = AppendStatistics(appends + 1, rows + len(drafts), max(most, len(drafts)))
        if self._consumer is not None:
            try:
                self._consumer.add(drafts, appended)
            except Exception:  # noqa: BLE001  # it follows the journal, and finds these rows there
                _log.exception("rows were not passed on to the files")

    def note(self, draft: Note) -> None:
        """Append ``draft`` soon: with the next commit, or after 20 ms. If the journal cannot take it then,
        for example because the disk is full, append it once the journal can."""
        ticket = _Ticket(_storable(draft))
        with self._queue:
            self._notes.append(ticket)
        self._background.schedule("notes", self.flush)

    def flush(self, actor: str | None = None) -> None:
        """Commit the waiting notes, including notes that another thread is committing.

        Raise `JournalError`, `WorkspaceLocked`. With ``actor``, do not raise if the journal only refuses
        notes of other actors, which do not matter to the caller.
        """
        with self._flushing:
            has_notes = bool(self._notes)
            error = self._append_notes()
            if error is not None and (isinstance(error, _BATCH_ERRORS) or self._has_notes_of(actor)):
                raise error
        if has_notes:
            self._background.report_append()

    def _has_notes_of(self, actor: str | None) -> bool:
        with self._queue:
            return any(actor in (None, note.draft.actor) for note in self._notes)

    def _append_notes(self, max_left: int = 0) -> BaseException | None:
        """Append the waiting notes until at most ``max_left`` are left. Return the error that stopped this,
        if any."""
        while len(self._notes) > max_left:
            notes = self._taken(self._notes)
            self._append_tickets(notes)
            error = self._keep(notes)
            if error is not None:
                return error
        return None

    def _wait(self, ticket: _Ticket, wake: Lock) -> None:
        """Sleep until another thread has committed the ticket, or lead."""
        try:
            wake.acquire()
            if ticket.outcome is None:
                self._lead(ticket)
        except BaseException:
            self._abandon(ticket)
            raise

    def _lead(self, mine: _Ticket) -> None:
        """Commit for all waiting threads, let the next thread lead, then write the files."""
        batch = self._taken(self._waiting) if self._waiting else []
        if mine not in batch:
            batch.insert(0, mine)
        try:
            self._append_batch(batch)
        finally:
            self._hand_over()
            try:
                if self._consumer is not None:
                    appended = [each.outcome for each in batch if isinstance(each.outcome, Appended)]
                    self._consumer.materialize(appended)
            finally:
                for ticket in batch:
                    if ticket.outcome is None:
                        # The rows may have been committed before the interruption.
                        ticket.outcome = OutcomeUnknown(reason="the thread that led was interrupted")
                    if ticket is not mine:
                        ticket.rouse()
                self._background.report_append()

    def _append_batch(self, batch: list[_Ticket]) -> None:
        """Append ``batch`` and the waiting notes. No error is raised."""
        with self._flushing:
            if not self._notes:
                self._append_tickets(batch)
                return
            self._append_notes(_MAX_BATCH)
            notes = self._taken(self._notes)
            self._append_tickets([*notes, *batch])
            self._keep(notes)

    def _append_tickets(self, batch: list[_Ticket]) -> None:
        if not batch:
            return
        drafts = [ticket.draft for ticket in batch]
        try:
            appended = self._journal.append(drafts)
        except _BATCH_ERRORS as error:
            # Do not try the drafts one by one: each would wait as long, and rows could be appended twice.
            for ticket in batch:
                ticket.outcome = error
        except Exception as error:  # noqa: BLE001  # it is raised where the ticket is read
            if len(batch) == 1:
                batch[0].outcome = error
                return
            # One bad draft must not prevent the others.
            for ticket in batch:
                self._append_tickets([ticket])
        else:
            for ticket, result in zip(batch, appended, strict=True):
                ticket.outcome = result
            self._record(drafts, appended)

    def _keep(self, notes: Sequence[_Ticket]) -> BaseException | None:
        """Keep the ``notes`` that were not appended but may be later. Return the first error that may affect
        other notes too, if any."""
        failed = [(note, note.outcome) for note in notes if isinstance(note.outcome, BaseException)]
        kept = [note for note, error in failed if _is_temporary(error)]
        with self._queue:
            for note in reversed(kept):
                note.outcome = None
                self._notes.appendleft(note)
            dropped = max(0, len(self._notes) - _MAX_NOTES) if kept else 0
            for _ in range(dropped):
                self._notes.popleft()
        if lost := len(failed) - len(kept) + dropped:
            _log.error("%d notes are lost", lost, exc_info=failed[0][1])
        if kept:
            self._background.schedule("notes", self.flush, _RETRY_SECONDS)
        shared = (error for _, error in failed if _is_temporary(error) or isinstance(error, OutcomeUnknown))
        return next(shared, None)

    def _hand_over(self) -> None:
        with self._queue:
            if self._waiting:
                self._waiting[0].rouse()
            else:
                self._has_leader = False

    def _abandon(self, ticket: _Ticket) -> None:
        """Take back the ticket of an interrupted thread, because it cannot lead."""
        with self._queue:
            if ticket not in self._waiting:
                return
            was_next = self._waiting[0] is ticket
            self._waiting.remove(ticket)
        if was_next:
            self._hand_over()

    def _taken(self, queue: deque[_Ticket]) -> list[_Ticket]:
        with self._queue:
            return [queue.popleft() for _ in range(min(_MAX_BATCH, len(queue)))]


def _is_temporary(error: BaseException) -> bool:
    """Return whether the journal may take a note after ``error``."""
    return isinstance(error, JournalError) and not isinstance(error, _FINAL_ERRORS)


def _storable(draft: Draft) -> Draft:
    """Return ``draft`` without NUL in its message and key, because not every journal can store NUL."""
    if "\0" in draft.message or "\0" in draft.key:
        return draft._replace(message=draft.message.replace("\0", "␀"), key=draft.key.replace("\0", "␀"))
    return draft
