"""What waits for rows where nobody else's process can make any: a call wakes it."""

from __future__ import annotations

from threading import Event


class LocalChanges:
    """`Changes` that only a call of `wake` ends a wait of. ``is_behind``: the first wait ends at once."""

    def __init__(self, is_behind: bool = False) -> None:
        self._woken = Event()
        if is_behind:
            self._woken.set()

    def wait(self, seconds: float) -> None:
        self._woken.wait(seconds)
        self._woken.clear()

    def wake(self) -> None:
        self._woken.set()

    def close(self) -> None:
        self._woken.set()
