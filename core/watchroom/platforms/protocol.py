"""What is asked of an operating system, where systems answer differently.

What POSIX promises alike everywhere (folders opened by descriptor, O_NOFOLLOW, rename) is not here.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import NamedTuple, Protocol


class ProcessInfo(NamedTuple):
    """A process: its number and its parent's, its arguments, and its working directory, empty if that is not
    known. ``group`` and ``session`` are numbers, 0 if they are not known; ``started`` is as `process_start`
    says it, 0 for a process that only waits to be collected or if it is not known. ``owner`` is the number of
    its user, -1 if that is not known."""

    pid: int
    parent: int
    arguments: tuple[str, ...]
    folder: str
    group: int = 0
    session: int = 0
    started: float = 0.0
    owner: int = -1


class ProcessScope(NamedTuple):
    """Where a process runs: its namespace of processes and its control group, empty if they are not known."""

    namespace: str = ""
    control_group: str = ""


class FileWatch(Protocol):
    """Waits for writes to one file, by any process."""

    @property
    def polls(self) -> bool:
        """Whether writes are noticed only some milliseconds later."""
        ...

    def wait(self, seconds: float) -> None:
        """Return at a write, at a call of `wake`, and at the latest after ``seconds``."""
        ...

    def wake(self) -> None:
        """End a wait, or the next one. From any thread."""
        ...

    def close(self) -> None:
        """End a wait, and let go of everything. May be called again."""
        ...


class Platform(Protocol):
    """An operating system. May be used from any thread; ``file`` and ``*_fd`` are open descriptors."""

    def exchange(self, source_fd: int, source: str, target_fd: int, target: str) -> bool:
        """Have ``source``, in the folder ``source_fd``, and ``target``, in the folder ``target_fd``, trade
        places atomically. Returns whether they did: not where the system cannot, or either is missing."""
        ...

    def take_write_lease(self, file: int) -> bool:
        """Hold off whoever opens ``file`` until it is closed. Returns whether the system does, and nobody
        else has it open."""
        ...

    def folds_case(self, folder_fd: int, name: str) -> bool:
        """Whether ``name``, a file in the folder ``folder_fd``, is there in upper case, too. Raises
        OSError."""
        ...

    def try_lock(self, file: int) -> bool:
        """Lock ``file`` against all other openings of it, if nobody has; whether that was done. The lock goes
        with the last descriptor of this opening. Raises OSError where there are no such locks."""
        ...

    def lock(self, file: int) -> None:
        """`try_lock` that waits for as long as it takes, in turn where the system says so. Raises OSError."""
        ...

    def lock_shared(self, file: int) -> None:
        """Lock ``file`` for all who do so, against `try_lock` and `lock`; waits as `lock` does. Raises
        OSError."""
        ...

    def unlock(self, file: int) -> None:
        """Let go of the lock on ``file``. Raises OSError."""
        ...

    def lock_holder(self, file: int) -> str:
        """Which process has the lock on ``file``: its name and number, ``-`` where that cannot be told."""
        ...

    def boot_id(self) -> str:
        """What tells one run of this machine from the next; empty where the system does not say."""
        ...

    def watch_file(self, path: str) -> FileWatch:
        """What wakes at writes to the file at ``path``, which is there. Raises OSError."""
        ...

    def process_start(self, pid: int) -> float:
        """When the process ``pid`` began: a number of seconds by a clock of the system's, to be compared with
        other results alone; 0 where there is no such process, or it only waits to be collected."""
        ...

    def send_signal(self, pid: int, started: float, number: signal.Signals) -> bool:
        """Send ``number`` to the process ``pid`` that ``started`` then, as `process_start` says it. Returns
        whether it was there. Raises PermissionError."""
        ...

    def wait_ended(self, pid: int, started: float, seconds: float) -> bool:
        """Wait for at most ``seconds`` until the process ``pid`` that ``started`` then has ended; whether it
        has."""
        ...

    def processes(self) -> Iterator[ProcessInfo]:
        """All processes that this one may see; none where the system does not list them."""
        ...

    def children(self, pid: int) -> list[int]:
        """Return the numbers of the children of the process ``pid``; none if the system does not say."""
        ...

    def process_scope(self, pid: int) -> ProcessScope:
        """Return where the process ``pid`` runs, as far as the system says."""
        ...

    def environment(self, pid: int) -> dict[str, str] | None:
        """Return the environment with which the process ``pid`` began, None if it cannot be read."""
        ...

    def process_clock(self) -> float:
        """Return the time by the clock of `process_start`; 0 if it is not known."""
        ...
