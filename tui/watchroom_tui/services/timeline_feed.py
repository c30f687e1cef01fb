"""Brings earlier moments of the journal to the screen: a thread that goes to the row that was asked for last,
and plays on from there.

A jump begins at the snapshot before its row; where another one is asked for meanwhile, it is given up.
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
"""At least so long between two models while it plays: 20 a second."""
_RETRY_SECONDS: Final = 1.0
_CHUNK: Final = 400
_GAP: Final = int(GAP_SECONDS * 1e9)
_log = logging.getLogger("watchroom")

Wish: TypeAlias = Callable[[int], "int | None"]
"""Given the number of the row that is shown, that of the one to go to; None: stay."""


class Moment(NamedTuple):
    """What is shown of an earlier row. ``seq`` is the row that was asked for; ``model`` may be of one before
    it while it is being dragged. ``has_ended``: it was played, and there is no further row. ``visit`` counts
    how often `TimelineFeed.leave` was called before."""

    model: Model
    seq: int
    has_ended: bool
    visit: int


class TimelineFeed:
    """Calls ``show`` with each moment, on a thread of its own, from the first wish on.

    No row after ``until`` is shown, if it is given. ``clock`` gives seconds.
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
        """How often `leave` was called: moments of an earlier visit are not to be shown any more."""
        return self._visit

    def go(self, wish: Wish, *, start: int | None = None, is_dragging: bool = False) -> None:
        """Go to the row that ``wish`` gives, which is asked on the thread: it may read. ``start`` is the row
        that is shown, where that was not this feed's doing. While it is dragged, nearer snapshots will do."""
        with self._changed:
            if start is not None:
                self._seq = start
            if is_dragging:
                # Where it was dragged before is of no interest any more.
                self._wishes.clear()
            self._wishes.append(wish)
            self._is_dragging = is_dragging
            self._wake()

    def play(self, speed: float | None) -> None:
        """Play on, ``speed`` times as quick as it was, with long gaps cut; None: stop playing."""
        with self._changed:
            self._speed = speed
            self._played_at = self._clock()
            self._wake()

    def leave(self) -> None:
        """Forget what was wished, and show nothing of it any more."""
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
                    # The dashboard says that the server does not answer; what was wished holds.
                    self._wishes[:0] = wishes if visit == self._visit else []
                    self._changed.wait_for(lambda: self._is_stopping, _RETRY_SECONDS)
            except Exception:  # noqa: BLE001  # the next jump is answered
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
                # What it took to get there is not played.
                self._played_at = self._clock()
            self._tell(fold, visit)

    def _is_given_up(self, visit: int) -> bool:
        with self._changed:
            return bool(self._wishes) or visit != self._visit or self._is_stopping

    def _fold_before(self, seq: int) -> Fold:
        """A fold of rows up to ``seq``: the one at hand, or a snapshot that is nearer."""
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
    """How many of ``rows`` are due when ``budget`` nanoseconds were played since ``time_ns``, and how many of
    these that takes. Longer gaps than `GAP_SECONDS` count as so long."""
    spent = 0
    for index, row in enumerate(rows):
        gap = max(0, min(_GAP, row.time - time_ns))
        if spent + gap > budget:
            return index, spent
        spent, time_ns = spent + gap, row.time
    return len(rows), spent
