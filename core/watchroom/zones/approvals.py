"""Asks people whether a command may run where there is no fence, and waits for what they say."""

from __future__ import annotations

import json
import time
import uuid
from threading import Event
from typing import Final, NamedTuple

from watchroom.model import ANSWER, WITHDRAW, Row
from watchroom.row_dispatcher import RowDispatcher
from watchroom.rules.requests import Answer, PendingCall, Request, parse_arguments
from watchroom.sandbox.errors import CommandRejected, CommandStopped, CommandUnanswered
from watchroom.texts import catalogue
from watchroom.zones.requests import ZONE, RequestZone
from watchroom.zones.store import Store

SECONDS: Final = 600.0
"""How long people may take for their answer."""


class Stop(NamedTuple):
    """How a command is told to stop, while it waits for an answer, too."""

    event: Event
    woken: Event

    def set(self) -> None:
        self.event.set()
        self.woken.set()


class Approvals:
    """May be used from any thread. An answer may take ``seconds``."""

    def __init__(self, store: Store, requests: RequestZone, seconds: float = SECONDS) -> None:
        self._store = store
        self._requests = requests
        self._seconds = seconds
        self._dispatcher = RowDispatcher(store.journal, _address)

    def ask(self, actor: str, tool: str, command: str, folder: str, stop: Stop) -> str:
        """Wait until a person approves of ``command``; returns what may be run, which that person may have
        changed. Raises `CommandRejected`, `CommandUnanswered`, `CommandStopped`."""
        path = f"{actor}/commands/{uuid.uuid4().hex[:12]}"
        end = self._dispatcher.subscribe((path,), lambda _: stop.woken.set())
        try:
            self._requests.ask(actor, path, self._request(tool, command, folder))
            stop.woken.wait(self._seconds)
        finally:
            end()
        ended = self._requests.withdraw(path) if stop.event.is_set() else self._requests.expire(path)
        if stop.event.is_set():
            raise CommandStopped
        return _approved(command, ended.answer)

    def close(self) -> None:
        self._dispatcher.close()

    def _request(self, tool: str, command: str, folder: str) -> Request:
        language = self._store.registry.current().language
        arguments = json.dumps({"command": command}, ensure_ascii=False)
        return Request(
            "approve",
            prompt=catalogue(language)("request.unfenced", folder=folder),
            calls=(PendingCall("command", tool, arguments),),
            metadata={"folder": folder},
            expires=time.time_ns() + int(self._seconds * 1e9),
        )


def _address(row: Row) -> str | None:
    """What ends a request is mail to it."""
    is_end = row.zone == ZONE and row.outcome == "ok" and row.tool in (ANSWER, WITHDRAW)
    return row.path if is_end else None


def _approved(command: str, answer: Answer | None) -> str:
    """What may be run, by that answer."""
    if answer is None or answer.expired:
        raise CommandUnanswered
    (decision,) = answer.decisions
    if not decision.approved:
        raise CommandRejected(reason=decision.reason)
    changed = parse_arguments(decision.arguments).get("command") if decision.arguments else None
    return changed if isinstance(changed, str) else command
