"""End a command on SIGTERM and SIGHUP as on ctrl+c, so that its open resources are closed."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Final

_SIGNALS: Final = (signal.SIGTERM, signal.SIGHUP)
_SLICE_SECONDS: Final = 0.5
"""Maximum seconds that the main thread sleeps at a time."""


class Terminated(SystemExit):
    """The process received the signal ``number``, which asks it to end.

    It extends SystemExit, because an event loop passes SystemExit on to its caller, but not ordinary
    exceptions.
    """

    def __init__(self, number: int) -> None:
        super().__init__(128 + number)
        self.number = number


@contextmanager
def ending_on_signals() -> Iterator[None]:
    """Raise `Terminated` in the main thread on SIGTERM or SIGHUP. A second signal ends the process at once.
    Ignored signals, as under nohup, stay ignored."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handled = [number for number in _SIGNALS if signal.getsignal(number) == signal.SIG_DFL]

    def end(number: int, _frame: FrameType | None) -> None:
        for each in handled:
            signal.signal(each, signal.SIG_DFL)
        raise Terminated(number)

    for number in handled:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in handled:
            signal.signal(number, signal.SIG_DFL)


def sleep(seconds: float) -> None:
    """Sleep in the main thread for ``seconds``, or until a signal raises `Terminated`.

    It sleeps in slices of `_SLICE_SECONDS`. The system may deliver a signal to another thread, which does not
    wake the main thread.
    """
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        time.sleep(min(left, _SLICE_SECONDS))


def die_of(number: int) -> None:
    """End this process with the signal ``number``, so that the parent process sees the cause."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os.kill(os.getpid(), number)
