"""Run a command in a pseudo-terminal, and keep every byte that it writes with its time of arrival.

A thread reads the bytes and their times. pyte draws the screen afterwards, so that looking at it delays
neither the program nor the times. Linux and macOS.
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
import sys
import termios
import time
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from threading import Condition, Lock, Thread
from types import TracebackType
from typing import Final, NamedTuple, Self

import psutil
import pyte
from wcwidth import wcwidth

Predicate = Callable[[list[str]], bool]
Look = Callable[[list[str]], list[str]]
"""Returns the relevant part of a screen's lines."""

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
_SWITCH_SECONDS = 0.0001


class Chunk(NamedTuple):
    """The bytes of one read, their time (seconds, monotonic clock), and their end in the stream."""

    at: float
    end: int
    data: bytes


class Usage(NamedTuple):
    """Resources of a process and its descendants.

    - ``cpu``: CPU seconds so far.
    - ``rss``: resident bytes. Shared pages, such as libraries, count for each process.
    - ``once``: the resident bytes of the first process, plus the unshared bytes of the others.
    """

    cpu: float
    rss: int
    once: int


class NotSeen(TimeoutError):
    """The awaited text or bytes did not appear. The message shows the screen."""


class _Hurry:
    """Shortens thread switches while terminals are open, so that their readers do not wait for pyte.
    Everything else becomes slower."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._open = 0
        self._usual = 0.0

    def begin(self) -> None:
        with self._lock:
            if self._open == 0:
                self._usual = sys.getswitchinterval()
                sys.setswitchinterval(_SWITCH_SECONDS)
            self._open += 1

    def end(self) -> None:
        with self._lock:
            self._open -= 1
            if self._open == 0:
                sys.setswitchinterval(self._usual)


_hurry: Final = _Hurry()


class Terminal:
    """A command in a terminal of the given size. It starts at once, and ends with the context."""

    def __init__(
        self,
        command: Sequence[str],
        columns: int = 120,
        rows: int = 40,
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
    ) -> None:
        _hurry.begin()
        self._screen = pyte.Screen(columns, rows)
        self._stream = pyte.Stream(self._screen)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._pending = ""
        self._shown = 0
        self._chunks: list[Chunk] = []
        self._changed = Condition()
        self._ended = False
        self._fd, program_end = os.openpty()
        fcntl.ioctl(program_end, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        # The size is the terminal's own, not that of a surrounding terminal.
        around = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
        surroundings = {**around, "TERM": "xterm-256color", "COLORTERM": "truecolor", **(env or {})}
        self.started = time.monotonic()
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

    def send(self, keys: str) -> float:
        """Type ``keys``. Return the time just before."""
        at = time.monotonic()
        os.write(self._fd, keys.encode())
        return at

    def mark(self) -> int:
        """Return the number of bytes received so far, where the search for later ones starts."""
        with self._changed:
            return self._chunks[-1].end if self._chunks else 0

    def chunks(self, since: int = 0) -> list[Chunk]:
        """Return the chunks that end after byte ``since``."""
        with self._changed:
            return self._chunks[bisect_right(self._chunks, since, key=lambda chunk: chunk.end) :]

    def raw(self, since: int = 0) -> bytes:
        """Return every byte received from ``since`` on."""
        chunks = self.chunks(since)
        if not chunks:
            return b""
        data = b"".join(chunk.data for chunk in chunks)
        return data[since - (chunks[0].end - len(chunks[0].data)) :]

    def wait_for_bytes(self, wanted: bytes, *, since: int = 0, timeout: float = 10) -> float:
        """Return the time at which ``wanted`` was received completely, at or after byte ``since``. Raises
        `NotSeen`."""
        deadline = time.monotonic() + timeout
        start = since
        while True:
            found = self.raw(start).find(wanted)
            if found >= 0:
                return self.chunks(start + found + len(wanted) - 1)[0].at
            seen = self.mark()
            start = max(start, seen - len(wanted))
            self._wait_for_more(seen, deadline, repr(wanted))

    def wait_for(self, holds: Predicate, *, what: str = "the screen", timeout: float = 10) -> float:
        """Return the time of the bytes with which ``holds`` became true for the screen. Raises `NotSeen`."""
        deadline = time.monotonic() + timeout
        at = self.started
        if holds(self._lines()):
            return self._chunks[-1].at if self._chunks else at
        while True:
            for chunk in self.chunks(self._shown):
                self._show(chunk)
                if holds(self._lines()):
                    return chunk.at
            self._wait_for_more(self._shown, deadline, what)

    def _lines(self) -> list[str]:
        """Return the lines of the screen.

        A wide character with one overwritten half leaves an empty cell, which pyte cannot draw. It is blank,
        as in terminals.
        """
        lines = []
        for row in map(self._screen.buffer.__getitem__, range(self._screen.lines)):
            cells = [row[column].data for column in range(self._screen.columns)]
            wide = (False, *(bool(cell) and wcwidth(cell[0]) == 2 for cell in cells))
            lines.append("".join(cell or " " * (not half) for cell, half in zip(cells, wide, strict=False)))
        return lines

    def wait_for_text(self, text: str, *, timeout: float = 10) -> float:
        """Return the time at which ``text`` was on one line of the screen. Raises `NotSeen`."""
        return self.wait_for(lambda lines: any(text in line for line in lines), what=text, timeout=timeout)

    def wait_until_stable(
        self, holds: Predicate, look: Look, *, quiet: float = 0.15, timeout: float = 10
    ) -> float:
        """Return the time since which ``look`` of the screen is unchanged, with ``holds`` true, after
        ``quiet`` seconds without output. Raises `NotSeen`."""
        at = self.wait_for(holds, timeout=timeout)
        self.settle(quiet, timeout)
        stood = look(self._lines())
        for chunk in self.chunks(self._shown):
            self._show(chunk)
            if (seen := look(self._lines())) != stood:
                at, stood = chunk.at, seen
        return at

    def settle(self, quiet: float = 0.3, timeout: float = 10) -> None:
        """Wait until no output is received for ``quiet`` seconds, at most ``timeout`` seconds."""
        deadline = time.monotonic() + timeout
        with self._changed:
            while time.monotonic() < deadline and not self._ended:
                last = self._chunks[-1].at if self._chunks else self.started
                remaining = last + quiet - time.monotonic()
                if remaining <= 0:
                    return
                self._changed.wait(remaining)

    def screen(self) -> list[str]:
        """Return the current lines."""
        for chunk in self.chunks(self._shown):
            self._show(chunk)
        return self._lines()

    def key_latency(self, keys: str, timeout: float = 5) -> float:
        """Return the seconds from typing ``keys`` to the next output. Only for a quiet screen. Raises
        `NotSeen`."""
        since = self.mark()
        sent = self.send(keys)
        self._wait_for_more(since, sent + timeout, f"an answer to {keys!r}")
        return self.chunks(since)[0].at - sent

    def usage(self) -> Usage:
        """Return the resources of the command and its descendants. The CPU time of ended descendants counts
        too."""
        cpu, rss, once = 0.0, 0, 0
        with contextlib.suppress(psutil.NoSuchProcess):
            parent = psutil.Process(self.pid)
            for process in [parent, *parent.children(recursive=True)]:
                with contextlib.suppress(psutil.NoSuchProcess):
                    times = process.cpu_times()
                    cpu += times.user + times.system + times.children_user + times.children_system
                    memory = process.memory_full_info()
                    rss += memory.rss
                    once += memory.rss if process == parent else memory.uss
        return Usage(cpu, rss, once)

    def resize(self, columns: int, rows: int) -> None:
        """Resize the terminal, as a user who drags its window."""
        self._screen.resize(rows, columns)
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def wait(self, timeout: float = 10) -> int:
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
        _hurry.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _read(self) -> None:
        end, tail = 0, b""
        while True:
            try:
                data = os.read(self._fd, 1 << 16)
            except OSError:  # EIO: the last process on the other end is gone
                data = b""
            at = time.monotonic()
            end += len(data)
            with self._changed:
                if data:
                    self._chunks.append(Chunk(at, end, data))
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
        with self._changed:
            more = self._changed.wait_for(
                lambda: self._ended or (self._chunks and self._chunks[-1].end > seen),
                deadline - time.monotonic(),
            )
            has_more = bool(self._chunks) and self._chunks[-1].end > seen
        if not more or not has_more:
            ended = " (the command has ended)" if self._ended else ""
            shown = "\n".join(line.rstrip() for line in self.screen())
            raise NotSeen(f"{what} was not seen{ended}; the screen is:\n{shown}")

    def _show(self, chunk: Chunk) -> None:
        self._shown = chunk.end
        text = self._pending + self._decoder.decode(chunk.data)
        # A sequence that is cut in two waits for its other half.
        escape = text.rfind("\x1b", max(0, len(text) - 32))
        whole = escape < 0 or re.match("\x1b(\\[[0-?]*[ -/]*[@-~]|[^\\[P_^X\\]])", text[escape:])
        cut = len(text) if whole else escape
        self._pending = text[cut:]
        self._stream.feed(_UNKNOWN_TO_PYTE.sub("", text[:cut]))
