"""A thread that computes the models of earlier moments, for jumps to rows and for playback.

A jump starts at the last snapshot before its row. A new request cancels the jump.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from threading import Condition, Thread
from typing import Final, NamedTuple, TypeAlias

from watchroom.errors import JournalUnreachable
from watchroom.features.overview.fold import Fold
from watchroom.features.overview.model import Model
from watchroom.features.overview.snapshots import open_fold
from watchroom.features.overview.timeline import GAP_SECONDS
from watchroom.kernel.journal import Journal
from watchroom.model import Row

FRAME_SECONDS: Final = 0.05
"""Minimum number of seconds between two models during playback: 20 models per second."""
_RETRY_SECONDS: Final = 1.0
_CHUNK: Final = 400
_GAP: Final = int(GAP_SECONDS * 1e9)
_log = logging.getLogger("watchroom")

Wish: TypeAlias = Callable[[int], "int | None"]
"""Callback that selects the row to go to. Its argument is the number of the shown row. It returns the number
of the target row, or None to stay."""


class Moment(NamedTuple):
    """The state of the workspace at an earlier row.

    - ``model``: the state. It may be the state at an earlier row than ``seq`` while the person drags.
    - ``seq``: the requested row.
    - ``has_ended``: whether playback has reached the last row.
    - ``visit``: the number of earlier calls of `TimelineFeed.leave`.
    """

    model: Model
    seq: int
    has_ended: bool
    visit: int


class TimelineFeed:
    """Thread that calls ``show`` with each moment. The thread starts with the first request.

    - ``until``: the last row to show. None: the newest row.
    - ``clock``: returns the time in seconds.
    """

    def __init__(
        self,
        journal: Journal,
        show: Callable[[Moment], object],
        *,
        until: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._journal = journal
        self._show = show
        self._until = until
        self._clock = clock
        self._changed = Condition()
        self._wishes: list[Wish] = []
        self._seq = 0
        self._visit = 0
        self._speed: float | None = None
        self._played_at = 0.0
        self._is_dragging = False
        self._is_stopping = False
        self._fold: Fold | None = None
        self._thread: Thread | None = None

    @property
    def visit(self) -> int:
        """The number of calls of `leave`. Moments of earlier visits must not be shown."""
        return self._visit

    def go(self, wish: Wish, *, start: int | None = None, is_dragging: bool = False) -> None:
        """Go to the row that ``wish`` returns. ``wish`` runs on the thread, so it can read the journal.

        - ``start``: the shown row, if this feed did not show it.
        - ``is_dragging``: whether a moment nearby is enough.
        """
        with self._changed:
            if start is not None:
                self._seq = start
            if is_dragging:
                # Earlier positions of the mouse do not matter any more.
                self._wishes.clear()
            self._wishes.append(wish)
            self._is_dragging = is_dragging
            self._wake()

    def play(self, speed: float | None) -> None:
        """Play at ``speed`` times real time, with long gaps shortened. None: stop playback."""
        with self._changed:
            self._speed = speed
            self._played_at = self._clock()
            self._wake()

    def leave(self) -> None:
        """Drop all requests, and start a new visit."""
        with self._changed:
            self._visit += 1
            self._wishes.clear()
            self._speed = None

    def stop(self) -> None:
        """Stop, and wait until the thread has ended."""
        with self._changed:
            self._is_stopping = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()

    def _wake(self) -> None:
        if self._thread is None:
            self._thread = Thread(target=self._run, name="watchroom-timeline", daemon=True)
            self._thread.start()
        self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._wishes or self._speed is not None or self._is_stopping)
                if self._is_stopping:
                    return
                wishes, self._wishes = self._wishes, []
                seq, visit, is_dragging = self._seq, self._visit, self._is_dragging
            try:
                if wishes:
                    self._follow(wishes, seq, visit, is_dragging)
                else:
                    self._play_on(visit)
            except JournalUnreachable:
                with self._changed:
                    # The dashboard shows the outage, and the requests are kept.
                    self._wishes[:0] = wishes if visit == self._visit else []
                    self._changed.wait_for(lambda: self._is_stopping, _RETRY_SECONDS)
            except Exception:  # noqa: BLE001  # the next request is handled
                _log.exception("row %d could not be shown", seq)
                with self._changed:
                    self._speed = None

    def _follow(self, wishes: Sequence[Wish], seq: int, visit: int, is_dragging: bool) -> None:
        for wish in wishes:
            wished = wish(seq)
            seq = seq if wished is None else wished
        with self._changed:
            if visit != self._visit:
                return
            self._seq = seq
        fold = self._fold_before(seq)
        if is_dragging and fold.seq < seq:
            self._tell(fold, visit)
        while fold.seq < seq:
            rows = self._journal.rows(fold.seq, until=seq, limit=_CHUNK)
            if not rows or self._is_given_up(visit):
                break
            fold.apply(rows)
        if not self._is_given_up(visit):
            with self._changed:
                # Exclude the duration of the jump from playback.
                self._played_at = self._clock()
            self._tell(fold, visit)

    def _is_given_up(self, visit: int) -> bool:
        with self._changed:
            return bool(self._wishes) or visit != self._visit or self._is_stopping

    def _fold_before(self, seq: int) -> Fold:
        """Return a fold of rows up to ``seq`` at most: the current fold, or a nearer snapshot."""
        fold = self._fold
        if fold is None or not fold.seq <= seq <= fold.seq + _CHUNK:
            found = open_fold(self._journal, seq)
            if fold is None or fold.seq > seq or found.seq > fold.seq:
                fold = self._fold = found
        return fold

    def _tell(self, fold: Fold, visit: int, *, has_ended: bool = False) -> None:
        self._show(Moment(fold.model(), self._seq, has_ended, visit))

    def _play_on(self, visit: int) -> None:
        fold = self._fold_before(self._seq)
        rows = self._journal.rows(fold.seq, until=self._until, limit=_CHUNK)
        with self._changed:
            if self._speed is None or self._wishes or visit != self._visit:
                return
            has_ended = not rows
            if has_ended:
                self._speed = None
            else:
                budget = int((self._clock() - self._played_at) * self._speed * 1e9)
                due, spent = due_rows(rows, fold.model().time, budget)
                self._played_at += spent / self._speed / 1e9
                rows = rows[:due]
                if rows:
                    self._seq = rows[-1].seq
        fold.apply(rows)
        if rows or has_ended:
            self._tell(fold, visit, has_ended=has_ended)
        with self._changed:
            self._changed.wait_for(lambda: bool(self._wishes) or self._is_stopping, FRAME_SECONDS)


def due_rows(rows: Sequence[Row], time_ns: int, budget: int) -> tuple[int, int]:
    """Return the number of due ``rows``, and their total duration in nanoseconds. A row is due within
    ``budget`` nanoseconds after ``time_ns``. Each gap counts as at most `GAP_SECONDS`."""
    spent = 0
    for index, row in enumerate(rows):
        gap = max(0, min(_GAP, row.time - time_ns))
        if spent + gap > budget:
            return index, spent
        spent, time_ns = spent + gap, row.time
    return len(rows), spent
