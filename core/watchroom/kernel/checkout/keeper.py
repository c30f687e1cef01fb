"""Decides which process of this machine keeps a workspace: watches its files, seals, indexes and so on.

The resident service keeps the workspaces in use. If no service is running, every process that has the
workspace open does this work. In addition, each job has its own lock, so that two processes never do the same
job.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from threading import Lock
from typing import Final, ParamSpec, TypeVar

from watchroom.errors import WorkspaceLocked
from watchroom.platform import Platform
from watchroom.platform.process_lock import ProcessLock

P = ParamSpec("P")
T = TypeVar("T")

_NAME: Final = "keeper.lock"
_CLAIM_SECONDS: Final = 1.0
"""Maximum seconds to wait for the lock while another process checks it."""


class Keeper:
    """The claim to keep the workspace whose control folder is ``control``. Usable from any thread."""

    def __init__(self, control: str, platform: Platform) -> None:
        self._path = os.path.join(control, _NAME)
        self._platform = platform
        self._guard = Lock()
        self._lock: ProcessLock | None = None
        self._is_held = False
        self._is_closed = False

    def claim(self) -> bool:
        """Keep the workspace until `close`. Return False if another process keeps it. Raise
        `LocksUnsupported`, OSError."""
        with self._guard:
            if not self._is_held and not self._is_closed:
                lock = self._lock = self._lock or ProcessLock(self._path, self._platform)
                try:
                    lock.acquire(_CLAIM_SECONDS)
                except WorkspaceLocked:
                    return False
                self._is_held = True
            return self._is_held

    def is_elsewhere(self) -> bool:
        """Return whether another process keeps the workspace. Raise `LocksUnsupported`, OSError."""
        with self._guard:
            if self._is_held or self._is_closed or not os.path.exists(self._path):
                return False
            lock = self._lock = self._lock or ProcessLock(self._path, self._platform)
            if not lock.try_acquire():
                return True
            lock.release()
            return False

    def unless_elsewhere(self, work: Callable[P, T]) -> Callable[P, T | None]:
        """Return a function that calls ``work`` unless another process keeps the workspace."""

        def run(*args: P.args, **kwargs: P.kwargs) -> T | None:
            return None if self.is_elsewhere() else work(*args, **kwargs)

        return run

    def close(self) -> None:
        """Release the claim. May be called again."""
        with self._guard:
            self._is_closed = True
            lock, self._lock = self._lock, None
            if lock is not None:
                lock.close()
