"""One atomic, durable commit for all who wait for it, then the files laid out from it.

Threads that commit at the same moment share one transaction and one sync: the first to get the turn
commits for everyone in the queue. Processes take turns on a file lock, which also carries how far the
files have been laid out: whoever takes it after a crash first finishes what the last holder had begun.
"""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Lock, Thread
from typing import Final

from watchroom import names
from watchroom.disk import ProcessLock, boot_id
from watchroom.errors import NotText, TooLarge, WatchroomError
from watchroom.journal import Journal
from watchroom.model import OUTSIDE, SYSTEM, Appended, Draft, Json, Note, Row
from watchroom.tree import Overwritten, Tree

_MOST_AT_ONCE: Final = 512
_NOTE_SECONDS: Final = 0.02
_log = logging.getLogger("watchroom")


class _Ticket:
    """A draft on its way, and what became of it."""

    __slots__ = ("appended", "draft", "error")

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.appended: Appended | None = None
        self.error: BaseException | None = None

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
        self._waiting: deque[_Ticket] = deque()
        self._listeners: list[Callable[[], None]] = []
        self._notes_wait = Event()
        self._closing = Event()
        self._flusher: Thread | None = None
        self._flusher_lock = Lock()

    def commit(self, draft: Draft) -> Appended:
        """Make the draft a row; returns when it is on disk and laid out. Raises `JournalError`."""
        ticket = _Ticket(draft)
        self._waiting.append(ticket)
        with self._turn:
            if ticket.appended is None and ticket.error is None:
                with self._locked():
                    self._commit_waiting(ticket)
        return ticket.result()

    def note(self, draft: Note) -> None:
        """Make the draft a row soon: with the next commit, or within some 20 ms."""
        self._waiting.append(_Ticket(draft))
        if self._flusher is None:
            with self._flusher_lock:
                if self._flusher is None:
                    self._flusher = Thread(target=self._flush_notes, name="watchroom-notes", daemon=True)
                    self._flusher.start()
        self._notes_wait.set()

    def flush(self) -> None:
        """Commit the notes that wait."""
        while self._waiting:
            with self._turn:
                if self._waiting:
                    with self._locked():
                        self._commit_waiting(self._waiting[-1])

    @contextmanager
    def exclusively(self) -> Iterator[Callable[[Draft], Appended]]:
        """Hold everyone else off while the files are compared with the journal; yields a way to commit."""

        def commit(draft: Draft) -> Appended:
            ticket = _Ticket(draft)
            self._waiting.append(ticket)
            self._commit_waiting(ticket)
            return ticket.result()

        with self._turn, self._locked():
            yield commit

    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Have ``listener`` called after each commit of this process, on the committing thread. Returns the
        call that ends it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def machine_restarted(self) -> bool:
        """Whether the machine went down since files were last laid out: they may lack what was not synced."""
        with self._turn, self._locked():
            return self._laid()[1] not in ("", self._boot)

    def close(self) -> None:
        self._closing.set()
        self._notes_wait.set()
        if self._flusher:
            self._flusher.join()
        self.flush()
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
        self._lock.acquire()
        try:
            yield
        finally:
            self._lock.release()

    def _commit_waiting(self, mine: _Ticket) -> None:
        """Commit what waits, in order, up to and with ``mine``."""
        while mine.appended is None and mine.error is None:
            batch = [self._waiting.popleft() for _ in range(min(_MOST_AT_ONCE, len(self._waiting)))]
            if not batch:
                raise RuntimeError("a ticket left the queue before its turn")
            self._commit_batch(batch)

    def _commit_batch(self, batch: list[_Ticket]) -> None:
        try:
            appended = self._journal.append([ticket.draft for ticket in batch])
        except BaseException as error:
            if len(batch) == 1:
                batch[0].error = error
                if not isinstance(error, WatchroomError):
                    raise
                return
            # One bad draft must not take the others with it.
            for ticket in batch:
                self._commit_batch([ticket])
            return
        for ticket, result in zip(batch, appended, strict=True):
            ticket.appended = result
        self._lay(batch)
        for listener in tuple(self._listeners):
            listener()

    def _lay(self, batch: list[_Ticket]) -> None:
        rows: list[tuple[Row, str | None, Row | None]] = []
        last = 0
        for ticket in batch:
            if ticket.appended:
                row, head = ticket.appended
                if not rows and not last:
                    self._finish_dead_writer(before=row.seq)
                last = row.seq
                if row.version is not None:
                    rows.append((row, ticket.draft.content, head))
        self._record(*self._tree.lay(rows))
        self._set_laid(last)

    def _record(self, overwritten: list[Overwritten], failed: list[tuple[Row, OSError]]) -> None:
        notes = [*map(self.overwritten_note, overwritten)]
        for row, error in failed:
            _log.error("row %d could not be laid out: %s", row.seq, error)
            detail: dict[str, Json] = {"row": row.seq, "reason": str(error.strerror or error)}
            notes.append(Note(SYSTEM, "lay_out", row.zone, row.path, "failed", "not_laid_out", detail=detail))
        if notes:
            self._journal.append(notes)

    @staticmethod
    def overwritten_note(found: Overwritten) -> Note:
        """The row that keeps what someone had written behind the journal's back."""
        content: str | None = None
        error = "outside_edit"
        try:
            content = names.decoded(found.data)
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
            sha256=names.sha256(found.data),
            size=len(found.data),
        )

    def _finish_dead_writer(self, before: int) -> None:
        """Lay out rows that were committed by a process which died before it could."""
        laid, _ = self._laid()
        if laid < before - 1:
            self._record(*self._tree.finish(laid, before - 1))

    def finish_dead_writer(self) -> None:
        """Bring the files up to the journal, if the last writer died between the two."""
        with self._turn, self._locked():
            last = self._journal.last_seq()
            if self._laid()[0] < last:
                self._finish_dead_writer(before=last + 1)
                self._set_laid(last)

    def _laid(self) -> tuple[int, str]:
        number, _, boot = self._lock.text().partition(" ")
        return (int(number) if number.isdigit() else 0), boot

    def _set_laid(self, seq: int) -> None:
        self._lock.set_text(f"{seq} {self._boot}")
