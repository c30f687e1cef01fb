"""Requests to people: the question, the texts that its calls would write, and the answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from watchroom.algorithms.merge import diff_lines
from watchroom.features.calls.proposals import Proposal, approval_checksum, proposal
from watchroom.features.people.service import PeopleReader
from watchroom.features.requests.reviews import Review
from watchroom.features.requests.rows import Answer, Request, parse_answer, parse_arguments, parse_request
from watchroom.features.requests.service import find_request_end
from watchroom.features.sessions.view import RequestView
from watchroom.kernel.journal import Journal
from watchroom.model import ANSWER


class RequestDetails(NamedTuple):
    """A request in full.

    - ``asked``: the request in the dashboard's model.
    - ``request``: the question.
    - ``proposals``: the text that each call would write, None if it writes nothing.
    - ``answer``: None if there is none.
    - ``outdated``: the ids of calls that would now write another text than at the time of the request.
    """

    asked: RequestView
    request: Request
    proposals: tuple[Proposal | None, ...]
    answer: Answer | None
    outdated: frozenset[str] = frozenset()


def find_request(journal: Journal, number: int) -> RequestView | None:
    """Return the request of the row ``number``, with its end if it has ended; None if the row is not a
    request. Raise `JournalError`."""
    row = journal.row(number)
    if row is None or row.zone != "request" or row.version != 1:
        return None
    return RequestView(row, find_request_end(journal, PeopleReader(journal), row.path))


def read_request(journal: Journal, asked: RequestView) -> RequestDetails:
    """Return all details of the request ``asked``. Raise `JournalError`, and `JournalDamaged` if the question
    or the answer cannot be read."""
    request = parse_request(journal.content(asked.row.seq) or "")
    proposals = tuple(
        proposal(journal, asked.agent, call.name, parse_arguments(call.arguments)) for call in request.calls
    )
    is_answered = asked.ended is not None and asked.ended.tool == ANSWER
    text = journal.content(asked.ended.seq) if asked.ended is not None and is_answered else None
    outdated = frozenset() if asked.ended else frozenset(_outdated(journal, asked.agent, request))
    return RequestDetails(asked, request, proposals, parse_answer(text) if text else None, outdated)


def begin_reviews(details: RequestDetails) -> dict[str, Review]:
    """Return reviews by call id that accept every change. Calls that change no text have no review."""
    reviews = {}
    for call, would in zip(details.request.calls, details.proposals, strict=True):
        hunks = diff_lines(would.before, would.after) if would is not None else []
        if would is not None and hunks:
            reviews[call.id] = Review(would.before, would.after, tuple(hunks))
    return reviews


def _outdated(journal: Journal, agent: str, request: Request) -> Iterator[str]:
    for call in request.calls:
        arguments = parse_arguments(call.arguments)
        if call.checksum and call.checksum != approval_checksum(journal, agent, call.name, arguments):
            yield call.id
