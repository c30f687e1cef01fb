"""Which alerts were sent out of the workspace, as rows: what was sent once is not sent again."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Final

from watchroom.model import SEND_ALERT, SYSTEM, Note, Row, Zone
from watchroom.rules.alert_plan import AlertMessage, TargetState, dump_message, state_of
from watchroom.zones.store import Store

ZONE: Final[Zone] = "workspace"
DELAYED: Final = "alert_delayed"
"""The error of an alert that could not be sent yet."""
NOT_SENT: Final = "alert_not_sent"
"""The error of an alert that was given up."""


class Alerts:
    """The alerts that were sent, by target, in ``store``."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def claim(self) -> AbstractContextManager[bool]:
        """Be the one that sends alerts for as long as the context lasts; gives whether that is so."""
        return self._store.journal.claim("alerts")

    def state(self, target: str) -> TargetState:
        """What ``target`` was told by what rows say. Raises `JournalError`."""
        rows = self._store.journal.notes(ZONE, target, SYSTEM, SEND_ALERT)
        return state_of(reversed(rows))

    def record_sent(self, target: str, message: AlertMessage, summary: str) -> Row:
        """Say by a row that ``message`` was sent to ``target``; ``summary`` says it in a line. Raises
        `JournalError`."""
        note = Note(SYSTEM, SEND_ALERT, ZONE, target, message=summary, detail=dict(dump_message(message)))
        return self._store.commits.commit(note).row

    def record_failure(self, target: str, message: AlertMessage, reason: str, *, is_final: bool) -> Row:
        """Say by a row that ``message`` could not be sent to ``target``, for ``reason``, which names no
        address; and, if ``is_final``, that it is not tried again. Raises `JournalError`."""
        note = Note(
            *(SYSTEM, SEND_ALERT, ZONE, target, "failed", NOT_SENT if is_final else DELAYED),
            message=reason,
            detail=dict(dump_message(message)),
        )
        return self._store.commits.commit(note).row
