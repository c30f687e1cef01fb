"""One atomic, durable commit for all who wait for it, then the files laid out from it.

Threads that commit at the same moment share one transaction and one sync: one of them leads, and commits
for everyone who waits. Processes take turns on a file lock, which also carries how far the files have been
laid out: whoever takes it after a crash first finishes what the last holder had begun.
"""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, takewhile
from threading import Event, Lock, Thread
from typing import Final, NamedTuple

from watchroom import validation
from watchroom.call_context import with_call_context
from watchroom.checkout.layout import has_files, is_edited
from watchroom.checkout.tree import NewVersion, Overwritten, Tree
from watchroom.errors import InvalidPath, NotText, TooLarge, WatchroomError, WorkspaceLocked
from watchroom.files import NotAFile
from watchroom.journal import Journal
from watchroom.journal.edits import edits, last_revert
from watchroom.locks import LOCK_SECONDS, ProcessLock, boot_id
from watchroom.model import OUTSIDE, SYSTEM, Appended, Draft, Json, Note, Row, Write

LAY_OUT_TOOL: Final = "lay_out"
_MOST_AT_ONCE: Final = 512
_NOTE_SECONDS: Final = 0.02
_log = logging.getLogger("watchroom")


class LockUse(NamedTuple):
    """How often this process held the workspace's lock, how many rows it made, and how many of them at most
    while it held the lock once."""

    holds: int
    rows: int
    most_rows: int


class _Ticket:
    """A draft on its way, and what became of it. Its thread sleeps until it is done, or asked to lead."""

    __slots__ = ("_sleep", "appended", "draft", "error", "replaces")

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.appended: Appended | None = None
        self.error: BaseException | None = None
        self.replaces: bytes | None = None
        """The file at the draft's path as it was just before the commit."""
        self._sleep = Lock()
        self._sleep.acquire()

    @property
    def is_done(self) -> bool:
        return self.appended is not None or self.error is not None

    def sleep(self) -> None:
        self._sleep.acquire()

    def rouse(self) -> None:
        if self._sleep.locked():
            self._sleep.release()

    def result(self) -> Appended:
        if self.error is not None:
            raise self.error
        if self.appended is None:
            raise RuntimeError("a ticket was read before its turn")
        return self.appended


class Committer:
    """Commits drafts to ``journal`` and lays them out in ``tree``. May be used from any thread."""

    def __init__(self, journal: Journal, tree: Tree, control: str) -> None:
        self._journal = journal
        self._tree = tree
        self._lock = ProcessLock(os.path.join(control, "lock"))
        self._boot = boot_id()
        self._turn = Lock()
        self._queue = Lock()
        self._waiting: deque[_Ticket] = deque()
        self._notes: deque[_Ticket] = deque()
        self._has_leader = False
        self._listeners: list[Callable[[], None]] = []
        self._notes_wait = Event()
        self._closing = Event()
        self._flusher: Thread | None = None
        self._rows_in_hold = 0
        self._lock_use = LockUse(0, 0, 0)

    def commit(self, draft: Draft) -> Appended:
        """Make the draft a row; returns when it is on disk and laid out.

        Raises `JournalError`, and `NotText` where something else than a file stands in the way: then there
        is no row. Once there is a row, nothing is raised: what could not be laid out is told by a row.
        """
        ticket = _Ticket(with_call_context(draft))
        with self._queue:
            self._waiting.append(ticket)
            leads = not self._has_leader
            self._has_leader = True
        try:
            if not leads:
                ticket.sleep()
            if not ticket.is_done:
                self._lead(ticket)
        except BaseException:
            self._abandon(ticket)
            raise
        return ticket.result()

    def commit_all(self, prepare: Callable[[], Sequence[Draft]]) -> list[Appended]:
        """Make rows of what ``prepare`` gives, in one transaction, and give them in its order. Everyone else
        is held off from before it is called, so that it can compare with the journal, quickly. Raises
        `JournalError`, and what ``prepare`` raises."""
        with self._locked():
            self._finish_dead_writer(self._journal.last_seq())
            tickets = [_Ticket(with_call_context(draft)) for draft in prepare()]
            self._commit_batch([*self._taken(self._notes), *tickets])
        return [ticket.result() for ticket in tickets]

    @property
    def lock_use(self) -> LockUse:
        """What the workspace's lock was used for by this process."""
        return self._lock_use

    def note(self, draft: Note) -> None:
        """Make the draft a row soon: with the next commit, or within some 20 ms."""
        self._notes.append(_Ticket(with_call_context(draft)))
        if self._flusher is None:
            with self._queue:
                if self._flusher is None:
                    self._flusher = Thread(target=self._flush_notes, name="watchroom-notes", daemon=True)
                    self._flusher.start()
        self._notes_wait.set()

    def flush(self) -> None:
        """Commit the notes that wait."""
        while self._notes:
            with self._locked():
                self._commit_batch(self._taken(self._notes))

    @contextmanager
    def exclusively(self) -> Iterator[Callable[[Draft], Appended]]:
        """Hold everyone else off while the files are compared with the journal; yields a way to commit."""

        def commit(draft: Draft) -> Appended:
            ticket = _Ticket(with_call_context(draft))
            self._commit_batch([*self._taken(self._notes), ticket])
            return ticket.result()

        with self._locked():
            self._finish_dead_writer(self._journal.last_seq())
            yield commit

    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Have ``listener`` called after each commit of this process, on the committing thread. Returns the
        call that ends it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def machine_restarted(self) -> bool:
        """Whether the machine went down since files were last laid out: they may lack what was not synced."""
        with self._locked():
            return self._laid()[1] not in ("", self._boot)

    def finish_dead_writer(self) -> None:
        """Bring the files up to the journal, if the last writer died between the two."""
        with self.exclusively():
            pass

    def close(self) -> None:
        if self._closing.is_set():
            return
        self._closing.set()
        self._notes_wait.set()
        if self._flusher:
            self._flusher.join()
        try:
            self.flush()
        except WatchroomError:
            # Only readings wait here; what was acknowledged is in the journal.
            _log.exception("notes could not be committed")
        finally:
            self._lock.close()

    def _flush_notes(self) -> None:
        while not self._closing.is_set():
            self._notes_wait.wait()
            if self._closing.wait(_NOTE_SECONDS):
                return
            self._notes_wait.clear()
            try:
                self.flush()
            except WatchroomError:
                _log.exception("notes could not be committed")

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Alone among the threads of this process, then among processes. Raises `WorkspaceLocked`."""
        if not self._turn.acquire(timeout=LOCK_SECONDS):
            raise WorkspaceLocked(seconds=round(LOCK_SECONDS), holder=self._lock.holder())
        try:
            self._lock.acquire(LOCK_SECONDS)
            self._rows_in_hold = 0
            try:
                yield
            finally:
                holds, rows, most = self._lock_use
                made = self._rows_in_hold
                self._lock_use = LockUse(holds + 1, rows + made, max(most, made))
                self._lock.release()
        finally:
            self._turn.release()

    def _lead(self, mine: _Ticket) -> None:
        """Commit for everyone who waits, then let the next one lead."""
        batch: list[_Ticket] = []
        try:
            with self._locked():
                batch = self._taken(self._waiting)
                self._commit_batch([*self._taken(self._notes), *batch])
        except WorkspaceLocked as error:
            # All have waited; none need wait as long again, one after the other.
            batch = self._taken(self._waiting)
            for ticket in batch:
                ticket.error = error
        finally:
            for ticket in batch:
                if ticket is not mine:
                    ticket.rouse()
            self._hand_over()

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

    def _commit_batch(self, batch: list[_Ticket]) -> None:
        """Make rows of the batch and lay them out. Every ticket is done afterwards; nothing is raised."""
        ready = [ticket for ticket in batch if self._look_ahead(ticket)]
        if not ready:
            return
        try:
            appended = self._journal.append([ticket.draft for ticket in ready])
        except Exception as error:  # noqa: BLE001  # it is raised where the ticket is read
            if len(ready) == 1:
                ready[0].error = error
                return
            # One bad draft must not take the others with it.
            for ticket in ready:
                self._commit_batch([ticket])
            return
        self._rows_in_hold += len(appended)
        for ticket, result in zip(ready, appended, strict=True):
            ticket.appended = result
        try:
            self._lay(ready)
        except (WatchroomError, OSError):
            # The rows stand. How far the files are laid out was not noted, so the next writer does it again.
            _log.exception("files could not be laid out")
        for listener in tuple(self._listeners):
            listener()

    def _look_ahead(self, ticket: _Ticket) -> bool:
        """See what a write would replace, so that it is kept before it goes; False if a write cannot be."""
        draft = ticket.draft
        if isinstance(draft, Note) or draft.actor == OUTSIDE:
            return True
        try:
            self._refuse_other_spelling(draft)
        except (InvalidPath, OSError) as error:
            ticket.error = error
            return False
        if not is_edited(draft.zone):
            return True
        try:
            ticket.replaces = self._tree.current(draft.zone, draft.path)
            stands_in_the_way = (
                ticket.replaces is None
                and draft.content is not None
                and self._tree.is_blocked(draft.zone, draft.path)
            )
        except NotAFile:
            stands_in_the_way = True
        except OSError as error:
            ticket.error = error
            return False
        # A private file is read from disk, so one that cannot be put there is refused; the others are mere
        # views. Where another file of ours stands in the way, the journal will say which.
        if stands_in_the_way and draft.zone == "private" and not self._is_blocked_by_ours(draft):
            ticket.error = NotText(rule="not_a_file")
            return False
        return True

    def _refuse_other_spelling(self, draft: Write) -> None:
        """Of two names that are one on this disk, the second would be written into the first one's file."""
        if draft.content is None or not (is_edited(draft.zone) or draft.zone == "realtime"):
            return
        other = self._tree.other_spelling(draft.zone, draft.path)
        if other is not None:
            raise InvalidPath(given=draft.path, rule="other_case")

    def _is_blocked_by_ours(self, draft: Write) -> bool:
        parts = draft.path.split("/")
        above = (self._journal.head(draft.zone, "/".join(parts[:depth])) for depth in range(1, len(parts)))
        below = self._journal.heads(draft.zone, draft.path + "/")
        return any(head is not None and not head.deleted for head in chain(above, below))

    def _lay(self, batch: list[_Ticket]) -> None:
        done = [(ticket, ticket.appended) for ticket in batch if ticket.appended]
        if self._finish_dead_writer(done[0][1].row.seq - 1):
            for ticket, _ in done:
                self._look_ahead(ticket)
        new: list[NewVersion] = []
        edits: list[Overwritten] = []
        for ticket, (row, head) in done:
            if row.version is None or not has_files(row.zone):
                continue
            edit = self._edit_replaced(ticket, row, head, new)
            if edit and not self._is_kept(edit):
                edits.append(edit)
            new.append(NewVersion(row, ticket.draft.content, head))
        if edits:
            # Before their files are replaced: what someone wrote must not depend on this process living on.
            self._journal.append([self.overwritten_note(edit) for edit in edits])
        laid = self._tree.lay(new)
        # Someone may have written in the instant between our look and the replacement.
        self._record([edit for edit in laid.overwritten if not self._is_kept(edit)], laid.failed)
        self._set_laid(done[-1][1].row.seq)

    @staticmethod
    def _edit_replaced(
        ticket: _Ticket, row: Row, head: Row | None, earlier: list[NewVersion]
    ) -> Overwritten | None:
        if ticket.replaces is None or any(
            (each.row.zone, each.row.path) == (row.zone, row.path) for each in earlier
        ):
            return None
        if validation.sha256(ticket.replaces) in (head and head.sha256, row.sha256):
            return None
        return Overwritten(row.zone, row.path, ticket.replaces, (head.version or 0) if head else 0)

    def _is_kept(self, edit: Overwritten) -> bool:
        """Whether the journal has this very text already, as an edit or as a version (one that was old on
        disk because a later one could not be laid out)."""
        checksum = validation.sha256(edit.data)
        reverted = last_revert(self._journal, edit.zone, edit.path)
        kept = takewhile(lambda row: row.seq > reverted, edits(self._journal, edit.zone, edit.path))
        versions = self._journal.history(edit.zone, edit.path)
        return any(row.sha256 == checksum for row in chain(kept, versions))

    def _record(self, overwritten: list[Overwritten], failed: list[tuple[Row, OSError]]) -> None:
        notes = [*map(self.overwritten_note, overwritten)]
        for row, error in failed:
            _log.error("row %d could not be laid out: %s", row.seq, error)
            detail: dict[str, Json] = {"row": row.seq, "reason": str(error.strerror or error)}
            notes.append(
                Note(SYSTEM, LAY_OUT_TOOL, row.zone, row.path, "failed", "not_laid_out", detail=detail)
            )
        if notes:
            self._journal.append(notes)

    @staticmethod
    def overwritten_note(found: Overwritten) -> Note:
        """The row that keeps what someone had written behind the journal's back."""
        content: str | None = None
        error = "outside_edit"
        try:
            content = validation.decode_text(found.data)
        except (NotText, TooLarge) as refusal:
            error = refusal.code
        return Note(
            actor=OUTSIDE,
            tool="overwritten_edit",
            zone=found.zone,
            path=found.path,
            outcome="conflict",
            error=error,
            content=content,
            base=found.base,
            sha256=validation.sha256(found.data),
            size=len(found.data),
        )

    def _finish_dead_writer(self, last: int) -> bool:
        """Lay out rows up to ``last`` that were committed by a process which died before it could; False if
        there are none."""
        laid, _ = self._laid()
        if laid >= last:
            return False
        edits = self._tree.edits_since(laid, last)
        self._record(edits, [])
        self._record([], self._tree.finish(laid, last))
        self._set_laid(last)
        return True

    def _laid(self) -> tuple[int, str]:
        number, _, boot = self._lock.text().partition(" ")
        return (int(number) if number.isdigit() else 0), boot

    def _set_laid(self, seq: int) -> None:
        self._lock.set_text(f"{seq} {self._boot}")
