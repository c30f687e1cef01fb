"""POSIX, without what one system alone has: what macOS and the BSDs are given."""

from __future__ import annotations

import fcntl
import os
import signal
import time
from calendar import timegm
from collections.abc import Iterator
from functools import cached_property
from threading import Event, Lock
from typing import Final

from watchroom.platforms.protocol import FileWatch, ProcessInfo, ProcessScope

_PS_SECONDS: Final = 5.0
_POLL_SECONDS: Final = 0.01
_LOOK_SECONDS: Final = 0.05
"""Between two looks whether a process has ended."""
_MOST_WATCHED: Final = 200
"""Bytes of a watched file that are looked at."""


class PosixPlatform:
    """`Platform` by what POSIX promises, with flock(2) and ps(1)."""

    def exchange(self, source_fd: int, source: str, target_fd: int, target: str) -> bool:
        return False

    def take_write_lease(self, file: int) -> bool:
        return False

    def folds_case(self, folder_fd: int, name: str) -> bool:
        try:
            os.stat(name.upper(), dir_fd=folder_fd, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return name != name.upper()

    def try_lock(self, file: int) -> bool:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def lock(self, file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_EX)

    def lock_shared(self, file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_SH)

    def unlock(self, file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_UN)

    def lock_holder(self, file: int) -> str:
        return "-"

    def boot_id(self) -> str:
        return self._boot_id

    @cached_property
    def _boot_id(self) -> str:
        # The first process of all begins with the machine.
        began = self.process_start(1)
        return f"{began:.0f}" if began else ""

    def watch_file(self, path: str) -> FileWatch:
        return _PolledWatch(path)

    def process_start(self, pid: int) -> float:
        if pid <= 0:
            return 0.0
        state, _, began = _run_ps("-o", "stat=,lstart=", "-p", str(pid)).strip().partition(" ")
        try:
            return 0.0 if state.startswith("Z") else float(timegm(time.strptime(began.strip())))
        except ValueError:
            return 0.0

    def send_signal(self, pid: int, started: float, number: signal.Signals) -> bool:
        if not self._is_running(pid, started):
            return False
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return False
        return True

    def wait_ended(self, pid: int, started: float, seconds: float) -> bool:
        until = time.monotonic() + seconds
        while self._is_running(pid, started) and time.monotonic() < until:
            time.sleep(_LOOK_SECONDS)
        return not self._is_running(pid, started)

    def _is_running(self, pid: int, started: float) -> bool:
        return started > 0 and self.process_start(pid) == started

    def processes(self) -> Iterator[ProcessInfo]:
        for line in _run_ps("-axww", "-o", "pid=,ppid=,command=").splitlines():
            pid, parent, *arguments = line.split()
            yield ProcessInfo(int(pid), int(parent), tuple(arguments), "")

    def children(self, pid: int) -> list[int]:
        return []

    def process_scope(self, pid: int) -> ProcessScope:
        return ProcessScope()

    def environment(self, pid: int) -> dict[str, str] | None:
        return None

    def process_clock(self) -> float:
        return 0.0


def _run_ps(*arguments: str) -> str:
    """What ps(1) prints, with times in UTC whatever the zone of this process is; empty where it fails."""
    # Slow to load, and seldom needed.
    import subprocess

    try:
        return subprocess.run(
            ("ps", *arguments),
            capture_output=True,
            text=True,
            errors="surrogateescape",
            timeout=_PS_SECONDS,
            check=True,
            env={"LC_ALL": "C", "TZ": "UTC0"},
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return ""


class _PolledWatch:
    """Looks at the first bytes of a file now and then: each write to it has to change them.

    macOS tells of a write to a file only once that is closed, which those of a journal are not.
    """

    polls = True

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._turn = Lock()
        self._is_open = True
        self._woken = Event()
        self._seen = self._look()

    def _look(self) -> bytes:
        with self._turn:
            return os.pread(self._file, _MOST_WATCHED, 0) if self._is_open else b""

    def wait(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while not self._woken.is_set() and self._look() == self._seen:
            remaining = until - time.monotonic()
            if remaining <= 0:
                break
            self._woken.wait(min(_POLL_SECONDS, remaining))
        self._woken.clear()
        self._seen = self._look()

    def wake(self) -> None:
        self._woken.set()

    def close(self) -> None:
        with self._turn:
            if self._is_open:
                self._is_open = False
                os.close(self._file)
        self._woken.set()
