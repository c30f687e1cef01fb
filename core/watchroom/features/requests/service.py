"""Opens, answers and ends requests of agents to people.

A request is version 1 of its path. The first later version that counts ends it. If several people answer at
once, one answer counts, because the journal accepts one version 2.
"""

from __future__ import annotations

import os
from contextlib import nullcontext, suppress
from dataclasses import replace
from typing import Final, NamedTuple

from watchroom import validation
from watchroom.errors import (
    JournalDamaged,
    RequestCancelled,
    RequestClosed,
    RequestExpired,
    RequestNotFound,
    RequestTaken,
    RequestWithdrawn,
    TooManyRequests,
    WatchroomError,
)
from watchroom.features.config.store import Store
from watchroom.features.people.service import PeopleReader, PeopleRegistry
from watchroom.features.policy.service import Grants
from watchroom.features.requests.open_requests import OpenRequests
from watchroom.features.requests.rows import (
    CALL_RESULT,
    ZONE,
    Answer,
    CallDecision,
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
from watchroom.kernel.call_context import CallContext
from watchroom.kernel.journal import Journal
from watchroom.kernel.journal.topics import messages_to
from watchroom.kernel.rules.details import request_number
from watchroom.model import ANSWER, ASK, CANCEL, SYSTEM, WITHDRAW, Json, Row, Write

MAX_OPEN_REQUESTS: Final = 50
"""Maximum number of open requests of one agent."""
_SESSION: Final = "session"
TERMINAL: Final = "terminal"
"""The field of an answer's detail for whether the answering process has a terminal."""
_PAGE: Final = 500
"""Number of rows that are read at a time."""
_MAX_SUMMARY: Final = 200
"""Maximum characters of a summary."""


class RequestOutcome(NamedTuple):
    """The end of a request.

    - ``answer``: None if the request was withdrawn.
    - ``row``: the row that ended it.
    """

    answer: Answer | None
    row: Row


class Requests:
    """The requests in ``store``. Thread-safe.

    - ``people``: decides whose answers count.
    - ``grants``: answer requests whose calls a person has granted before.
    """

    def __init__(self, store: Store, people: PeopleRegistry, grants: Grants) -> None:
        self._store = store
        self._people = people
        self._grants = grants
        self._open = OpenRequests(store.journal)

    def now(self) -> int:
        """Return the time of the journal's clock, in nanoseconds since the epoch."""
        return self._store.journal.now()

    def ask(self, call: CallContext, path: str, request: Request, *, is_bounded: bool = True) -> Row:
        """Open ``request`` at ``path`` (``AGENT/SESSION/STEP``) as the caller, and return its row.

        If a person's grant covers the call of the request, the grant answers it at once. If the same request
        already exists there, return its row: a restarted agent asks again.

        ``is_bounded``: False opens it even if the caller has too many open requests, for requests that
        Watchroom makes.

        Raise `TooManyRequests` if the caller has `MAX_OPEN_REQUESTS` open requests, also if several threads
        or processes ask at once. Requests that another process opened more than 2000 rows before this process
        first counted are left out. Raise `RequestTaken` if the path has a different request, which the
        agent's runtime did not make. Raise `JournalError`.
        """
        known = self._store.journal.version(ZONE, path, 1)
        if known is not None:
            self.check_asked(known, request)
            if self.find_end(path) is None:
                self._answer_by_grant(known, request, self._grants.find_use(known))
            return known
        draft = self._draft(call, path, request)
        # An agent's requests are counted and opened one at a time.
        with self._store.journal.exclusive(f"requests {call.actor}") if is_bounded else nullcontext():
            if is_bounded:
                self._check_room(call.actor)
            made = self._store.write(draft).row
        if made.version is None:
            return self.ask(call, path, request, is_bounded=is_bounded)
        self._answer_by_grant(made, request)
        return made

    def _check_room(self, agent: str) -> None:
        """Raise `TooManyRequests` if ``agent`` has `MAX_OPEN_REQUESTS` open requests.

        Requests that people cannot answer do not count: planted rows, and requests of cancelled sessions.
        """
        if self._open.count(agent, MAX_OPEN_REQUESTS, self._is_answerable) >= MAX_OPEN_REQUESTS:
            raise TooManyRequests(agent=agent, most=MAX_OPEN_REQUESTS)

    def _is_answerable(self, asked: Row) -> bool:
        return not self._people.find_flaw(asked) and self._find_cancellation(asked) is None

    def _answer_by_grant(self, asked: Row, request: Request, use: Row | None = None) -> None:
        """Approve the call of ``request`` if a grant covers it. ``use``: the use that an interrupted process
        took for it."""
        if self._find_cancellation(asked) is not None:
            return
        use = use or self._grants.use(asked, request)
        if use is None:
            return
        answer = Answer(tuple(CallDecision(each.id, True) for each in request.calls))
        # A person who answers first decides.
        with suppress(RequestClosed, RequestExpired, RequestWithdrawn, RequestCancelled):
            self._close(CallContext(SYSTEM, ANSWER), asked, answer, "", "approved", use=use)

    def check_asked(self, asked: Row, request: Request) -> None:
        """Raise `RequestTaken` unless the row ``asked`` is exactly ``request``. Only the deadline may differ.

        Anyone who can write to the journal can write a different request to the path of this one.
        """
        try:
            found = self.read(asked)
        except JournalDamaged:
            found = None
        is_same = found is not None and replace(found, expires=None) == replace(request, expires=None)
        # People see the row's message and detail, not its content, so these must be correct too.
        shown = (
            self._draft(CallContext(asked.actor), asked.path, found)
            if found is not None and is_same
            else None
        )
        is_shown = shown is not None and asked.message == shown.message and _has_fields(asked, shown)
        has_passed = found is not None and found.expires != request.expires and self._has_expired(found)
        if not is_shown or has_passed or self._people.find_flaw(asked):
            raise RequestTaken(path=asked.path, request=asked.seq)

    def _has_expired(self, request: Request) -> bool:
        return has_expired(request.expires, self._store.journal.now())

    def _draft(self, call: CallContext, path: str, request: Request) -> Write:
        detail: dict[str, Json] = {"kind": request.kind}
        if request.calls:
            detail["tools"] = [call.name for call in request.calls]
            detail["subjects"] = [call_subject(call) for call in request.calls]
        if request.expires is not None:
            detail["expires"] = request.expires
        return call.with_tool(ASK).write(
            ZONE,
            path,
            dump_request(request),
            message=validation.escape_unstorable(summarize_request(request), _MAX_SUMMARY),
            expected=0,
            detail=detail,
        )

    def answer(self, call: CallContext, number: int, answer: Answer, message: str = "") -> Row:
        """Answer a request as the caller. Return the row that closes it.

        - ``number``: the number of the request's row.
        - ``message``: the message of the row.

        Raise `RequestNotFound`, `InvalidAnswer`, `NotText`. The other errors are recorded as refused answers:

        - `RequestExpired`: the answer is late.
        - `RequestClosed`: the request has another answer.
        - `RequestCancelled`: a person cancelled the session.
        """
        asked = self._find_row(number)
        request = self.read(asked)
        check_answer(request, answer)
        validation.encode_text(dump_answer(answer))
        cancelled = self._find_cancellation(asked)
        if cancelled is not None and self.ended(asked.path) is None:
            # The session may not be running, or may not have noticed the cancellation yet.
            raise self._record_refusal(
                call, asked, answer, message, RequestCancelled(request=number, by=cancelled.actor)
            )
        if self._has_expired(request):
            # The agent may still be waiting if the clock has just jumped, so end the request here.
            end = self.find_end(asked.path) or self.expire(asked.path).row
            raise self._record_refusal(call, asked, answer, message, _closing_error(number, end))
        return self._close(call.with_tool(ANSWER), asked, answer, message, answer_outcome(request, answer))

    def _find_cancellation(self, asked: Row) -> Row | None:
        """Return the row that cancelled the asking session, None if it was not cancelled."""
        session = asked.path.rpartition("/")[0]
        journal = self._store.journal
        if journal.head(_SESSION, session) is None:
            return None
        agent = session.partition("/")[0]
        found = [
            row
            for receiver in (agent, session)
            for row in journal.topic(messages_to(_SESSION, receiver), after=asked.seq)
            if row.tool == CANCEL and self._people.counts(row)
        ]
        return min(found, key=lambda row: row.seq, default=None)

    def _record_refusal(
        self, call: CallContext, asked: Row, answer: Answer, message: str, error: WatchroomError
    ) -> WatchroomError:
        """Record an answer as refused with ``error``. Return ``error``."""
        refused = call.with_tool(ANSWER).note(
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
        """End the request at ``path``, because nobody answered in time. If it was already answered, return
        that outcome. Raise `RequestNotFound`."""
        return self._end(path, Answer(expired=True), "expired")

    def withdraw(self, path: str, by: str = "") -> RequestOutcome:
        """End the request at ``path``, because its answer is no longer needed.

        ``by``: the person who cancelled the asking session; empty if nobody did. If the request was already
        answered, return that outcome. Raise `RequestNotFound`.
        """
        return self._end(path, None, "withdrawn", by)

    def ended(self, path: str, request: Request | None = None) -> RequestOutcome | None:
        """Return the outcome of the request at ``path``, None while it is open.

        ``request``: the request that the caller is about to carry out. Raise `RequestTaken` if the answer is
        about a different request. Raise `JournalError`.
        """
        row = self.find_end(path)
        if row is None:
            return None
        if request is not None:
            # An answer names the row of its request, because a forged row can have the same path and version.
            number = request_number(row) if row.tool == ANSWER else 0
            journal = self._store.journal
            asked = journal.row(number) if number else journal.version(ZONE, path, 1)
            if asked is not None:
                self.check_asked(asked, request)
        if row.tool == ANSWER:
            return RequestOutcome(parse_answer(self._store.content(row)), row)
        # The content of a withdrawal is ignored, so that a forged one approves nothing.
        return RequestOutcome(Answer(expired=True) if request_state(row) == "expired" else None, row)

    def find_end(self, path: str) -> Row | None:
        """Return the row that ended the request at ``path``, None while it is open. Raise `JournalError`."""
        return find_request_end(self._store.journal, self._people, path)

    def record_result(self, call: CallContext, path: str, result: str) -> Row:
        """Record the ``result`` of the call that the request at ``path`` is about. Return the row. Raise
        `JournalError`."""
        note = call.with_tool(CALL_RESULT).note(ZONE, path, content=result)
        return self._store.commits.commit(note).row

    def find_result(self, actor: str, path: str) -> tuple[Row, str] | None:
        """Return the row and the result that ``actor`` recorded for the request at ``path``. None if there is
        no result. Raise `JournalError`."""
        (row,) = self._store.journal.last_notes([(ZONE, path, actor, CALL_RESULT)])
        return None if row is None else (row, self._store.content(row))

    def find_asked(self, path: str, actor: str) -> tuple[Row, Request] | None:
        """Return the first row at ``path`` and its request, if ``actor`` made it. Raise `JournalError`."""
        row = self._store.journal.version(ZONE, path, 1)
        if row is None or row.actor != actor or self._people.find_flaw(row):
            return None
        return row, self.read(row)

    def find(self, number: int) -> Request:
        """Return the request in row ``number``. Raise `RequestNotFound`."""
        return self.read(self._find_row(number))

    def read(self, asked: Row) -> Request:
        """Return the request in the row ``asked``."""
        return parse_request(self._store.content(asked))

    def _find_row(self, number: int) -> Row:
        row = self._store.journal.row(number)
        if row is None or row.zone != ZONE or row.version != 1 or self._people.find_flaw(row):
            raise RequestNotFound(request=number)
        return row

    def _end(self, path: str, answer: Answer | None, outcome: str, by: str = "") -> RequestOutcome:
        asked = self._store.journal.version(ZONE, path, 1)
        if asked is None:
            raise RequestNotFound(request=path)
        try:
            row = self._close(CallContext(SYSTEM, WITHDRAW), asked, answer, "", outcome, by)
        except (RequestClosed, RequestExpired):
            return self.ended(path) or self._end(path, answer, outcome, by)
        return RequestOutcome(answer, row)

    def _close(
        self,
        call: CallContext,
        asked: Row,
        answer: Answer | None,
        message: str,
        outcome: str,
        by: str = "",
        use: Row | None = None,
    ) -> Row:
        detail: dict[str, Json] = {"request": asked.seq, "outcome": outcome}
        if by:
            detail["by"] = by
        if use is not None:
            detail["grant"] = use.seq
        elif call.tool == ANSWER:
            detail[TERMINAL] = _has_terminal()
        text = dump_answer(answer) if answer else ""
        draft = call.write(ZONE, asked.path, text, message, 1, detail)
        while True:
            row, head = self._store.write(draft)
            if row.outcome == "ok":
                return row
            end = self.find_end(asked.path)
            if end is not None or head is None:
                raise _closing_error(asked.seq, end)
            # A version that does not count must not prevent an answer.
            draft = draft._replace(expected=head.version or 1)


def find_request_end(journal: Journal, people: PeopleReader, path: str) -> Row | None:
    """Return the first version after the request at ``path`` that counts, None if there is none.

    ``people`` decides which rows of ``journal`` count. Raise `JournalError`.
    """
    after = 1
    # Forged versions can leave gaps in the numbers, so a page can begin with any version.
    while rows := journal.history(ZONE, path, after_version=after, limit=_PAGE):
        found = next((row for row in rows if people.counts(row)), None)
        if found is not None:
            return found
        after = rows[-1].version or 0
    return None


def _has_fields(asked: Row, shown: Write) -> bool:
    """Whether the detail of ``asked`` has all fields of the draft ``shown``. The journal adds other
    fields."""
    detail = asked.detail
    return all(detail.get(name) == value for name, value in (shown.detail or {}).items())


def _has_terminal() -> bool:
    """Whether the standard input of this process is a terminal, so that a person may be typing."""
    return os.isatty(0)


def _closing_error(number: int, ended: Row | None) -> WatchroomError:
    """Return the error for an answer to request ``number``, which was already closed by the row ``ended``."""
    state = request_state(ended)
    if state == "expired":
        return RequestExpired(request=number)
    if state == "withdrawn":
        return RequestWithdrawn(request=number)
    if state == "cancelled" and ended is not None:
        return RequestCancelled(request=number, by=ended.detail.get("by"))
    return RequestClosed(request=number, by=ended.actor if ended else "-")
