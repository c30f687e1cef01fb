"""Read a session incrementally from the journal."""

from __future__ import annotations

from threading import Lock
from typing import NamedTuple

from watchroom.features.sessions.reads import read_steps
from watchroom.kernel.journal import Journal

from watchroom_tui.formatters.transcript import SessionStep, make_session_step


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
            new: list[SessionStep] = []
            while True:
                known = new or self._steps
                # Not their number: of rows written past the tools versions can be missing.
                after = known[-1].row.version or 0 if known else 0
                found = read_steps(self._journal, path, as_of=as_of, after=after)
                new += [make_session_step(step.row, step.text or "") for step in found.steps]
                if not found.more:
                    break
            if new:
                self._steps = (*self._steps, *new)
            return SessionSnapshot(path, self._steps, found.saying if self._steps else "")
