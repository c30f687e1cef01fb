"""What agents ask of people: each request is version 1 of its path, and what ended it is version 2.

So exactly one answer counts, however many people answer at once: the journal takes one version 2.
"""

from __future__ import annotations

import os
from typing import Final, NamedTuple

from watchroom import validation
from watchroom.errors import (
    RequestCancelled,
    RequestClosed,
    RequestExpired,
    RequestNotFound,
    RequestWithdrawn,
    WatchroomError,
)
from watchroom.journal.topics import messages_to
from watchroom.model import ANSWER, ASK, CANCEL, SYSTEM, WITHDRAW, Json, Note, Row, Write
from watchroom.rules.requests import (
    Answer,
    Request,
    answer_outcome,
    call_subject,
    check_answer,
    dump_answer,
    dump_request,
    has_expired,
    parse_answer,
    parse_request,
    request_state,
    summarize_request,
)
from watchroom.zones.people import PeopleZone
from watchroom.zones.store import Store

ZONE: Final = "request"
_SESSION: Final = "session"
TERMINAL: Final = "terminal"
"""In the detail of an answer's row: whether it was given by a process with a terminal."""
_MOST_SUMMARY: Final = 200
"""Characters."""


class RequestOutcome(NamedTuple):
    """How a request ended: an ``answer``, or None where it was withdrawn; and the ``row`` that ended it."""

    answer: Answer | None
    row: Row


class RequestZone:
    """What agents ask of people, in ``store``; ``people`` says whose answers count."""

    def __init__(self, store: Store, people: PeopleZone) -> None:
        self._store = store
        self._people = people

    def now(self) -> int:
        """The time by the journal's clock, in nanoseconds since the epoch."""
        return self._store.journal.now()

    def ask(self, actor: str, path: str, request: Request) -> Row:
        """Open ``request`` for ``actor`` at ``path`` (``agent/session/step``), or find it open already: an
        agent that was ended right after it asked asks again. Returns the request's row. Raises
        `JournalError`."""
        detail: dict[str, Json] = {"kind": request.kind}
        if request.calls:
            detail["tools"] = [call.name for call in request.calls]
            detail["subjects"] = [call_subject(call) for call in request.calls]
        if request.expires is not None:
            detail["expires"] = request.expires
        draft = Write(
            actor,
            ASK,
            ZONE,
            path,
            dump_request(request),
            message=validation.escape_unstorable(summarize_request(request), _MOST_SUMMARY),
            expected=0,
            detail=detail,
        )
        known = self._store.journal.version(ZONE, path, 1)
        asked = known or self._store.write(draft).row
        return asked if asked.version else self.ask(actor, path, request)

    def answer(self, actor: str, number: int, answer: Answer, message: str = "") -> Row:
        """Answer, as ``actor``, the request whose row is ``number`` with ``answer`` and a ``message``.
        Returns the row that closes it. Raises `RequestNotFound`, `InvalidAnswer`, `NotText`; `RequestExpired`
        where it comes too late, `RequestClosed` where another was first, `RequestCancelled` where a person
        has cancelled the session: then this one is kept as a refused row."""
        asked = self._find_row(number)
        request = self.read(asked)
        check_answer(request, answer)
        validation.encode_text(dump_answer(answer))
        cancelled = self._find_cancellation(asked)
        if cancelled is not None and self.ended(asked.path) is None:
            # Its session may run nowhere just now, or not have heeded that yet.
            raise self._record_refusal(
                actor, asked, answer, message, RequestCancelled(request=number, by=cancelled.actor)
            )
        if has_expired(request.expires, self._store.journal.now()):
            raise self._record_refusal(actor, asked, answer, message, RequestExpired(request=number))
        return self._close(actor, ANSWER, asked, answer, message, answer_outcome(request, answer))

    def _find_cancellation(self, asked: Row) -> Row | None:
        """The row by which the session that asked was cancelled since, None if it was not."""
        session = asked.path.rpartition("/")[0]
        journal = self._store.journal
        if journal.head(_SESSION, session) is None:
            return None
        agent = session.partition("/")[0]
        found = [
            row
            for receiver in (agent, session)
            for row in journal.topic(messages_to(_SESSION, receiver), after=asked.seq)
            if row.tool == CANCEL
        ]
        return min(found, key=lambda row: row.seq, default=None)

    def _record_refusal(
        self, actor: str, asked: Row, answer: Answer, message: str, error: WatchroomError
    ) -> WatchroomError:
        """The error, of which a row keeps what the person wrote, although it does not count."""
        refused = Note(
            actor,
            ANSWER,
            ZONE,
            asked.path,
            error.outcome,
            error.code,
            message,
            dump_answer(answer),
            detail={"request": asked.seq, TERMINAL: _has_terminal()},
        )
        self._store.commits.commit(refused)
        return error

    def expire(self, path: str) -> RequestOutcome:
        """End the request at ``path``, which nobody answered in time. Returns how it ended: by the answer
        that was first, if one was. Raises `RequestNotFound`."""
        return self._end(path, Answer(expired=True), "expired")

    def withdraw(self, path: str, by: str = "") -> RequestOutcome:
        """End the request at ``path``, which nobody needs to answer any more, as ``by`` has cancelled the
        session that asked. Returns and raises as `expire` does."""
        return self._end(path, None, "withdrawn", by)

    def ended(self, path: str) -> RequestOutcome | None:
        """How the request at ``path`` ended, None while it is open."""
        row = self._end_of(path)
        if row is None:
            return None
        content = self._store.content(row)
        return RequestOutcome(parse_answer(content) if content else None, row)

    def _end_of(self, path: str) -> Row | None:
        """The first version after the request itself that counts: an answer that nobody may give, or that
        was changed, ends nothing."""
        journal = self._store.journal
        row = journal.version(ZONE, path, 2)
        while row is not None and row.tool == ANSWER and self._people.find_flaw(row):
            row = journal.version(ZONE, path, (row.version or 0) + 1)
        return row

    def find(self, number: int) -> Request:
        """The request whose row is ``number``. Raises `RequestNotFound`."""
        return self.read(self._find_row(number))

    def read(self, asked: Row) -> Request:
        """What was asked by the row ``asked``."""
        return parse_request(self._store.content(asked))

    def _find_row(self, number: int) -> Row:
        row = self._store.journal.row(number)
        if row is None or row.zone != ZONE or row.version != 1:
            raise RequestNotFound(request=number)
        return row

    def _end(self, path: str, answer: Answer | None, outcome: str, by: str = "") -> RequestOutcome:
        asked = self._store.journal.version(ZONE, path, 1)
        if asked is None:
            raise RequestNotFound(request=path)
        try:
            row = self._close(SYSTEM, WITHDRAW, asked, answer, "", outcome, by)
        except (RequestClosed, RequestExpired):
            return self.ended(path) or self._end(path, answer, outcome, by)
        return RequestOutcome(answer, row)

    def _close(
        self,
        actor: str,
        tool: str,
        asked: Row,
        answer: Answer | None,
        message: str,
        outcome: str,
        by: str = "",
    ) -> Row:
        detail: dict[str, Json] = {"request": asked.seq, "outcome": outcome}
        if by:
            detail["by"] = by
        if tool == ANSWER:
            detail[TERMINAL] = _has_terminal()
        text = dump_answer(answer) if answer else ""
        draft = Write(actor, tool, ZONE, asked.path, text, message, 1, detail)
        while True:
            row, head = self._store.write(draft)
            if row.outcome == "ok":
                return row
            end = self._end_of(asked.path)
            if end is not None or head is None:
                raise _closing_error(asked.seq, end)
            # What stands there does not count: it keeps nobody from answering.
            draft = draft._replace(expected=head.version or 1)


def _has_terminal() -> bool:
    """Whether somebody may be typing: the standard input of this process is a terminal."""
    return os.isatty(0)


def _closing_error(number: int, ended: Row | None) -> WatchroomError:
    """What to tell who answers the request of that number, which ``ended`` has closed."""
    state = request_state(ended)
    if state == "expired":
        return RequestExpired(request=number)
    if state == "withdrawn":
        return RequestWithdrawn(request=number)
    if state == "cancelled" and ended is not None:
        return RequestCancelled(request=number, by=ended.detail.get("by"))
    return RequestClosed(request=number, by=ended.actor if ended else "-")
