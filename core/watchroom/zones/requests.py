"""What agents ask of people. A request is version 1 of its path; the first later version that counts ends it.

So one answer counts, however many people answer at once: of several versions 2 the journal takes one.
"""

from __future__ import annotations

import os
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
    WatchroomError,
)
from watchroom.journal import Journal
from watchroom.journal.topics import messages_to
from watchroom.model import ANSWER, ASK, CANCEL, SYSTEM, WITHDRAW, Json, Note, Row, Write
from watchroom.rules.details import request_number
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
from watchroom.zones.people import PeopleReader, PeopleZone
from watchroom.zones.store import Store

ZONE: Final = "request"
_SESSION: Final = "session"
TERMINAL: Final = "terminal"
"""In the detail of an answer's row: whether it was given by a process with a terminal."""
_PAGE: Final = 500
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
        """Open ``request`` for ``actor`` at ``path`` (``agent/session/step``), or find it there already: an
        agent that died right after it asked asks again.

        Return the request's row. Raise `RequestTaken` if another request is at the path, which the agent's
        runtime did not make: an answer to that one approves nothing else. Raise `JournalError`.
        """
        known = self._store.journal.version(ZONE, path, 1)
        if known is not None:
            self.check_asked(known, request)
            return known
        made = self._store.write(self._draft(actor, path, request)).row
        return made if made.version else self.ask(actor, path, request)

    def check_asked(self, asked: Row, request: Request) -> None:
        """Raise `RequestTaken` unless the row ``asked`` asks exactly ``request``. Only the time to answer may
        differ. Anyone who can write to the journal can put another request where this one will be."""
        try:
            found = self.read(asked)
        except JournalDamaged:
            found = None
        is_same = found is not None and replace(found, expires=None) == replace(request, expires=None)
        # People see the row's message and detail, not its content.
        shown = self._draft(asked.actor, asked.path, found) if found is not None and is_same else None
        is_shown = shown is not None and asked.message == shown.message and _has_fields(asked, shown)
        has_passed = found is not None and found.expires != request.expires and self._has_expired(found)
        if not is_shown or has_passed or self._people.find_flaw(asked):
            raise RequestTaken(path=asked.path, request=asked.seq)

    def _has_expired(self, request: Request) -> bool:
        return has_expired(request.expires, self._store.journal.now())

    def _draft(self, actor: str, path: str, request: Request) -> Write:
        detail: dict[str, Json] = {"kind": request.kind}
        if request.calls:
            detail["tools"] = [call.name for call in request.calls]
            detail["subjects"] = [call_subject(call) for call in request.calls]
        if request.expires is not None:
            detail["expires"] = request.expires
        return Write(
            actor,
            ASK,
            ZONE,
            path,
            dump_request(request),
            message=validation.escape_unstorable(summarize_request(request), _MOST_SUMMARY),
            expected=0,
            detail=detail,
        )

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
        if self._has_expired(request):
            # Its agent may still wait: the clock may just have jumped.
            end = self.find_end(asked.path) or self.expire(asked.path).row
            raise self._record_refusal(actor, asked, answer, message, _closing_error(number, end))
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
            if row.tool == CANCEL and self._people.counts(row)
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

    def ended(self, path: str, request: Request | None = None) -> RequestOutcome | None:
        """Return how the request at ``path`` ended, None while it is open.

        Whoever is about to do what was asked gives the ``request`` that it will carry out. Raise
        `RequestTaken` if another one is at the path, `JournalError`.
        """
        row = self.find_end(path)
        if row is None:
            return None
        if request is not None:
            # An answer is about the row that it names: another one may have the same path and version.
            number = request_number(row) if row.tool == ANSWER else 0
            journal = self._store.journal
            asked = journal.row(number) if number else journal.version(ZONE, path, 1)
            if asked is not None:
                self.check_asked(asked, request)
        if row.tool == ANSWER:
            return RequestOutcome(parse_answer(self._store.content(row)), row)
        # Whatever the row of a withdrawal carries, it approves nothing.
        return RequestOutcome(Answer(expired=True) if request_state(row) == "expired" else None, row)

    def find_end(self, path: str) -> Row | None:
        """Return the first version after the request at ``path`` that counts, None where there is none. Raise
        `JournalError`."""
        return find_request_end(self._store.journal, self._people, path)

    def find(self, number: int) -> Request:
        """Return the request whose row is ``number``. Raise `RequestNotFound`."""
        return self.read(self._find_row(number))

    def read(self, asked: Row) -> Request:
        """Return what the row ``asked`` asks."""
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
            end = self.find_end(asked.path)
            if end is not None or head is None:
                raise _closing_error(asked.seq, end)
            # The version there does not count: it keeps nobody from answering.
            draft = draft._replace(expected=head.version or 1)


def find_request_end(journal: Journal, people: PeopleReader, path: str) -> Row | None:
    """Return the first version in ``journal`` after the request at ``path`` that counts, as ``people`` say;
    None where there is none. Raise `JournalError`."""
    after = 1
    # Versions that are planted may leave gaps.
    while rows := journal.history(ZONE, path, after_version=after, limit=_PAGE):
        found = next((row for row in rows if people.counts(row)), None)
        if found is not None:
            return found
        after = rows[-1].version or 0
    return None


def _has_fields(asked: Row, shown: Write) -> bool:
    """Whether the detail of ``asked`` has all fields of the draft ``shown``.

    The journal may have added others.
    """
    detail = asked.detail
    return all(detail.get(name) == value for name, value in (shown.detail or {}).items())


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
