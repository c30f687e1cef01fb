"""Reader of a session, incrementally from the journal."""

from __future__ import annotations

from threading import Lock
from typing import NamedTuple

from watchroom.features.sessions.reads import read_steps
from watchroom.kernel.journal import Journal

from watchroom_tui.formatters.transcript import SessionStep, make_session_step


class SessionSnapshot(NamedTuple):
    """The steps of a session, oldest first, and the text of the model since the last step."""

    path: str
    steps: tuple[SessionStep, ...]
    saying: str


class SessionReader:
    """Reader of one session at a time. Thread-safe: ``journal`` is read in the caller's thread."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._path = ""
        self._steps: tuple[SessionStep, ...] = ()
        # A cancelled read may still run when the next one starts.
        self._lock = Lock()

    def read(self, path: str, as_of: int) -> SessionSnapshot:
        """Return the session at ``path`` as of row ``as_of``."""
        with self._lock:
            if path != self._path or (self._steps and self._steps[-1].row.seq > as_of):
                self._path, self._steps = path, ()
            new: list[SessionStep] = []
            while True:
                known = new or self._steps
                # Not the number of steps, because rows that bypass the tools can skip versions.
                after = known[-1].row.version or 0 if known else 0
                found = read_steps(self._journal, path, as_of=as_of, after=after)
                new += [make_session_step(step.row, step.text or "") for step in found.steps]
                if not found.more:
                    break
            if new:
                self._steps = (*self._steps, *new)
            return SessionSnapshot(path, self._steps, found.saying if self._steps else "")
