"""Asks people whether a command may run where no sandbox works, and waits for the answer."""

from __future__ import annotations

import json
import time
import uuid
from typing import Final

from watchroom.model import Row
from watchroom.row_dispatcher import RowDispatcher
from watchroom.rules.requests import (
    CLOCK_SECONDS,
    Answer,
    PendingCall,
    Request,
    has_expired,
    parse_arguments,
)
from watchroom.sandbox.errors import CommandRejected, CommandStopped, CommandUnanswered
from watchroom.texts import catalogue
from watchroom.zones.command_executor import StopSignal
from watchroom.zones.requests import RequestZone
from watchroom.zones.store import Store

ANSWER_SECONDS: Final = 600.0
"""How long people may take for their answer."""


class CommandApprovals:
    """Requests of ``store`` and ``requests`` by which people approve commands, each answered within
    ``seconds``; ``dispatcher`` reports the answers. May be used from any thread."""

    def __init__(
        self,
        store: Store,
        requests: RequestZone,
        dispatcher: RowDispatcher,
        seconds: float = ANSWER_SECONDS,
    ) -> None:
        self._store = store
        self._requests = requests
        self._seconds = seconds
        self._dispatcher = dispatcher

    def request(self, actor: str, tool: str, command: str, folder: str, stop: StopSignal) -> str:
        """Wait until a person approves that ``actor`` runs ``command`` in ``folder`` by ``tool``, or until
        ``stop`` is set.

        Returns the command that may be run, which that person may have changed. Raises `CommandRejected`,
        `CommandUnanswered`, `CommandStopped`.
        """
        path = f"{actor}/commands/{uuid.uuid4().hex[:12]}"

        def wake(row: Row) -> None:
            if row.path == path:
                stop.wakeup.set()

        unsubscribe = self._dispatcher.subscribe((path.rpartition("/")[0],), wake)
        try:
            request = self._build_request(tool, command, folder)
            self._requests.ask(actor, path, request)
            end = time.monotonic() + self._seconds
            while (left := end - time.monotonic()) > 0:
                has_come = stop.wakeup.wait(min(left, CLOCK_SECONDS))
                if has_come or has_expired(request.expires, self._requests.now()):
                    break
        finally:
            unsubscribe()
        ended = self._requests.withdraw(path) if stop.event.is_set() else self._requests.expire(path)
        if stop.event.is_set():
            raise CommandStopped
        return _approved_command(command, ended.answer)

    def _build_request(self, tool: str, command: str, folder: str) -> Request:
        language = self._store.registry.current().language
        arguments = json.dumps({"command": command}, ensure_ascii=False)
        return Request(
            "approve",
            prompt=catalogue(language)("request.unfenced", folder=folder),
            calls=(PendingCall("command", tool, arguments),),
            metadata={"folder": folder},
            expires=self._store.journal.now() + int(self._seconds * 1e9),
        )


def _approved_command(command: str, answer: Answer | None) -> str:
    if answer is None or answer.expired:
        raise CommandUnanswered
    (decision,) = answer.decisions
    if not decision.approved:
        raise CommandRejected(reason=decision.reason)
    changed = parse_arguments(decision.arguments).get("command") if decision.arguments else None
    return changed if isinstance(changed, str) else command
