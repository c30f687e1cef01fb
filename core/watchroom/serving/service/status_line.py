"""The state of an open workspace, for the status lines of shells and terminals."""

from __future__ import annotations

from threading import Lock
from typing import Final

from watchroom.features.overview.fold import Fold
from watchroom.features.overview.model import Model
from watchroom.features.overview.presence import with_presences
from watchroom.features.overview.snapshots import open_fold
from watchroom.workspace import Workspace

_CHUNK: Final = 2000
"""Maximum number of rows that are read at once."""


class StatusReader:
    """Reads the present state of ``workspace``. It keeps what it has read, so that only the first reading
    takes longer than a few milliseconds. May be used from any thread."""

    def __init__(self, workspace: Workspace) -> None:
        self._root = workspace.root
        self._journal = workspace.journal
        self._fold: Fold | None = None
        self._lock = Lock()

    def read(self) -> Model:
        """Return the present state. Raise `JournalError`."""
        journal = self._journal
        with self._lock:
            fold = self._fold = self._fold or open_fold(journal)
            while rows := journal.rows(fold.seq, limit=_CHUNK):
                fold.apply(rows)
            return with_presences(fold.model(), journal.presence.all, self._root)._replace(time=journal.now())
