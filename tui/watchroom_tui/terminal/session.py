"""The terminal of the dashboard: whether it exists, and whether it is still open."""

from __future__ import annotations

import io
import os
import select
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import Event
from typing import IO, TYPE_CHECKING, Any

from watchroom.texts import Catalogue

from watchroom_tui.presentation.charset import Charset, terminal_charset
from watchroom_tui.presentation.usage import WrongUsage

if TYPE_CHECKING:
    from textual.app import App
    from textual.driver import Driver

    from watchroom_tui.presentation.theme import ColorDepth

_STREAMS = (0, 1, 2)
"""Standard input, output and error. Textual reads the first and draws on the last."""


def require_terminal(texts: Catalogue, instead: str) -> None:
    """Raise `WrongUsage` if standard input, output or error is not a terminal, or if the terminal cannot move
    its cursor. The error names ``instead``.

    Pages in a browser (`watchroom web`) need no terminal.
    """
    if is_page():
        return
    if not has_terminal():
        raise WrongUsage(texts("cli.no_terminal", instead=instead))
    if os.environ.get("TERM") == "dumb":
        raise WrongUsage(texts("cli.dumb_terminal", instead=instead))


def has_terminal() -> bool:
    """Return whether standard input, output and error are a terminal that a person types in."""
    return all(map(os.isatty, _STREAMS))


def color_depth(environ: Mapping[str, str]) -> ColorDepth:
    """Return the number of colours of a terminal with the variables ``environ``, as rich determines it. 16 if
    colours are disabled (``NO_COLOR``)."""
    depths: Mapping[str, ColorDepth] = {"truecolor": "full", "256": "256", "standard": "16"}
    wanted = environ.get("TEXTUAL_COLOR_SYSTEM", "auto")
    if "NO_COLOR" in environ:
        return "16"
    if wanted in depths:
        return depths[wanted]
    if environ.get("COLORTERM", "").strip().lower() in ("truecolor", "24bit"):
        return "full"
    kind = environ.get("TERM", "").strip().lower().rpartition("-")[2]
    return "256" if kind in ("256color", "kitty") else "16"


def is_page() -> bool:
    """Return whether the dashboard is drawn for a page in a browser. The server of the page sets the
    driver."""
    return os.environ.get("TEXTUAL_DRIVER", "").endswith(":WebDriver")


class TerminalWatch:
    """Watch on the terminal: detects that nobody can see the dashboard any more, because its terminal was
    closed or its server ended."""

    def __init__(self) -> None:
        self._is_gone = Event()
        self._is_terminated = Event()

    @property
    def must_close(self) -> bool:
        """Whether the dashboard must close: its terminal is gone, or the process received SIGTERM."""
        return self._is_terminated.is_set() or self.is_gone

    @property
    def is_gone(self) -> bool:
        """Whether the terminal is gone permanently."""
        return self._is_gone.is_set() or is_hung_up(sys.__stdin__)

    def mark_gone(self) -> None:
        """Record that the output has no reader."""
        self._is_gone.set()

    @contextmanager
    def hangups(self) -> Iterator[None]:
        """Record SIGHUP and SIGTERM, so that the dashboard can close its resources and restore the terminal.

        Use it only in the main thread. Later output is discarded if the terminal is gone at the end.
        """
        before = {
            signal.SIGHUP: signal.signal(signal.SIGHUP, lambda _number, _frame: self.mark_gone()),
            signal.SIGTERM: signal.signal(signal.SIGTERM, lambda _number, _frame: self._is_terminated.set()),
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            if self.is_gone:
                _discard_streams()

    @property
    def color_depth(self) -> ColorDepth:
        """The number of colours of the terminal."""
        return color_depth(os.environ)

    def driver_class(self) -> type[Driver]:
        """Return Textual's driver for a terminal or a page, adapted to survive a failed write. Otherwise a
        failed write would end the thread that writes. All writers, even the exit, would then wait for the
        thread."""
        return self._page_driver() if is_page() else self._terminal_driver()

    def _terminal_driver(self) -> type[Driver]:
        from watchroom_tui.terminal.driver import SuspendableDriver
        from watchroom_tui.textual_compat import wrap_output

        mark_gone, charset = self.mark_gone, terminal_charset()

        class TerminalDriver(SuspendableDriver):
            encoding = SuspendableDriver.encoding if charset is None else charset.encoding

            def __init__(self, app: App[Any], **given: Any) -> None:
                super().__init__(app, **given)
                wrap_output(self, lambda file: WatchedOutput(file, mark_gone, charset))

        return TerminalDriver

    def _page_driver(self) -> type[Driver]:
        from textual.drivers.web_driver import WebDriver

        from watchroom_tui.textual_compat import wrap_page_output

        def watched(write: Callable[[bytes], int]) -> Callable[[bytes], int]:
            def write_watched(data: bytes) -> int:
                try:
                    return write(data)
                except OSError:
                    self.mark_gone()
                    return len(data)

            return write_watched

        class PageDriver(WebDriver):
            def __init__(self, app: App[Any], **given: Any) -> None:
                super().__init__(app, **given)
                wrap_page_output(self, watched)

        return PageDriver


class WatchedOutput:
    """Output to a terminal. After a failed write, nothing more is written. Characters outside of ``charset``
    are replaced."""

    def __init__(self, file: IO[str], mark_gone: Callable[[], None], charset: Charset | None = None) -> None:
        self._file = file
        self._mark_gone = mark_gone
        self._charset = charset
        self._has_failed = False

    def write(self, text: str) -> int:
        if not self._has_failed:
            try:
                return self._file.write(
                    text if self._charset is None else self._charset.replace(text, keeps_width=True)
                )
            except OSError:
                self._fail()
        return len(text)

    def flush(self) -> None:
        if not self._has_failed:
            try:
                self._file.flush()
            except OSError:
                self._fail()

    def fileno(self) -> int:
        return self._file.fileno()

    def isatty(self) -> bool:
        return self._file.isatty()

    def _fail(self) -> None:
        self._has_failed = True
        self._mark_gone()


def is_hung_up(stream: IO[str] | None) -> bool:
    """Return whether ``stream`` is None or its other end is closed. Return False for a stream without a
    descriptor, and on systems whose polling does not report a closed end. On such systems a failed write
    reports it."""
    if stream is None:
        return True
    try:
        descriptor = stream.fileno()
    except io.UnsupportedOperation:
        return False
    poll = select.poll()
    poll.register(descriptor, 0)
    return any(events & (select.POLLHUP | select.POLLERR) for _, events in poll.poll(0))


def _discard_streams() -> None:
    """Discard buffered and later output, without raising an error."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in _STREAMS:
        os.dup2(nowhere, stream)
    os.close(nowhere)
