"""Read a session incrementally from the journal."""

from __future__ import annotations

from threading import Lock
from typing import Final, NamedTuple

from watchroom.journal import Journal
from watchroom.model import STREAM, Row

from watchroom_tui.transcript import SessionStep, make_session_step

MOST_PIECES: Final = 500
"""So many pieces of what a model is just saying are shown at most."""


class SessionSnapshot(NamedTuple):
    """The steps of a session, oldest first, and what its model has said since the last of them."""

    path: str
    steps: tuple[SessionStep, ...]
    saying: str


class SessionReader:
    """May be used from any thread; ``journal`` is read where `read` is called."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._path = ""
        self._steps: tuple[SessionStep, ...] = ()
        # A reading that nobody waits for any more may still be going on when the next begins.
        self._lock = Lock()

    def read(self, path: str, as_of: int) -> SessionSnapshot:
        """The session at ``path`` as of row ``as_of``."""
        with self._lock:
            if path != self._path or (self._steps and self._steps[-1].row.seq > as_of):
                self._path, self._steps = path, ()
            known = len(self._steps)
            rows = self._journal.history("session", path, after_version=known)
            new = [row for row in rows if row.seq <= as_of]
            if new:
                self._steps = (*self._steps, *(self._step(row) for row in new))
            return SessionSnapshot(path, self._steps, self._saying(path, as_of))

    def _step(self, row: Row) -> SessionStep:
        return make_session_step(row, self._journal.content(row.seq) or "{}")

    def _saying(self, path: str, as_of: int) -> str:
        if not self._steps:
            return ""
        last = self._steps[-1].row
        rows = self._journal.notes(
            "session", path, last.actor, STREAM, after=last.seq, until=as_of, limit=MOST_PIECES
        )
        return "".join(self._journal.content(row.seq) or "" for row in reversed(rows))
