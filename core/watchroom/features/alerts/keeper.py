"""Send the alerts of an open workspace, while this process is responsible for sending them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from threading import Event, Thread
from typing import Final

from watchroom.errors import DeliveryUnusable, JournalDenied
from watchroom.features.alerts.payloads import AlertWording
from watchroom.features.alerts.rules import AlertSettings
from watchroom.features.alerts.sender import AlertSender, open_sender
from watchroom.features.alerts.service import Alerts
from watchroom.features.links.rules import WebSettings
from watchroom.features.links.service import Links
from watchroom.features.overview.model import urgent_needs
from watchroom.features.overview.presence import PRESENCE_SECONDS, with_presences
from watchroom.features.overview.snapshots import open_fold
from watchroom.features.trees.place import display_name
from watchroom.kernel.journal import Changes, Journal

_CHUNK: Final = 2000
_RETRY_SECONDS: Final = 30.0
"""Seconds until the next attempt after an error."""
_log = logging.getLogger("watchroom")


class AlertKeeper:
    """Sends alerts on a thread while this process is responsible for sending them (`check`).

    - ``journal``, ``root``: the workspace's journal and folder.
    - ``alerts``: the messages that were sent.
    - ``links``: issues the links in messages.
    - ``settings``: returns the current settings.
    - ``is_elsewhere``: returns whether another process keeps the workspace. The other process then sends.
    - ``wording``: the words of the messages.
    - ``environ``: the environment that resolves variables in addresses.

    Nothing is sent if a variable is missing. The error is logged, and the next attempt follows a change of
    the settings.
    """

    def __init__(
        self,
        journal: Journal,
        root: str,
        alerts: Alerts,
        links: Links,
        settings: Callable[[], AlertSettings],
        is_elsewhere: Callable[[], bool],
        wording: AlertWording,
        environ: Mapping[str, str],
    ) -> None:
        self._journal = journal
        self._root = root
        self._alerts = alerts
        self._links = links
        self._settings = settings
        self._is_elsewhere = is_elsewhere
        self._wording = wording
        self._environ = environ
        self._run: _Run | None = None
        self._unusable: AlertSettings | None = None
        """The settings with which this process cannot send."""
        self._retry_at = 0.0

    def check(self) -> None:
        """Start or stop sending, according to the settings and the other processes. Call it every few
        seconds, from one thread at a time. Raise `JournalError`, OSError."""
        settings = self._settings()
        wanted = settings if settings.targets and not self._is_elsewhere() else None
        run = self._run
        if run is not None and run.is_alive():
            if (run.settings, run.web) != (wanted, self._links.settings):
                run.stop()
            return
        if run is not None:
            self._note_end(run)
            self._run = None
        if wanted in (None, self._unusable) or time.monotonic() < self._retry_at or self._alerts.is_claimed():
            return
        self._run = _Run(settings, self._links.settings, self._journal.changes(), self._send)
        self._run.start()

    def close(self) -> None:
        """Stop sending after the requests in progress. Call it after the last `check`."""
        if self._run is not None:
            self._run.stop()
            self._run.join()

    def _note_end(self, run: _Run) -> None:
        """Log the error that ended ``run``, and set the time of the next attempt."""
        error = run.error
        if isinstance(error, DeliveryUnusable | JournalDenied):
            self._unusable = run.settings
            _log.warning("no alert is sent: %s", error.message())
        elif error is not None:
            self._retry_at = time.monotonic() + _RETRY_SECONDS
            _log.warning("alerts ended: %s", error, exc_info=error)

    def _send(self, run: _Run) -> None:
        """Send alerts until ``run`` is stopped, unless another process sends them. Raise `WatchroomError`,
        OSError."""
        with self._alerts.claim() as is_claimed:
            if not is_claimed:
                return
            # Read the sent messages only after the claim, because another process may have sent until then.
            place = display_name(self._root)
            sender = open_sender(
                *(self._alerts, run.settings, self._wording, self._environ, place), links=self._links
            )
            with closing(sender):
                self._follow(sender, run)

    def _follow(self, sender: AlertSender, run: _Run) -> None:
        sender.start(run.changes.wake)
        fold = open_fold(self._journal)
        while not run.stopping.is_set():
            while rows := self._journal.rows(fold.seq, limit=_CHUNK):
                fold.apply(rows)
            model = with_presences(fold.model(), self._journal.presence.all, self._root)
            sender.set_needs(urgent_needs(model, self._journal.now()))
            while sender.lines:
                _log.info("%s", sender.lines.popleft())
            run.changes.wait(PRESENCE_SECONDS)


class _Run(Thread):
    """A thread that sends alerts with ``settings`` and ``web`` until `stop`. The thread closes ``changes``,
    which wakes it."""

    def __init__(
        self, settings: AlertSettings, web: WebSettings, changes: Changes, send: Callable[[_Run], None]
    ) -> None:
        super().__init__(name="watchroom-alert-keeper", daemon=True)
        self.settings = settings
        self.web = web
        self.changes = changes
        self.error: Exception | None = None
        """The error that ended the thread."""
        self.stopping = Event()
        self._send = send

    def stop(self) -> None:
        """Ask the thread to end after the requests in progress."""
        self.stopping.set()
        self.changes.wake()

    def run(self) -> None:
        with closing(self.changes):
            try:
                self._send(self)
            except Exception as error:  # noqa: BLE001  # it has no caller; `AlertKeeper.check` logs it
                self.error = error
