"""Answers of people at other machines: checks them, and makes the same calls as a person here."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from hashlib import sha256
from typing import Final

from watchroom.agents.clients.processes import find_parent_agent
from watchroom.errors import AgentCannotAnswer, JournalDamaged, JournalError, RequestNotFound, WatchroomError
from watchroom.features.calls.reads import RequestDetails, find_request, read_request
from watchroom.kernel.journal import Journal
from watchroom.model import ANSWER, HUMAN_PREFIX, SEEN, Json
from watchroom.serving.machines.messages import Check, NeedAnswer, Result
from watchroom.texts import Language, catalogue
from watchroom.workspace import Workspace

_MAX_MESSAGE: Final = 2000


def checksum_of(details: RequestDetails) -> str:
    """Return a checksum of everything that people see of a request."""
    changes = [change.checksum if change else None for change in details.proposals]
    asked = details.asked.row
    facts = json.dumps([asked.seq, asked.sha256, changes, sorted(details.outdated)])
    return sha256(facts.encode()).hexdigest()


class PersonAnswers:
    """The answers of ``person`` in the workspace at ``root``, whose rows are in ``journal``.

    ``language``: of the messages. Not thread-safe.
    """

    def __init__(self, root: str, journal: Journal, person: str, language: Language) -> None:
        self._root = root
        self._journal = journal
        self._person = person
        self._language: Language = language

    def answer(self, given: NeedAnswer) -> Result:
        """Carry out an answer, at most once for each key. Return the outcome."""
        try:
            earlier = self._earlier(given.key)
            if earlier is not None:
                return earlier
            with Workspace.open(self._root, create=False, scan=False) as workspace:
                return self._answer(workspace, given)
        except WatchroomError as error:
            return _refused(given.key, error.report(self._language))
        except OSError as error:
            return _refused(given.key, error.strerror or str(error))

    def check(self, asked: Check) -> Result | None:
        """Return the outcome of an answer. None if it may still take effect, or if that cannot be found out
        now."""
        try:
            earlier = self._earlier(asked.key)
            if earlier is not None or self._journal.now() <= asked.until:
                return earlier
        except JournalError:
            return None
        return Result(key=asked.key, state="absent")

    def _earlier(self, key: str) -> Result | None:
        """Return the result of the answer ``key`` according to the journal, None if it has none."""
        rows = self._journal.rows_of_call(HUMAN_PREFIX + self._person, key)
        row = next((each for each in rows if each.tool in (ANSWER, SEEN)), None)
        if row is None:
            return None
        if row.outcome == "ok":
            return Result(key=key, state="accepted", message=str(row.detail.get("outcome", "")))
        return _refused(key, row.error)

    def _answer(self, workspace: Workspace, given: NeedAnswer) -> Result:
        texts = catalogue(self._language)
        # The connection may have been interrupted for longer than the person was told to wait.
        if workspace.journal.now() > given.until:
            return _refused(given.key, texts("machines.late"))
        if given.decision != "seen":
            details = _read(workspace.journal, given.row)
            if details.asked.ended is None and checksum_of(details) != given.shown:
                return _refused(given.key, texts("machines.changed"))
        tool, arguments = _call(given)
        tools = workspace.tools_for_human(self._person, language=self._language)
        if agent := find_parent_agent(workspace.root, os.environ):
            made = tools.refuse(tool, arguments, AgentCannotAnswer(agent=agent))
        else:
            made = tools.dispatch_tool_call(tool, arguments, call=given.key)
        if made["success"]:
            return Result(key=given.key, state="accepted", message=str(made.get("outcome", "")))
        return _refused(given.key, f"{made.get('message', '')} {made.get('suggestion', '')}".strip())


def _read(journal: Journal, number: int) -> RequestDetails:
    """Return the request ``number``. Raise `RequestNotFound`."""
    asked = find_request(journal, number)
    if asked is None:
        raise RequestNotFound(request=number)
    try:
        return read_request(journal, asked)
    except JournalDamaged as error:
        raise RequestNotFound(request=number) from error


def _call(given: NeedAnswer) -> tuple[str, Mapping[str, Json]]:
    """Return the tool and the arguments for an answer."""
    if given.decision == "seen":
        return SEEN, {"row": given.row}
    if given.decision == "reply":
        return ANSWER, {"request": given.row, "text": given.text}
    if given.decision == "choose":
        return ANSWER, {"request": given.row, "values": list(given.values)}
    approved = given.decision == "approve"
    return ANSWER, {"request": given.row, "approved": approved, "reason": given.text or None}


def _refused(key: str, message: str) -> Result:
    return Result(key=key, state="refused", message=message[:_MAX_MESSAGE])
