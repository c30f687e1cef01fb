"""The far end: follows the journal of one workspace, sends its state, and takes answers."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable
from contextlib import closing
from threading import Event, Lock, Thread
from typing import Final, NamedTuple

from pydantic import BaseModel

from watchroom.features.overview.model import Model
from watchroom.features.overview.presence import with_presences
from watchroom.features.overview.snapshots import open_fold
from watchroom.kernel.journal import Journal
from watchroom.serving.machines.answers import PersonAnswers
from watchroom.serving.machines.messages import (
    BEAT_SECONDS,
    MAX_LINE,
    PROTOCOL,
    BadLineError,
    Beat,
    Check,
    FarSummary,
    Hello,
    NeedAnswer,
    dump_line,
    parse_from_near,
)

SILENT_SECONDS: Final = 30.0
"""Seconds without a line after which the near end counts as gone."""
_FRAME_SECONDS: Final = 0.3
"""Minimum seconds between two summaries."""
_CHUNK: Final = 2000
_PIECE: Final = 1 << 16

Describe = Callable[[Model], FarSummary]
"""Returns the summary of a model."""


class Channel(NamedTuple):
    """The descriptors of the connection to the near end: ``source`` to read, ``target`` to write."""

    source: int
    target: int


class FarEnd:
    """Serves the workspace of ``journal`` to the near end at ``channel``.

    - ``hello``: the first line.
    - ``describe``: makes summaries.
    - ``answers``: carries out answers.
    """

    def __init__(
        self, journal: Journal, hello: Hello, describe: Describe, answers: PersonAnswers, channel: Channel
    ) -> None:
        self._journal = journal
        self._hello = hello
        self._describe = describe
        self._answers = answers
        self._channel = channel
        self._writing = Lock()
        self._ended = Event()
        self._pending = b""

    def run(self) -> None:
        """Serve until the near end leaves, or is silent for `SILENT_SECONDS`. Raise `JournalError`."""
        self._send(self._hello)
        hello = self._next_line()
        if hello is None or not _has_same_protocol(hello):
            return
        failures: list[BaseException] = []
        # The thread may block for as long as the near end reads nothing, so it does not hold up the end.
        Thread(target=self._follow_safely, args=(failures,), name="watchroom-machine", daemon=True).start()
        while not self._ended.is_set() and (line := self._next_line()) is not None:
            self._handle(line)
        self._ended.set()
        if failures:
            raise failures[0]

    def _handle(self, line: bytes) -> None:
        try:
            message = parse_from_near(line)
        except BadLineError:
            # A newer near end may send more kinds of messages.
            return
        if isinstance(message, NeedAnswer):
            self._send(self._answers.answer(message))
        elif isinstance(message, Check) and (result := self._answers.check(message)) is not None:
            self._send(result)

    def _next_line(self) -> bytes | None:
        """Return the next line; None at the end, after silence, or if a line is too long."""
        deadline = time.monotonic() + SILENT_SECONDS
        while b"\n" not in self._pending:
            left = deadline - time.monotonic()
            if left <= 0 or self._ended.is_set() or len(self._pending) > MAX_LINE:
                return None
            readable, _, _ = select.select([self._channel.source], [], [], min(left, BEAT_SECONDS))
            if readable:
                piece = os.read(self._channel.source, _PIECE)
                if not piece:
                    return None
                self._pending += piece
        line, _, self._pending = self._pending.partition(b"\n")
        return line

    def _send(self, message: BaseModel) -> None:
        line = dump_line(message)
        if not self._writing.acquire(timeout=SILENT_SECONDS):
            # The near end reads nothing.
            self._ended.set()
            return
        try:
            while line:
                line = line[os.write(self._channel.target, line) :]
        except OSError:
            self._ended.set()
        finally:
            self._writing.release()

    def _follow_safely(self, failures: list[BaseException]) -> None:
        try:
            self._follow()
        except BaseException as error:  # noqa: BLE001  # raised by `run`
            failures.append(error)
        finally:
            self._ended.set()

    def _follow(self) -> None:
        """Send summaries and signs of life."""
        fold, sent = open_fold(self._journal), None
        with closing(self._journal.changes()) as changes:
            while not self._ended.is_set():
                while rows := self._journal.rows(fold.seq, limit=_CHUNK):
                    fold.apply(rows)
                now = self._journal.now()
                model = with_presences(fold.model(), self._journal.presence.all)._replace(time=now)
                summary = self._describe(model)
                if sent is None or summary.model_copy(update={"time": sent.time}) != sent:
                    self._send(summary)
                    sent = summary
                else:
                    self._send(Beat(time=now))
                self._ended.wait(_FRAME_SECONDS)
                changes.wait(BEAT_SECONDS - _FRAME_SECONDS)


def _has_same_protocol(line: bytes) -> bool:
    try:
        hello = parse_from_near(line)
    except BadLineError:
        return False
    return isinstance(hello, Hello) and hello.protocol == PROTOCOL
