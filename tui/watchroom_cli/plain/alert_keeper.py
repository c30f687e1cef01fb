"""Send the alerts of a workspace that the service keeps open."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from contextlib import closing
from threading import Event, Thread
from typing import TYPE_CHECKING, Final

from watchroom.errors import WatchroomError
from watchroom.features.alerts.rules import AlertSettings
from watchroom.features.overview.model import urgent_needs
from watchroom.features.overview.presence import PRESENCE_SECONDS, with_presences
from watchroom.features.overview.snapshots import open_fold
from watchroom.features.trees.place import display_name
from watchroom.kernel.journal import Changes
from watchroom.texts import Catalogue
from watchroom_tui.presentation.usage import WrongUsage

from watchroom_cli.plain.alert_sender import AlertSender, open_sender

if TYPE_CHECKING:
    from watchroom.workspace import Workspace

_CHUNK: Final = 2000
_IDLE_SECONDS: Final = 600.0
"""Timeout while there is nothing to send. A new configuration is a row, which ends the wait."""
_CLAIM_SECONDS: Final = 30.0
"""Seconds until the next attempt to claim the sending from another process."""
_PAUSE_SECONDS: Final = 1.0
"""Seconds between two checks of the settings."""
_log = logging.getLogger("watchroom")


class AlertKeeper:
    """Sends alerts by the configuration of ``workspace``, and follows its changes, until `close`.

    If ``environ`` lacks a variable of a target, the error is logged and nothing is sent. Only one process
    sends.
    """

    def __init__(self, workspace: Workspace, texts: Catalogue, environ: Mapping[str, str]) -> None:
        self._workspace = workspace
        self._texts = texts
        self._environ = environ
        self._closing = Event()
        self._changes = workspace.journal.changes()
        self._thread = Thread(target=self._run, name="watchroom-alert-keeper", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop, after the requests in progress."""
        self._closing.set()
        self._changes.wake()
        self._thread.join()

    def _run(self) -> None:
        with closing(self._changes) as changes:
            while not self._closing.is_set():
                try:
                    self._send_until_changed(changes)
                except (WatchroomError, OSError) as error:
                    _log.warning("alerts ended: %s", error)
                    self._closing.wait(_CLAIM_SECONDS)

    def _send_until_changed(self, changes: Changes) -> None:
        """Send alerts until the settings change or the next attempt is due. Raises `JournalError`,
        OSError."""
        settings = self._workspace.config.alerts
        is_elsewhere = False
        try:
            if settings.targets:
                is_elsewhere = not self._send(settings, changes)
        except WrongUsage as problem:
            _log.warning("no alert is sent: %s", problem)
        end = time.monotonic() + (_CLAIM_SECONDS if is_elsewhere else _IDLE_SECONDS)
        while not self._is_changed(settings) and (left := end - time.monotonic()) > 0:
            changes.wait(left)
            # Rows arrive more often than settings change.
            self._closing.wait(_PAUSE_SECONDS)

    def _is_changed(self, settings: AlertSettings) -> bool:
        """Return whether the settings changed or the keeper is closing."""
        return self._closing.is_set() or self._workspace.config.alerts != settings

    def _send(self, settings: AlertSettings, changes: Changes) -> bool:
        """Send alerts by ``settings`` until they change. Return False if another process sends them. Raises
        `WrongUsage`, `JournalError`, OSError."""
        place = display_name(self._workspace.root)
        sender = open_sender(self._workspace, place, "", self._texts, self._environ)
        with self._workspace.alerts.claim() as is_claimed:
            if is_claimed:
                with closing(sender):
                    self._follow(sender, settings, changes)
            return is_claimed

    def _follow(self, sender: AlertSender, settings: AlertSettings, changes: Changes) -> None:
        journal = self._workspace.journal
        sender.start(changes.wake)
        fold = open_fold(journal)
        while not self._is_changed(settings):
            while rows := journal.rows(fold.seq, limit=_CHUNK):
                fold.apply(rows)
            now = journal.now()
            model = with_presences(fold.model(), journal.presence.all, self._workspace.root)
            sender.set_needs(urgent_needs(model, now))
            while sender.lines:
                _log.info("%s", sender.lines.popleft())
            changes.wait(PRESENCE_SECONDS)
