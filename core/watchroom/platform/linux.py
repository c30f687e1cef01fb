"""Linux: calls beyond POSIX. If the kernel, file system or container refuses a call, POSIX is used."""

from __future__ import annotations

import errno
import fcntl
import os
import select
import signal
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from threading import Lock
from typing import Final

from watchroom.platform.posix import (
    FileWatch,
    Platform,
    ProcessInfo,
    ProcessScope,
    TreeWatch,
    process_exists,
)

_RENAME_EXCHANGE: Final = 2
_FICLONE: Final = 0x40049409
"""The request of ioctl(2) that clones a file: ioctl_ficlone(2)."""
_Rename = Callable[[int, bytes, int, bytes, int], int]
_STATE, _PARENT, _GROUP, _SESSION, _FLAGS, _STARTED = 0, 1, 2, 3, 6, 19
"""Fields of /proc/PID/stat, counted from the field after the program's name."""
_ENDING: Final = 0x4
"""PF_EXITING, a flag of a process."""
_GONE: Final = (FileNotFoundError, ProcessLookupError)
"""The errors of /proc/PID if there is no such process. Any other error says nothing about the process."""
_HIDDEN: Final = (*_GONE, PermissionError)
"""The errors of /proc/PID if there is no such process, or if it is hidden from this user."""


class LinuxPlatform(Platform):
    """POSIX with renameat2(2), leases, inotify(7), pidfd_open(2) and /proc."""

    def exchange(self, source_fd: int, source: str, target_fd: int, target: str) -> bool:
        rename = self._rename
        if rename is None:
            return False
        return rename(source_fd, os.fsencode(source), target_fd, os.fsencode(target), _RENAME_EXCHANGE) == 0

    @cached_property
    def _rename(self) -> _Rename | None:
        """Return renameat2(2), None if the C library lacks it."""
        # The module loads slowly, and readers do not need it.
        import ctypes

        function: _Rename | None = getattr(ctypes.CDLL(None), "renameat2", None)
        if function is not None:
            kinds = ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint
            function.argtypes = kinds  # type: ignore[attr-defined]
        return function

    def take_write_lease(self, file: int) -> bool:
        try:
            fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        except OSError:
            return False
        return True

    def clone_file(self, source: int, target: int) -> bool:
        try:
            fcntl.ioctl(target, _FICLONE, source)
        except OSError:
            return False
        return True

    def lock_holder(self, file: int) -> str:
        # /proc/locks lists all locks by inode: proc_locks(5).
        inode = str(os.fstat(file).st_ino)
        try:
            with open("/proc/locks", encoding="ascii") as locks:
                held = [line.split() for line in locks]
            for fields in held:
                if fields[1] == "FLOCK" and fields[5].rpartition(":")[2] == inode:
                    with open(f"/proc/{fields[4]}/comm", encoding="utf-8", errors="replace") as name:
                        return f"{name.read().strip()} ({fields[4]})"
        except OSError:
            # There is no /proc, or the holder has ended.
            return "-"
        return "-"

    def _read_boot_id(self) -> str:
        try:
            with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
                return file.read().strip()
        except (FileNotFoundError, PermissionError):
            return super()._read_boot_id()
        except OSError:
            return ""

    def watch_file(self, path: str) -> FileWatch:
        try:
            return _KernelWatch(path)
        except OSError:
            # The kernel limits watches per user (often to 128), and sandboxes have none.
            return super().watch_file(path)

    def watch_tree(
        self,
        folders: Sequence[str],
        files: Sequence[str] = (),
        *,
        left_out: Callable[[Sequence[str]], Collection[str]] = lambda paths: (),
    ) -> TreeWatch:
        # The module loads slowly, and readers do not need it.
        from watchroom.platform.tree_watch import InotifyTree

        return InotifyTree(folders, files, left_out)

    def parent(self, pid: int) -> int:
        fields = _stat_fields(pid) if pid > 0 else []
        return int(fields[_PARENT]) if fields else 0

    def _read_start(self, pid: int, seconds: float) -> float:
        fields = _stat_fields(pid)
        if not fields and process_exists(pid):
            # /proc is not mounted, or hides the processes of other users (hidepid).
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), f"/proc/{pid}")
        return _start_of(fields) if fields else 0.0

    def send_signal(self, pid: int, started: float, number: signal.Signals) -> bool:
        with _opened_process(pid) as process:
            # The descriptor still refers to the same process if the kernel reuses its id.
            if process is None:
                return super().send_signal(pid, started, number)
            if not self._is_confirmed(pid, started):
                return False
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(process, number)
            return True

    def wait_ended(self, pid: int, started: float, seconds: float) -> bool:
        with _opened_process(pid) as process:
            if process is None:
                return super().wait_ended(pid, started, seconds)
            if self.is_running(pid, started):
                waiting = select.poll()
                waiting.register(process, select.POLLIN)
                waiting.poll(max(0.0, seconds) * 1000)
            return not self.is_running(pid, started)

    def processes(self) -> Iterator[ProcessInfo]:
        for name in os.listdir("/proc"):
            found = self.process(int(name)) if name.isdecimal() else None
            if found is not None:
                yield found

    def process(self, pid: int) -> ProcessInfo | None:
        # The process can end during the read.
        with suppress(*_HIDDEN):
            fields = _stat_fields(pid)
            with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="surrogateescape") as file:
                arguments = tuple(file.read().split("\0"))
            if fields:
                parent, group, session = (int(fields[at]) for at in (_PARENT, _GROUP, _SESSION))
                owner = os.stat(f"/proc/{pid}").st_uid
                started, folder = _start_of(fields), _folder_of(str(pid))
                return ProcessInfo(pid, parent, arguments, folder, group, session, started, owner)
        return None

    def children(self, pid: int) -> list[int]:
        found: list[int] = []
        # The process or one of its threads can end during the read.
        with suppress(OSError):
            for thread in os.listdir(f"/proc/{pid}/task"):
                with suppress(OSError), open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as file:
                    found += map(int, file.read().split())
        return found

    def process_scope(self, pid: int) -> ProcessScope:
        namespace = control_group = ""
        with suppress(OSError):
            # This needs no descriptor, so it also succeeds if this process has too many open files.
            namespace = os.readlink(f"/proc/{pid}/ns/pid")
        with suppress(OSError), open(f"/proc/{pid}/cgroup", encoding="utf-8", errors="replace") as file:
            control_group = file.read()
        return ProcessScope(namespace, control_group)

    def environment(self, pid: int) -> dict[str, str] | None:
        try:
            with open(f"/proc/{pid}/environ", encoding="utf-8", errors="surrogateescape") as file:
                pairs = (each.partition("=") for each in file.read().split("\0") if each)
                return {name: value for name, _, value in pairs}
        except OSError:
            return None

    def memory_of(self, pid: int) -> int:
        try:
            with open(f"/proc/{pid}/statm", encoding="ascii") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except OSError:
            return 0

    def process_clock(self) -> float:
        # `process_start` counts clock ticks since the machine started.
        return time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK")


def _stat_fields(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat after the name, empty if there is no such process. Raise
    OSError."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            # The program's name can contain spaces and brackets.
            return file.read().rpartition(")")[2].split()
    except _GONE:
        return []


def _start_of(fields: Sequence[str]) -> float:
    """Return the start time of a process, 0 if it has ended or is ending.

    An ending process no longer runs its own code, but its state does not show this yet. Its files are already
    closed, which other processes notice.
    """
    is_ending = int(fields[_FLAGS]) & _ENDING
    return 0.0 if is_ending or fields[_STATE] in "ZX" else float(fields[_STARTED])


def _folder_of(name: str) -> str:
    try:
        return os.readlink(f"/proc/{name}/cwd")
    except OSError:
        return ""


@contextmanager
def _opened_process(pid: int) -> Iterator[int | None]:
    """Yield a descriptor of the process ``pid``. None if there is no such process, or no pidfd_open(2)."""
    try:
        process = os.pidfd_open(pid)
    except OSError:
        yield None
        return
    try:
        yield process
    finally:
        os.close(process)


class _KernelWatch:
    """Waits in the kernel for inotify's descriptor and for a pipe."""

    polls = False

    def __init__(self, path: str) -> None:
        from inotify_simple import INotify, flags

        self._inotify = INotify(nonblocking=True)
        try:
            self._inotify.add_watch(path, flags.MODIFY)
            self._reading, self._writing = os.pipe()
        except BaseException:
            self._inotify.close()
            raise
        self._lock = Lock()
        self._waiting = Lock()
        self._is_open = True
        os.set_blocking(self._reading, False)
        os.set_blocking(self._writing, False)
        self._poll = select.poll()
        for fd in (self._inotify.fileno(), self._reading):
            self._poll.register(fd, select.POLLIN)

    def wait(self, seconds: float) -> None:
        with self._waiting:
            if self._is_open:
                for fd, _ in self._poll.poll(seconds * 1000):
                    os.read(fd, 1 << 16)

    def wake(self) -> None:
        with self._lock:
            if self._is_open:
                self._interrupt()

    def _interrupt(self) -> None:
        # A full pipe wakes the waiting thread anyway.
        with suppress(BlockingIOError):
            os.write(self._writing, b"!")

    def close(self) -> None:
        with self._lock:
            if not self._is_open:
                return
            self._is_open = False
            self._interrupt()
        with self._waiting:
            self._inotify.close()
            os.close(self._reading)
            os.close(self._writing)
