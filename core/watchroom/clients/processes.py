"""The process of a client: whether it is still there, and signals to it and to no other.

A number is given to another process later; with the time at which it began it names one alone.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from typing import Final, NamedTuple

_PS_SECONDS: Final = 5.0
_APART: Final = 0.05
"""Seconds between two looks, where the system tells nobody that a process has ended."""
_STATE, _STARTED = 0, 19
"""Where ``stat`` says the state and the beginning, after the program's name."""


class ClientProcess(NamedTuple):
    """The process ``pid`` that ``started`` then: as `process_start` says it."""

    pid: int
    started: float

    @property
    def is_alive(self) -> bool:
        """Whether it is still there, and not merely waits to be collected."""
        return self.started > 0 and process_start(self.pid) == self.started

    def send_signal(self, number: signal.Signals) -> bool:
        """Send it the signal ``number``. Returns whether it was there to get it. Raises PermissionError."""
        handle = _open(self.pid)
        try:
            if not self.is_alive:
                return False
            with suppress(ProcessLookupError):
                if handle is not None and hasattr(signal, "pidfd_send_signal"):
                    signal.pidfd_send_signal(handle, number)
                else:
                    os.kill(self.pid, number)
                return True
            return False
        finally:
            if handle is not None:
                os.close(handle)

    def wait_gone(self, seconds: float) -> bool:
        """Wait for at most ``seconds`` until it is gone. Returns whether it is."""
        handle = _open(self.pid)
        try:
            if handle is not None and self.is_alive:
                waiting = select.poll()
                waiting.register(handle, select.POLLIN)
                waiting.poll(max(0.0, seconds) * 1000)
                return not self.is_alive
        finally:
            if handle is not None:
                os.close(handle)
        until = time.monotonic() + seconds
        while self.is_alive and time.monotonic() < until:
            time.sleep(_APART)
        return not self.is_alive


def process_start(pid: int) -> float:
    """When the process ``pid`` began: a number of seconds by a clock of the system's, to be compared with
    other results alone; 0 where there is no such process."""
    if pid <= 0:
        return 0.0
    return _start_from_kernel(pid) if sys.platform.startswith("linux") else _start_from_ps(pid)


def parent_process() -> ClientProcess:
    """The process that started this one."""
    pid = os.getppid()
    return ClientProcess(pid, process_start(pid))


def _start_from_kernel(pid: int) -> float:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            # A program's name may have blanks and brackets.
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return 0.0 if fields[_STATE] in "ZX" else float(fields[_STARTED])


def _start_from_ps(pid: int) -> float:
    command = ("ps", "-o", "stat=,lstart=", "-p", str(pid))
    try:
        said = subprocess.run(
            command, capture_output=True, text=True, timeout=_PS_SECONDS, check=True, env={"LC_ALL": "C"}
        ).stdout
        state, _, began = said.strip().partition(" ")
        return 0.0 if state.startswith("Z") else time.mktime(time.strptime(began.strip()))
    except (OSError, subprocess.SubprocessError, ValueError):
        return 0.0


def _open(pid: int) -> int | None:
    """A handle on the process, None where the system has none."""
    if not hasattr(os, "pidfd_open"):
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None
