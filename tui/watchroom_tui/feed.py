"""Brings the journal to the screen: a thread that tails it, folds its rows, and hands over whole models.

The event loop never reads the journal. A source is either live or as of an earlier row; what comes out of
it looks the same.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from threading import Event, Thread
from typing import Final

from watchroom.journal import Journal
from watchroom.projections import Fold, Model

FRAME_SECONDS: Final = 0.05
"""At most so many seconds pass between two models while rows keep coming: 20 a second."""

_CHUNK: Final = 2000
_BACKSTOP_SECONDS: Final = 2.0
_WATCH_STEP_MS: Final = 5
_WATCH_DEBOUNCE_MS: Final = 5


class Feed:
    """Calls ``show`` with each new model, on the feed's thread.

    ``until`` makes it a source as of that row. ``progress`` is called with the share of the journal that has
    been read, 0 to 1, while a long one is read for the first time.
    """

    def __init__(
        self,
        journal: Journal,
        show: Callable[[Model], None],
        *,
        until: int | None = None,
        progress: Callable[[float], None] | None = None,
        watched: str | None = None,
    ) -> None:
        self._journal = journal
        self._show = show
        self._until = until
        self._progress = progress
        self._watched = watched
        self._fold = Fold(journal.content)
        self._woken = Event()
        self._stopping = Event()
        self._threads = [Thread(target=self._run, name="watchroom-feed", daemon=True)]
        if watched is not None and until is None:
            self._threads.append(Thread(target=self._watch, name="watchroom-watch", daemon=True))

    @property
    def is_live(self) -> bool:
        return self._until is None

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def wake(self) -> None:
        """Say that there may be new rows. May be called from any thread."""
        self._woken.set()

    def stop(self) -> None:
        """Stop and wait until the threads have ended."""
        self._stopping.set()
        self._woken.set()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()

    def _run(self) -> None:
        self._read_what_is_there()
        while not self._stopping.is_set() and self.is_live:
            self._woken.wait(_BACKSTOP_SECONDS)
            self._woken.clear()
            if self._take_in():
                self._show(self._fold.model())
                self._stopping.wait(FRAME_SECONDS)

    def _read_what_is_there(self) -> None:
        last = self._journal.last_seq() if self._until is None else self._until
        if last > _CHUNK:
            # The newest rows first, so that there is something to look at while the rest is read.
            preview = Fold(self._journal.content)
            preview.apply(reversed(self._journal.rows_before(last + 1, limit=_CHUNK // 4)))
            self._show(preview.model())
        while self._fold.seq < last and not self._stopping.is_set():
            rows = self._journal.rows(self._fold.seq, until=last, limit=_CHUNK)
            if not rows:
                break
            self._fold.apply(rows)
            if self._progress and last > _CHUNK:
                self._progress(self._fold.seq / last)
        self._show(self._fold.model())

    def _take_in(self) -> bool:
        before = self._fold.seq
        while rows := self._journal.rows(self._fold.seq, limit=_CHUNK):
            self._fold.apply(rows)
            if len(rows) < _CHUNK:
                break
        return self._fold.seq != before

    def _watch(self) -> None:
        """Wake when another process commits: the journal's write-ahead log changes."""
        from watchfiles import watch

        def is_journal(_: object, path: str) -> bool:
            return os.path.basename(path).startswith("journal.db")

        for _ in watch(
            self._watched or ".",
            watch_filter=is_journal,
            debounce=_WATCH_DEBOUNCE_MS,
            step=_WATCH_STEP_MS,
            stop_event=self._stopping,
            recursive=False,
            rust_timeout=1000,
            yield_on_timeout=True,
        ):
            self._woken.set()
