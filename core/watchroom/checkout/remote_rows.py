"""Lays out what other machines commit: a thread that follows a journal that they share."""

from __future__ import annotations

import logging
from threading import Event, Thread
from typing import Final

from watchroom.checkout.materializer import Materializer
from watchroom.errors import WatchroomError
from watchroom.journal import BACKSTOP_SECONDS, Changes, Journal

_RETRY_SECONDS: Final = 1.0
_log = logging.getLogger("watchroom")


class RemoteRows:
    """Keeps ``checkout`` up to the rows of ``journal``, whichever machine they come from."""

    def __init__(self, journal: Journal, checkout: Materializer) -> None:
        self._journal = journal
        self._checkout = checkout
        self._changes: Changes | None = None
        self._closing = Event()
        self._thread: Thread | None = None

    def start(self) -> None:
        """Follow from now on."""
        self._changes = self._journal.changes(0)
        self._thread = Thread(target=self._run, args=(self._changes,), name="watchroom-remote", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End, and wait until the thread has."""
        self._closing.set()
        if self._changes is not None and self._thread is not None:
            self._changes.wake()
            self._thread.join()
            self._changes.close()

    def _run(self, changes: Changes) -> None:
        while not self._closing.is_set():
            changes.wait(BACKSTOP_SECONDS)
            if self._closing.is_set():
                return
            try:
                self._checkout.catch_up()
            except Exception as error:  # noqa: BLE001  # the cursor has not moved: the next attempt goes on
                reason = error.message() if isinstance(error, WatchroomError) else repr(error)
                _log.warning("files are not written: %s", reason)
                self._closing.wait(_RETRY_SECONDS)
