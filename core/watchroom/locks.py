"""A lock between processes, and what tells one run of the machine from the next, and one process.

With `watchroom.disk` this is the seam to the operating system: what is POSIX-only about locks is here.
"""

from __future__ import annotations

import os
import sys
from typing import Final

if sys.platform != "win32":
    import fcntl

_START_FIELD: Final = 19
"""Of ``/proc/PID/stat`` after the name: when the process started, in ticks since boot."""


def boot_id() -> str:
    """What tells one run of this machine from the next; empty where the system does not say."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def incarnation(process: int) -> str:
    """The process with this number, told by its start from those that had the number before.

    In a container each first process has the same number.
    """
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            started = file.read().rpartition(b")")[2].split()[_START_FIELD].decode()
    except FileNotFoundError:
        # The process is gone, or this system keeps no such files: then its number is all we have.
        started = "0"
    return f"{process:x}.{started}"


def is_running(told: str) -> bool:
    """Whether the process that `incarnation` told apart is there."""
    number, _, started = told.partition(".")
    process = int(number, 16)
    if started != "0":
        return incarnation(process) == told
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def this_process() -> str:
    """What tells this process from all others, of this run of the machine or another."""
    return f"{boot_id()}/{incarnation(os.getpid())}"


def is_alive(process: str) -> bool:
    """Whether the process is there that `this_process` told apart."""
    boot, _, told = process.partition("/")
    return bool(told) and boot == boot_id() and is_running(told)


class ProcessLock:
    """Held by one process of a machine at a time, and let go by the kernel when its holder dies.

    The lock's file carries a short text that only the holder reads and writes. Not re-entrant, not for
    threads. Where there are no file locks (Windows) it always is free, and SQLite's own lock remains.
    """

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o666)

    def acquire(self) -> None:
        """Wait for the lock."""
        if sys.platform != "win32":
            fcntl.flock(self._fd, fcntl.LOCK_EX)

    def try_acquire(self) -> bool:
        """Take the lock if nobody has it; whether it was taken."""
        if sys.platform != "win32":
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
        return True

    def release(self) -> None:
        if sys.platform != "win32":
            fcntl.flock(self._fd, fcntl.LOCK_UN)

    def text(self) -> str:
        return _read_at_start(self._fd, 200).decode("ascii", "replace").partition("\n")[0].rstrip()

    def set_text(self, text: str) -> None:
        _write_at_start(self._fd, text.ljust(80).encode("ascii") + b"\n")

    def close(self) -> None:
        os.close(self._fd)


def _read_at_start(fd: int, count: int) -> bytes:
    if hasattr(os, "pread"):
        return os.pread(fd, count, 0)
    os.lseek(fd, 0, os.SEEK_SET)
    return os.read(fd, count)


def _write_at_start(fd: int, data: bytes) -> None:
    if hasattr(os, "pwrite"):
        os.pwrite(fd, data, 0)
    else:
        os.lseek(fd, 0, os.SEEK_SET)
        os.write(fd, data)
