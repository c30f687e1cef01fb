"""POSIX only: used on macOS and the BSDs, and as a fallback on Linux."""

from __future__ import annotations

import errno
import os
import signal
import time
from calendar import timegm
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from threading import Event, Lock
from typing import Final, NamedTuple, Protocol

with suppress(ImportError):
    # `check_platform` imports this module. It refuses a system without this import.
    import fcntl

_PS_SECONDS: Final = 5.0
"""Timeout of ps(1) in seconds."""
_SIGNAL_PS_SECONDS: Final = 30.0
"""Timeout of ps(1) before a signal, in seconds. A signal must not reach another process with the same id."""
_MAX_PID: Final = (1 << 31) - 1
_POLL_SECONDS: Final = 0.01
"""Seconds between two reads of a watched file."""
_ENDED_SECONDS: Final = 0.05
"""Seconds between two checks whether a process has ended."""
_MAX_WATCHED: Final = 200
"""Maximum bytes of a watched file that are compared."""


class ProcessInfo(NamedTuple):
    """A process.

    - ``pid``, ``parent``: process ids.
    - ``arguments``: its command line.
    - ``folder``: its working directory, empty if unknown.
    - ``group``, ``session``: ids, 0 if unknown.
    - ``started``: the result of `Platform.process_start`, 0 if unknown or if the process is a zombie.
    - ``owner``: its user id, -1 if unknown.
    """

    pid: int
    parent: int
    arguments: tuple[str, ...]
    folder: str
    group: int = 0
    session: int = 0
    started: float = 0.0
    owner: int = -1


class ProcessScope(NamedTuple):
    """The process namespace and the control group of a process, each empty if unknown."""

    namespace: str = ""
    control_group: str = ""


class FileWatch(Protocol):
    """Waits until any process writes to one file."""

    @property
    def polls(self) -> bool:
        """Whether writes are noticed some milliseconds late."""
        ...

    def wait(self, seconds: float) -> None:
        """Wait for a write, a call of `wake`, or until ``seconds`` have passed."""
        ...

    def wake(self) -> None:
        """End the current wait, or the next one. Can be called from any thread."""
        ...

    def close(self) -> None:
        """End the current wait and close all descriptors. Can be called again."""
        ...


class TreeChanges(NamedTuple):
    """The result of `TreeWatch.take`.

    - ``paths``: absolute paths of the files and folders that changed. Some may not have changed.
    - ``is_complete``: False if any other path may also have changed.
    """

    paths: set[str]
    is_complete: bool = True


class TreeWatch(Protocol):
    """Waits for changes of files and folders, by any process. Can be used from any thread.

    A change is anything except a read: a name that appears or disappears, a write, new permissions.
    """

    def wait(self, seconds: float) -> None:
        """Wait at most ``seconds`` for a change, a call of `wake` or of `close`, without using the processor.

        Raise OSError if a new folder cannot be watched. After that, no changes are reported.
        """
        ...

    def take(self) -> TreeChanges:
        """Return the changes that were read since the last call: those that ended a `wait`, or that `barrier`
        waited for. Each change is returned to one caller.

        They are incomplete if the kernel's queue of events overflowed, or if a watched folder was removed or
        replaced.
        """
        ...

    def barrier(self, folder: str, seconds: float) -> bool:
        """Wait until every earlier change has been read: a call of `take` has returned it, or the next call
        will.

        For this, a file is created in ``folder`` and removed. ``folder`` must be a watched folder, or the
        folder of a watched file. The file is never reported.

        Return False if this is not certain: after ``seconds``, after an overflow of the kernel's queue, if
        ``folder`` is not watched, or if it is not writable.
        """
        ...

    def wake(self) -> None:
        """End the current wait, or the next one."""
        ...

    def close(self) -> None:
        """End all waits and close all descriptors. Can be called again."""
        ...


class Platform:
    """The operations that differ between operating systems: here POSIX with flock(2) and ps(1).

    Operations that POSIX guarantees everywhere (folders opened by descriptor, O_NOFOLLOW, rename) are not
    included. Methods can be called from any thread. ``file`` and ``*_fd`` are open descriptors.
    """

    _boot_id = ""

    def exchange(self, source_fd: int, source: str, target_fd: int, target: str) -> bool:
        """Exchange two files atomically: ``source`` in the folder ``source_fd`` and ``target`` in
        ``target_fd``.

        Return False, and change nothing, if the system cannot do this or if either file is missing.
        """
        return False

    def take_write_lease(self, file: int) -> bool:
        """Delay other processes that open ``file`` until it is closed.

        Return False if the system has no leases or if ``file`` is open elsewhere.
        """
        return False

    def clone_file(self, source: int, target: int) -> bool:
        """Give the empty file ``target`` the content of ``source``, which both share until one is changed.

        Return False, and change nothing, if the file system cannot do this.
        """
        return False

    def folds_case(self, folder_fd: int, name: str) -> bool:
        """Return whether the file ``name`` in the folder ``folder_fd`` is also found in upper case. Raise
        OSError."""
        try:
            os.stat(name.upper(), dir_fd=folder_fd, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return name != name.upper()

    def try_lock(self, file: int) -> bool:
        """Lock ``file`` unless another opening of it has the lock. Return whether it was locked.

        The kernel releases the lock when the last descriptor of this opening is closed. Raise OSError if
        the file system has no locks.
        """
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def lock(self, file: int) -> None:
        """Lock ``file`` as `try_lock` does, without a timeout. Linux serves waiting processes in order.
        Raise OSError."""
        fcntl.flock(file, fcntl.LOCK_EX)

    def lock_shared(self, file: int) -> None:
        """Take a shared lock of ``file``, which excludes exclusive locks. No timeout. Raise OSError."""
        fcntl.flock(file, fcntl.LOCK_SH)

    def unlock(self, file: int) -> None:
        """Release the lock of ``file``. Raise OSError."""
        fcntl.flock(file, fcntl.LOCK_UN)

    def lock_holder(self, file: int) -> str:
        """Return the name and id of the process that holds the lock of ``file``, ``-`` if unknown."""
        return "-"

    def boot_id(self) -> str:
        """Return an id that changes when the machine restarts, empty if unknown."""
        self._boot_id = self._boot_id or self._read_boot_id()
        return self._boot_id

    def _read_boot_id(self) -> str:
        # Process 1 starts with the machine.
        began = self.process_start(1)
        return f"{began:.0f}" if began else ""

    def has_restarted(self, boot: str) -> bool:
        """Return whether it is certain that the machine has restarted since `boot_id` was ``boot``."""
        return boot != "" and self.boot_id() not in ("", boot)

    def watch_file(self, path: str) -> FileWatch:
        """Watch the existing file at ``path`` for writes. Raise OSError."""
        return _PolledWatch(path)

    def watch_tree(
        self,
        folders: Sequence[str],
        files: Sequence[str] = (),
        *,
        left_out: Callable[[Sequence[str]], Collection[str]] = lambda paths: (),
    ) -> TreeWatch | None:
        """Watch folders with everything in them, and single files. Return None if the system cannot.

        - ``folders``: absolute paths. A missing folder is watched once it exists. Symbolic links are not
          followed. Folders that cannot be read are left out.
        - ``files``: absolute paths. A write is reported when the file is closed.
        - ``left_out``: takes the subfolders found in a folder, and returns those that are not to be watched,
          together with their contents.

        Raise OSError if the system has no watches left.
        """
        return None

    def process_start(self, pid: int) -> float:
        """Return the start time of the process ``pid``, 0 if unknown, if there is no such process, or if it
        is a zombie.

        The unit and the zero of this clock depend on the system. Compare the result only with other results.
        """
        return self.find_start(pid) or 0.0

    def find_start(self, pid: int, *, seconds: float = _PS_SECONDS) -> float | None:
        """Return the start time of the process ``pid``, 0 if it is certain that there is no such process or
        that it is a zombie, None if the system does not answer.

        ``seconds``: timeout, default 5.
        """
        if not 0 < pid <= _MAX_PID or not process_exists(pid):
            return 0.0
        try:
            return self._read_start(pid, seconds)
        except OSError:
            return None

    def _read_start(self, pid: int, seconds: float) -> float:
        """Return the start time of the process ``pid``, 0 if there is none. Raise OSError."""
        shown = _run_ps("-o", "stat=,lstart=", "-p", str(pid), seconds=seconds).strip()
        state, _, began = shown.partition(" ")
        if not shown or state.startswith("Z"):
            return 0.0
        try:
            return float(timegm(time.strptime(began.strip())))
        except ValueError as error:
            raise OSError(errno.EPROTO, shown) from error

    def is_running(self, pid: int, started: float) -> bool:
        """Return False if it is certain that the process ``pid`` with the start time ``started`` has ended,
        or if ``started`` is 0.

        A system under load may not answer. Then the process counts as running.
        """
        return started > 0 and self.find_start(pid) in (started, None)

    def send_signal(self, pid: int, started: float, number: signal.Signals) -> bool:
        """Send the signal ``number`` to the process ``pid`` if its start time is still ``started``.

        Return whether it was sent. Raise PermissionError.
        """
        if not self._is_confirmed(pid, started):
            return False
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return False
        return True

    def _is_confirmed(self, pid: int, started: float) -> bool:
        return started > 0 and self.find_start(pid, seconds=_SIGNAL_PS_SECONDS) == started

    def wait_ended(self, pid: int, started: float, seconds: float) -> bool:
        """Wait until the process ``pid`` with the start time ``started`` has ended, at most ``seconds``.

        Return whether it has ended.
        """
        until = time.monotonic() + seconds
        while self.is_running(pid, started) and time.monotonic() < until:
            time.sleep(_ENDED_SECONDS)
        return not self.is_running(pid, started)

    def processes(self) -> Iterator[ProcessInfo]:
        """Yield all processes visible to this process. Raise OSError if the system does not list them."""
        for line in _run_ps("-axww", "-o", "pid=,ppid=,command=").splitlines():
            pid, parent, *arguments = line.split()
            yield ProcessInfo(int(pid), int(parent), tuple(arguments), "")

    def process(self, pid: int) -> ProcessInfo | None:
        """Return the process ``pid``, None if it does not exist or is not visible. Raise OSError if the
        system does not answer."""
        return next((each for each in self.processes() if each.pid == pid), None)

    def parent(self, pid: int) -> int:
        """Return the id of the parent of the process ``pid``, 0 if it has none or does not exist. Raise
        OSError if the system does not answer."""
        known = self.process(pid)
        return known.parent if known is not None else 0

    def children(self, pid: int) -> list[int]:
        """Return the ids of the children of the process ``pid``, none if unknown."""
        return []

    def process_scope(self, pid: int) -> ProcessScope:
        """Return the namespace and the control group of the process ``pid``, if known."""
        return ProcessScope()

    def environment(self, pid: int) -> dict[str, str] | None:
        """Return the environment with which the process ``pid`` started, None if it cannot be read."""
        return None

    def memory_of(self, pid: int) -> int:
        """Return the bytes of memory that the process ``pid`` uses (resident set), 0 if unknown."""
        return 0

    def process_clock(self) -> float:
        """Return the current time by the clock of `process_start`, 0 if unknown."""
        return 0.0


def process_exists(pid: int) -> bool:
    """Return whether there is a process ``pid``. A zombie counts."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        # It belongs to another user.
        pass
    return True


def _run_ps(*arguments: str, seconds: float = _PS_SECONDS) -> str:
    """Return the output of ps(1) with times in UTC, empty if it finds no process. Raise OSError if it fails
    or exceeds ``seconds``."""
    # The module loads slowly, and is rarely needed.
    from watchroom.platform.child_process import run_child

    done = run_child(("ps", *arguments), timeout=seconds, environment={"LC_ALL": "C", "TZ": "UTC0"})
    # If there is no such process, the status is 1, and nothing is printed.
    if done.status and (done.status != 1 or done.errors):
        raise OSError(errno.EIO, done.last_error or f"ps: {done.status}")
    return done.output.decode(errors="surrogateescape")


class _PolledWatch:
    """Reads the start of the file periodically. Each write must change it.

    macOS reports a write to a file only when the file is closed, and a journal stays open.
    """

    polls = True

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._lock = Lock()
        self._is_open = True
        self._woken = Event()
        self._seen = self._read()

    def _read(self) -> bytes:
        with self._lock:
            return os.pread(self._file, _MAX_WATCHED, 0) if self._is_open else b""

    def wait(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while not self._woken.is_set() and self._read() == self._seen:
            remaining = until - time.monotonic()
            if remaining <= 0:
                break
            self._woken.wait(min(_POLL_SECONDS, remaining))
        self._woken.clear()
        self._seen = self._read()

    def wake(self) -> None:
        self._woken.set()

    def close(self) -> None:
        with self._lock:
            if self._is_open:
                self._is_open = False
                os.close(self._file)
        self._woken.set()
