"""A thread that follows the journal, folds its rows, and publishes complete models.

It follows the journal live, or stops at an earlier row. It keeps most reads of the journal off the event
loop.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from threading import Event, Thread
from typing import Final

from textual.message import Message
from watchroom.errors import JournalUnreachable
from watchroom.features.overview.fold import Fold
from watchroom.features.overview.model import Model
from watchroom.features.overview.presence import PRESENCE_SECONDS, absent_work, with_presences
from watchroom.features.overview.reads import read_registration
from watchroom.features.overview.snapshots import open_fold
from watchroom.kernel.journal import Changes, Journal

from watchroom_tui.context import Outage, OutageCause

FRAME_SECONDS: Final = 0.05
"""Minimum number of seconds between two models while new rows arrive: 20 models per second."""

PREVIEW_ROWS: Final = 80
"""The number of newest rows to show while older rows are read."""

_CHUNK: Final = 200
_LIVE_CHUNK: Final = 2000
_PROGRESS_ROWS: Final = 10_000
_RETRY_SECONDS: Final = 1.0
"""Seconds before the journal is read again after an error."""
_MIN_FREE: Final = 64 * 1024
"""Number of free bytes below which the disk counts as full."""
_log = logging.getLogger("watchroom")


class ModelChanged(Message):
    """The feed has a new model."""

    def __init__(self, model: Model, progress: float) -> None:
        super().__init__()
        self.model = model
        self.progress = progress


class OutageChanged(Message):
    """Start or end of an outage. ``outage``: None at the end."""

    def __init__(self, outage: Outage | None) -> None:
        super().__init__()
        self.outage = outage


class Feed:
    """Thread that calls ``show`` with each new model and the fraction of the journal in the model.

    - ``until``: the last row to read. None: follow the journal.
    - ``show_outage``: callback for outages. Its argument is None at the end.
    - ``folder``: the folder of the workspace, for displayed commands.
    - ``root``: the folder whose disk must have space for the journal. None: it is not checked.
    """

    def __init__(
        self,
        journal: Journal,
        show: Callable[[Model, float], object],
        *,
        until: int | None = None,
        show_outage: Callable[[Outage | None], object] = lambda _: None,
        folder: str = "",
        root: str | None = None,
    ) -> None:
        self._journal = journal
        self._folder = folder
        self._root = root
        self._show = show
        self._until = until
        self._show_outage = show_outage
        self._outage: Outage | None = None
        self._fold = Fold(journal.content, journal.row)
        self._absent: frozenset[tuple[str, str, bool]] = frozenset()
        self._changes: Changes | None = None
        self._clock_ahead = 0
        """Offset of the journal's clock from the clock of this machine at the last reading, in
        nanoseconds."""
        self._stopping = Event()
        self._thread = Thread(target=self._run, name="watchroom-feed", daemon=True)

    @property
    def is_live(self) -> bool:
        return self._until is None

    def now(self) -> int:
        """Return the time of the journal's clock, in nanoseconds since the epoch, without reading the
        journal."""
        return time.time_ns() + self._clock_ahead

    def _read_clock(self) -> None:
        self._clock_ahead = self._journal.now() - time.time_ns()

    def read_initial_model(self) -> tuple[Model, float]:
        """Read the newest rows and the registration. Return their model, and 1.0 if the model contains all
        rows, else 0.0."""
        self._read_clock()
        last = self._journal.last_seq() if self._until is None else self._until
        look = Fold(self._journal.content, self._journal.row)
        rows = self._journal.rows_before(last + 1, limit=PREVIEW_ROWS)
        if rows:
            registry = read_registration(self._journal, as_of=last)
            if registry is not None and registry.seq < rows[-1].seq:
                look.apply([registry])
            look.apply(reversed(rows))
        return look.model(), 1.0 if len(rows) >= last else 0.0

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop, and wait until the thread has ended."""
        self._stopping.set()
        if self._changes is not None:
            self._changes.wake()
        if self._thread.ident is not None:
            self._thread.join()
        if self._changes is not None:
            self._changes.close()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._follow()
                return
            except JournalUnreachable:
                # Rows that were read stay on the screen. The next attempt continues after them.
                self._note_outage("server")
                self._stopping.wait(_RETRY_SECONDS)
            except Exception:  # noqa: BLE001  # the fold continues after the row at which it failed
                _log.exception("the journal could not be followed at row %d", self._fold.seq)
                self._note_outage("journal")
                self._stopping.wait(_RETRY_SECONDS)

    def _note_outage(self, of: OutageCause | None) -> None:
        """Publish that an outage has started, or that there is none."""
        if of != (self._outage.of if self._outage is not None else None):
            self._outage = Outage(time.time_ns(), of) if of is not None else None
            self._show_outage(self._outage)

    def _find_obstacle(self) -> OutageCause | None:
        """Return why the journal cannot be written, None if it can. Shared journals are on a server."""
        if self._root is None or not self.is_live or self._journal.is_shared:
            return None
        try:
            disk = os.statvfs(self._root)
        except OSError:
            return "folder"
        free = disk.f_bavail if os.geteuid() else disk.f_bfree
        return "disk" if free * disk.f_frsize < _MIN_FREE else None

    def _follow(self) -> None:
        if self._changes is None and self.is_live:
            # Subscribe before the rows are read, so that no row is missed.
            self._changes = self._journal.changes()
        self._read_existing_rows()
        while self._changes is not None and not self._stopping.is_set():
            self._read_clock()
            is_new = self._read_new_rows() or self._has_absence_changed()
            self._note_outage(self._find_obstacle())
            if is_new:
                self._show_now()
                self._stopping.wait(FRAME_SECONDS)
            else:
                self._changes.wait(PRESENCE_SECONDS)

    def _has_absence_changed(self) -> bool:
        """Return whether the work that no process continues differs from the last published model."""
        return absent_work(with_presences(self._fold.model(), self._journal.presence.all)) != self._absent

    def _show_now(self) -> None:
        self._note_outage(self._find_obstacle())
        model = self._fold.model()
        if self.is_live:
            model = with_presences(model, self._journal.presence.all, self._folder)
            self._absent = absent_work(model)
        self._show(model, 1.0)

    def _read_existing_rows(self) -> None:
        last = self._journal.last_seq() if self._until is None else self._until
        if self._fold.seq == 0:
            self._fold = open_fold(self._journal, last)
        preview, _ = self.read_initial_model()
        while self._fold.seq < last and not self._stopping.is_set():
            started = time.monotonic()
            rows = self._journal.rows(self._fold.seq, until=last, limit=_CHUNK)
            if not rows:
                break
            self._fold.apply(rows)
            if self._fold.seq // _PROGRESS_ROWS != rows[0].seq // _PROGRESS_ROWS:
                self._show(preview, self._fold.seq / last)
            # Sleep for the duration of the read, to leave half of the time to key handling.
            self._stopping.wait(time.monotonic() - started)
        self._show_now()

    def _read_new_rows(self) -> bool:
        before = self._fold.seq
        while rows := self._journal.rows(self._fold.seq, limit=_LIVE_CHUNK):
            self._fold.apply(rows)
            if len(rows) < _LIVE_CHUNK:
                break
        return self._fold.seq != before
