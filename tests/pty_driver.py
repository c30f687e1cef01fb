"""Run a command in a pseudo-terminal, keep every byte that it writes, and draw the screen.

A thread reads the bytes and answers the terminal queries of Textual. pyte draws the screen when a test asks
for it.
"""

from __future__ import annotations

import codecs
import contextlib
import fcntl
import os
import re
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from threading import Condition, Thread
from types import TracebackType
from typing import NamedTuple, Self

import psutil
import pyte
from wcwidth import wcwidth

PATIENCE = 60.0
"""Seconds to wait for what must happen."""

Predicate = Callable[[list[str]], bool]

# The answers of a modern terminal to Textual's first queries: it supports synchronized output (mode 2026),
# and does not report its size in band (mode 2048).
_ANSWERS = {b"\x1b[?2026$p": b"\x1b[?2026;2$y", b"\x1b[?2048$p": b"\x1b[?2048;0$y", b"\x1b[c": b"\x1b[?62;c"}

# Sequences that pyte would print or fail on: unknown private CSI, DCS and APC strings, and zero-width
# characters, at which it drops the rest of the text.
_UNKNOWN_TO_PYTE = re.compile(
    "\x1b\\[[<=>][0-9;:]*[ -/]*[@-~]|\x1b\\[[?][0-9;]*\\$p|\x1b[P_^X].*?\x1b\\\\"
    "|[\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]",
    re.DOTALL,
)


class NotSeen(TimeoutError):
    """The awaited text or bytes did not appear. The message shows the screen."""


class Cell(NamedTuple):
    """A character on the screen, and its style."""

    text: str
    foreground: str
    background: str
    attributes: tuple[bool, ...]
    """Bold, italic, underlined, struck through, reversed."""


class Terminal:
    """A command in a pseudo-terminal of the given size. It starts at once, and ends with the context."""

    def __init__(
        self,
        command: Sequence[str],
        columns: int = 120,
        rows: int = 40,
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
    ) -> None:
        self._picture = _Picture(columns, rows)
        self._shown = 0
        self._output = bytearray()
        self._last_output = time.monotonic()
        self._changed = Condition()
        self._ended = False
        self._fd, program_end = os.openpty()
        fcntl.ioctl(program_end, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        # The size is the terminal's own, not that of a surrounding terminal.
        around = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
        surroundings = {**around, "TERM": "xterm-256color", "COLORTERM": "truecolor", **(env or {})}
        self._process = subprocess.Popen(
            command,
            stdin=program_end,
            stdout=program_end,
            stderr=program_end,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
            env=surroundings,
            cwd=cwd,
        )
        os.close(program_end)
        self._reader = Thread(target=self._read, name="pty-reader", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def _screen(self) -> pyte.Screen:
        return self._picture.screen

    def send(self, keys: str) -> None:
        """Type ``keys``."""
        os.write(self._fd, keys.encode())

    def mark(self) -> int:
        """Return the number of bytes received so far."""
        with self._changed:
            return len(self._output)

    def raw(self, since: int = 0) -> bytes:
        """Return every byte received from byte ``since`` on."""
        with self._changed:
            return bytes(self._output[since:])

    def wait_for_bytes(self, wanted: bytes, *, since: int = 0, timeout: float = PATIENCE) -> None:
        """Wait until ``wanted`` is received at or after byte ``since``. Raises `NotSeen` after ``timeout``
        seconds."""
        deadline = time.monotonic() + timeout
        while wanted not in (found := self.raw(since)):
            self._wait_for_more(since + len(found), deadline, repr(wanted))

    def wait_for(self, holds: Predicate, *, what: str = "the screen", timeout: float = PATIENCE) -> None:
        """Wait until ``holds`` is true for the screen's lines. Raises `NotSeen` after ``timeout`` seconds."""
        deadline = time.monotonic() + timeout
        while not holds(self.screen()):
            self._wait_for_more(self._shown, deadline, what)

    def wait_for_text(self, text: str, *, timeout: float = PATIENCE) -> None:
        """Wait until a line of the screen contains ``text``. Raises `NotSeen` after ``timeout`` seconds."""
        self.wait_for(lambda lines: any(text in line for line in lines), what=text, timeout=timeout)

    def wait_for_output(self, since: int, timeout: float) -> bool:
        """Wait until a byte is received after byte ``since``. Return False after ``timeout`` seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: self._ended or len(self._output) > since, timeout)

    def settle(self, quiet: float = 0.3, timeout: float = 10) -> None:
        """Wait until no output is received for ``quiet`` seconds, at most ``timeout`` seconds."""
        deadline = time.monotonic() + timeout
        with self._changed:
            while time.monotonic() < deadline and not self._ended:
                remaining = self._last_output + quiet - time.monotonic()
                if remaining <= 0:
                    return
                self._changed.wait(remaining)

    def wait_until_idle(self, quiet: float = 0.15, timeout: float = PATIENCE) -> None:
        """Wait until there is no output and every process has slept for ``quiet`` seconds, however busy the
        machine is.

        A process that waits for a processor is not asleep. Raises `NotSeen` after ``timeout`` seconds.
        """
        process, deadline, since = psutil.Process(self.pid), time.monotonic() + timeout, time.monotonic()
        while time.monotonic() < max(since, self._last_output) + quiet:
            if time.monotonic() > deadline:
                raise NotSeen("the command was never idle")
            with contextlib.suppress(psutil.NoSuchProcess):
                if any(_is_busy(each) for each in (process, *process.children(recursive=True))):
                    since = time.monotonic()
            time.sleep(0.02)

    def screen(self) -> list[str]:
        """Return the lines of the screen."""
        with self._changed:
            new, self._shown = bytes(self._output[self._shown :]), len(self._output)
        self._picture.feed(new)
        return self._picture.lines()

    def cells(self) -> list[list[Cell]]:
        """Return the cells of the screen, row by row."""
        self.screen()
        return self._picture.cells()

    def repainted(self) -> list[list[Cell]]:
        """Let the command draw its whole screen again, and return the cells that these bytes alone make.

        SIGCONT triggers it, as when a shell resumes a stopped program. `cells` keeps the screen that the
        partial updates made, whose terminal never gets these bytes.
        """
        self.screen()
        os.kill(self.pid, signal.SIGCONT)
        self.wait_for_bytes(b"\x1b[?1049h", since=self._shown)
        self.wait_until_idle()
        painted = _Picture(self._screen.columns, self._screen.lines)
        with self._changed:
            new, self._shown = bytes(self._output[self._shown :]), len(self._output)
        painted.feed(new)
        return painted.cells()

    def resize(self, columns: int, rows: int) -> None:
        """Resize the terminal, as a user who drags its window."""
        self.screen()
        self._screen.resize(rows, columns)
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def wait(self, timeout: float = PATIENCE) -> int:
        """Wait until the command ends by itself and all of its bytes are received. Return its exit status."""
        status = self._process.wait(timeout)
        self._reader.join(timeout)
        return status

    def close(self) -> None:
        """End the command and all processes of its session, with SIGKILL if they ignore other signals."""
        for sign in (signal.SIGHUP, signal.SIGTERM, signal.SIGKILL):
            if self._process.poll() is not None:
                break
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, sign)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(2)
        self._reader.join(2)
        os.close(self._fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _read(self) -> None:
        tail = b""
        while True:
            try:
                data = os.read(self._fd, 1 << 16)
            except OSError:  # EIO: the last process on the other end is gone
                data = b""
            with self._changed:
                self._output += data
                self._last_output = time.monotonic()
                self._ended = not data
                self._changed.notify_all()
            if not data:
                return
            tail = self._answer(tail, data)

    def _answer(self, tail: bytes, data: bytes) -> bytes:
        """Answer the queries of the program. Return the last bytes, in which the next query may start."""
        known = len(tail)
        window = tail + data
        for question, answer in _ANSWERS.items():
            at = window.find(question)
            if at >= 0 and at + len(question) > known:
                os.write(self._fd, answer)
        return window[-16:]

    def _wait_for_more(self, seen: int, deadline: float, what: str) -> None:
        self.wait_for_output(seen, deadline - time.monotonic())
        if self.mark() <= seen:
            ended = " (the command has ended)" if self._ended else ""
            shown = "\n".join(line.rstrip() for line in self.screen())
            raise NotSeen(f"{what} was not seen{ended}; the screen is:\n{shown}")


class _Picture:
    """The screen that a stream of bytes draws."""

    def __init__(self, columns: int, rows: int) -> None:
        self.screen = pyte.Screen(columns, rows)
        self._stream = pyte.Stream(self.screen)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._pending = ""

    def feed(self, data: bytes) -> None:
        text = self._pending + self._decoder.decode(data)
        # A sequence that is cut in two waits for its other half.
        escape = text.rfind("\x1b", max(0, len(text) - 32))
        whole = escape < 0 or re.match("\x1b(\\[[0-?]*[ -/]*[@-~]|[^\\[P_^X\\]])", text[escape:])
        cut = len(text) if whole else escape
        self._pending = text[cut:]
        self._stream.feed(_UNKNOWN_TO_PYTE.sub("", text[:cut]))

    def lines(self) -> list[str]:
        return ["".join(cell.text for cell in row) for row in self.cells()]

    def cells(self) -> list[list[Cell]]:
        """Return the cells, row by row. The right half of a wide character is empty.

        A wide character with one overwritten half leaves an empty cell, which terminals show as blank.
        """
        found = []
        for row in map(self.screen.buffer.__getitem__, range(self.screen.lines)):
            drawn = [row[column] for column in range(self.screen.columns)]
            wide = (False, *(bool(each.data) and wcwidth(each.data[0]) == 2 for each in drawn))
            found.append(
                [
                    Cell(
                        each.data or " " * (not half),
                        each.fg,
                        each.bg,
                        (each.bold, each.italics, each.underscore, each.strikethrough, each.reverse),
                    )
                    for each, half in zip(drawn, wide, strict=False)
                ]
            )
        return found


def _is_busy(process: psutil.Process) -> bool:
    """Return whether the process runs, or waits for a processor or a disk."""
    return process.status() not in (psutil.STATUS_SLEEPING, psutil.STATUS_ZOMBIE, psutil.STATUS_STOPPED)
