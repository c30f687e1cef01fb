"""`Alerts`: records which alerts were sent, so that none is sent twice."""

from __future__ import annotations

from contextlib import AbstractContextManager, suppress
from typing import Final

from watchroom.errors import HeadsMoved
from watchroom.features.alerts.rows import AlertMessage, TargetState, dump_message, fold_messages
from watchroom.features.config.store import Store
from watchroom.kernel.rules.row_files import CONFIG_PATH
from watchroom.model import SEND_ALERT, SYSTEM, Note, Row, Write, Zone

ZONE: Final[Zone] = "workspace"
DELAYED: Final = "alert_delayed"
"""The error of an alert that will be sent again."""
_CLAIM: Final = "alerts"
_NO_VERSION: Final = 2**31 - 1
NOT_SENT: Final = "alert_not_sent"
"""The error of an alert that will not be sent again."""


class Alerts:
    """The alerts that were sent to each target, recorded in ``store``."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def claim(self) -> AbstractContextManager[bool]:
        """Return a context in which only this process sends alerts. It yields False if another process
        sends."""
        return self._store.journal.claim(_CLAIM)

    def is_claimed(self) -> bool:
        """Return whether a process sends alerts now. Raise `JournalError`."""
        return self._store.journal.is_claimed(_CLAIM)

    def now(self) -> int:
        """Return the current time of the journal, in nanoseconds since the epoch."""
        return self._store.journal.now()

    def state(self, target: str) -> TargetState:
        """Return the state of ``target`` after the recorded messages. Raise `JournalError`."""
        rows = self._store.journal.notes(ZONE, target, SYSTEM, SEND_ALERT)
        return fold_messages(reversed(rows))

    def check_recordable(self) -> None:
        """Raise `JournalDenied` if this login cannot record alerts, such as an agent's login. Write nothing.

        Without a record, every later process would send the same alerts again. Raise `JournalError`.
        """
        if not self._store.journal.is_shared:
            return
        note = Note(SYSTEM, SEND_ALERT, ZONE, "")
        # This expected version never exists, so the batch is refused even if the login is permitted.
        refused = Write(SYSTEM, SEND_ALERT, "config", CONFIG_PATH, "", expected=_NO_VERSION)
        with suppress(HeadsMoved):
            self._store.journal.append([note, refused], all_or_nothing=True)

    def record_sent(self, target: str, message: AlertMessage, summary: str) -> Row:
        """Record that ``message`` was sent to ``target``. Return the row. Raise `JournalError`.

        ``summary``: the message in one line, for the row.
        """
        note = Note(SYSTEM, SEND_ALERT, ZONE, target, message=summary, detail=dict(dump_message(message)))
        return self._store.commits.commit(note).row

    def record_failure(self, target: str, message: AlertMessage, reason: str, *, is_final: bool) -> Row:
        """Record that ``message`` could not be sent to ``target``. Return the row. Raise `JournalError`.

        - ``reason``: the reason, without an address, which may be secret.
        - ``is_final``: whether the message will not be sent again.
        """
        note = Note(
            *(SYSTEM, SEND_ALERT, ZONE, target, "failed", NOT_SENT if is_final else DELAYED),
            message=reason,
            detail=dict(dump_message(message)),
        )
        return self._store.commits.commit(note).row
