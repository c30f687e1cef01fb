"""Requests to people, whole: what is asked, what its calls would write, and the answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from watchroom.journal import Journal
from watchroom.merge import diff_lines
from watchroom.model import ANSWER
from watchroom.projections.proposals import Proposal, proposal
from watchroom.projections.sessions import RequestView
from watchroom.rules.requests import Answer, Request, parse_answer, parse_arguments, parse_request
from watchroom.rules.reviews import Review
from watchroom.zones.people import PeopleReader
from watchroom.zones.requests import find_request_end


class RequestDetails(NamedTuple):
    """A request with what was asked, what each of its calls would write (None: nothing), and the answer, if
    any. ``outdated`` are the ids of calls that would write something else by now than when they were asked
    about."""

    asked: RequestView
    request: Request
    proposals: tuple[Proposal | None, ...]
    answer: Answer | None
    outdated: frozenset[str] = frozenset()


def find_request(journal: Journal, number: int) -> RequestView | None:
    """The request whose row in ``journal`` is ``number``, with its end if it has ended; None if that row asks
    nothing. Raises `JournalError`."""
    row = journal.row(number)
    if row is None or row.zone != "request" or row.version != 1:
        return None
    return RequestView(row, find_request_end(journal, PeopleReader(journal), row.path))


def read_request(journal: Journal, asked: RequestView) -> RequestDetails:
    """Return all about the request ``asked``, as ``journal`` stands. Raise `JournalDamaged` if the question
    or the answer cannot be read; `JournalError`."""
    request = parse_request(journal.content(asked.row.seq) or "")
    proposals = tuple(
        proposal(journal, asked.agent, call.name, parse_arguments(call.arguments)) for call in request.calls
    )
    is_answered = asked.ended is not None and asked.ended.tool == ANSWER
    text = journal.content(asked.ended.seq) if asked.ended is not None and is_answered else None
    outdated = frozenset() if asked.ended else frozenset(_outdated(journal, asked.agent, request))
    return RequestDetails(asked, request, proposals, parse_answer(text) if text else None, outdated)


def begin_reviews(details: RequestDetails) -> dict[str, Review]:
    """A review, in which all is taken, of each call of ``details`` that would change a text, by its id."""
    reviews = {}
    for call, would in zip(details.request.calls, details.proposals, strict=True):
        hunks = diff_lines(would.before, would.after) if would is not None else []
        if would is not None and hunks:
            reviews[call.id] = Review(would.before, would.after, tuple(hunks))
    return reviews


def _outdated(journal: Journal, agent: str, request: Request) -> Iterator[str]:
    # The toolbox needs pydantic, slow to load.
    from watchroom.toolbox.approval import approval_checksum

    for call in request.calls:
        arguments = parse_arguments(call.arguments)
        if call.checksum and call.checksum != approval_checksum(journal, agent, call.name, arguments):
            yield call.id
