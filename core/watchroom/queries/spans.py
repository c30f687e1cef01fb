"""What agents did as spans, by the GenAI semantic conventions of OpenTelemetry: ``invoke_agent`` for a turn
of a session, within it ``chat`` for an answer of its model and ``execute_tool`` for a call.

Spans follow from rows alone, and so do their ids: whoever reads the journal again gives the same spans, and
whoever receives them twice has them once. Nothing that goes on is a span yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from watchroom.call_context import CALL
from watchroom.journal import Journal
from watchroom.model import ENDED, Json, Row, SessionStatus
from watchroom.queries.rows import find_content
from watchroom.queries.span_records import (
    SPAN_BYTES,
    TRACE_BYTES,
    SpanRecord,
    SpanValue,
    agent_attributes,
    bound_name,
    encode_messages,
    freeze_attributes,
    hash_id,
    span_name,
    traced_span,
    traced_span_id,
    usage_attributes,
)
from watchroom.queries.step_content import LONGEST_TEXT, StepContent, call_error, parse_step
from watchroom.rules.details import StepDetail
from watchroom.rules.members import is_spawn
from watchroom.rules.trace_context import TracedCall, traced_call
from watchroom.rules.usage import UsageRecord, parent_of, usage_of
from watchroom.validation import escape_unstorable

_MOST_MESSAGES: Final = 100
"""So many messages are remembered between two answers, the newest, where texts are wanted."""
_MOST_CALLS: Final = 1000
"""So many calls of a session are remembered that have not ended."""
_SPAWNING: Final = frozenset({"Agent", "Task", "spawn_agent"})
"""What clients call the tools by which an agent has a subagent work."""


class _Place(NamedTuple):
    """Where spans stand: in which trace, below which span."""

    trace_id: str
    parent_id: str = ""


@dataclass
class _Call:
    """A call that has not ended."""

    span_id: str
    tool: str
    arguments: str
    start: int
    has_subagent: bool = False


@dataclass
class _Session:
    """As much of a session as its next spans need. ``asked`` is since when its model works. Of a client's
    answer whose usage is not known yet, ``began`` is since when the model worked on it, and ``answered`` when
    it last said something."""

    path: str
    place: _Place
    client: str
    model: str
    turn_id: str
    turn_start: int
    last: int
    asked: int
    began: int | None = None
    answered: int | None = None
    links: tuple[str, ...] = ()
    is_over: bool = False
    seconds: float = 0.0
    calls: dict[str, _Call] = field(default_factory=dict)
    newest_calls: tuple[str, ...] = ()
    given: list[Mapping[str, Json]] = field(default_factory=list)
    said: list[Mapping[str, Json]] = field(default_factory=list)

    @property
    def agent(self) -> str:
        return self.path.partition("/")[0]

    @property
    def in_turn(self) -> _Place:
        return _Place(self.place.trace_id, self.turn_id)


class SpanProjection:
    """Takes rows in order, from the first one of a journal; gives the spans that are over by each.
    ``content`` returns the content of a row by its number. ``with_content``: spans say what was asked and
    answered; else no text of an agent's is in them."""

    def __init__(self, content: Callable[[int], str | None], *, with_content: bool = False) -> None:
        self._content = content
        self._with_content = with_content
        self._workspace = ""
        self._sessions: dict[str, _Session] = {}
        self._spawned: dict[str, _Place] = {}
        """By agent, the call that spawned it."""

    def apply(self, row: Row) -> tuple[SpanRecord, ...]:
        """Take in ``row``; returns the spans that are over by it, in order. Raises as ``content``."""
        if not self._workspace:
            self._workspace = hash_id(32, row.time, row.actor, row.tool, row.zone, row.path, row.sha256)
        if row.zone == "session":
            is_step = row.version is not None and row.outcome == "ok"
            return tuple(self._apply_step(row)) if is_step else ()
        call = traced_call(row)
        if is_spawn(row):
            self._apply_spawn(row, call)
        return (traced_span(row, call),) if call is not None and call.parent.is_sampled else ()

    def _apply_spawn(self, row: Row, call: TracedCall | None) -> None:
        place = (
            _Place(call.parent.trace_id, traced_span_id(row)) if call is not None else self._caller_of(row)
        )
        if place is not None:
            self._spawned[row.path] = place

    def _caller_of(self, row: Row) -> _Place | None:
        """The call of a session that made ``row``."""
        key = row.detail.get(CALL)
        parts = key.rsplit("/", 2) if isinstance(key, str) else []
        session = self._sessions.get(f"{row.actor}/{parts[0]}") if len(parts) == 3 else None
        if session is None:
            return None
        place = int(parts[2]) if parts[2].isdecimal() else -1
        known = session.newest_calls[place] if 0 <= place < len(session.newest_calls) else ""
        call = session.calls.get(known)
        return session.in_turn if call is None else _Place(session.place.trace_id, call.span_id)

    def _begin(self, row: Row, step: StepContent) -> _Session:
        agent = row.path.partition("/")[0]
        place = self._place_of_subagent(parent_of(row)) or self._spawned.get(agent)
        client = row.detail.get("client")
        session = _Session(
            path=row.path,
            place=place or _Place(hash_id(TRACE_BYTES, self._workspace, row.path)),
            client=client if isinstance(client, str) else "",
            model=step.session_model,
            turn_id=hash_id(SPAN_BYTES, self._workspace, row.path, row.seq),
            turn_start=row.time,
            last=row.time,
            asked=row.time,
        )
        self._sessions[row.path] = session
        return session

    def _place_of_subagent(self, parent: str) -> _Place | None:
        """Below the call that a subagent of the session ``parent`` comes from: the first of those that go on
        and have none yet, or where none is known, below the turn."""
        session = self._sessions.get(parent)
        if session is None:
            return None
        calling = (call for call in session.calls.values() if call.tool in _SPAWNING)
        call = next((call for call in calling if not call.has_subagent), None)
        if call is None:
            return session.in_turn
        call.has_subagent = True
        return _Place(session.place.trace_id, call.span_id)

    def _apply_step(self, row: Row) -> Iterator[SpanRecord]:
        detail, step = StepDetail.of(row), parse_step(self._content(row.seq) or "")
        session = self._sessions.get(row.path) or self._begin(row, step)
        if session.is_over and detail.status not in ENDED:
            self._begin_turn(session, row)
        worked = int(max(0.0, detail.seconds - session.seconds) * 1e9)
        start = max(session.last, row.time - worked)
        used = usage_of(row)
        is_answer = used is not None or (step.is_answer and not session.client)
        if step.is_prompt:
            yield from self._finish_unmeasured(session, row)
        self._keep_messages(session, step)
        for id_, result in step.results:
            yield self._finish_call(session, row, id_, result, start)
        if session.client and (step.is_answer or step.calls) and session.began is None:
            session.began = session.asked
        if is_answer:
            yield self._finish_chat(session, row, step, used, start)
        elif step.is_answer:
            session.answered = row.time
        if step.is_prompt or step.results:
            session.asked = row.time
        self._open_calls(session, row, step)
        if detail.status in ENDED:
            yield from self._finish_unmeasured(session, row)
        if detail.status in ENDED and not session.is_over:
            yield self._finish_turn(session, row, detail.status, detail.error)
        session.seconds, session.last = detail.seconds, row.time

    def _begin_turn(self, session: _Session, row: Row) -> None:
        """The session goes on after it had ended. What was sent of it is not sent again with another end: its
        new turn is a span of its own."""
        session.links = (session.turn_id,)
        session.turn_id = hash_id(SPAN_BYTES, self._workspace, row.path, row.seq)
        session.turn_start = session.asked = session.last = row.time
        session.is_over = False

    def _open_calls(self, session: _Session, row: Row, step: StepContent) -> None:
        for call in step.calls:
            id_ = hash_id(SPAN_BYTES, self._workspace, row.path, row.seq, call.id)
            session.calls[call.id] = _Call(id_, call.tool, call.arguments, row.time)
            if len(session.calls) > _MOST_CALLS:
                del session.calls[next(iter(session.calls))]
        if step.calls:
            session.newest_calls = tuple(call.id for call in step.calls)

    def _keep_messages(self, session: _Session, step: StepContent) -> None:
        if self._with_content:
            session.given = [*session.given, *step.given][-_MOST_MESSAGES:]
            session.said = [*session.said, *step.said][-_MOST_MESSAGES:]

    def _finish_call(self, session: _Session, row: Row, id_: str, result: str, start: int) -> SpanRecord:
        call = session.calls.pop(id_, None)
        if call is None:
            # Nobody has said which tool it is: the agent decided so by itself, without a model.
            call = _Call(hash_id(SPAN_BYTES, self._workspace, row.path, row.seq, id_), "", "", start)
        named: dict[str, SpanValue] = {
            "gen_ai.tool.name": bound_name(call.tool),
            "gen_ai.tool.call.id": bound_name(id_),
            "gen_ai.tool.type": "function",
        }
        if self._with_content:
            named |= {
                "gen_ai.tool.call.arguments": escape_unstorable(call.arguments, LONGEST_TEXT),
                "gen_ai.tool.call.result": escape_unstorable(result, LONGEST_TEXT),
            }
        return _span(
            session,
            row,
            "execute_tool",
            call.tool,
            call.span_id,
            session.turn_id,
            # A client says when a call begins; our own runtime how long its step took.
            call.start if session.client else start,
            row.time,
            named,
            error=call_error(result),
        )

    def _finish_unmeasured(self, session: _Session, row: Row) -> Iterator[SpanRecord]:
        """The span of what a client's model said where the client has not told by now what that used: what it
        reads from a transcript may come after the turn has ended."""
        if session.answered is not None:
            yield self._finish_chat(session, row, StepContent(), None, session.asked)
        session.began = None

    def _finish_chat(
        self, session: _Session, row: Row, step: StepContent, used: UsageRecord | None, start: int
    ) -> SpanRecord:
        """The span of an answer, which began at ``start`` unless its client has shown since when."""
        if session.client:
            start = session.asked if session.began is None else session.began
        end = row.time if session.answered is None else session.answered
        asked = step.requested_model or session.model
        answered = used.model if used is not None else ""
        named: dict[str, SpanValue] = {
            "gen_ai.request.model": bound_name(asked),
            "gen_ai.response.model": bound_name(answered),
            "gen_ai.response.finish_reasons": (step.finish_reason,) if step.finish_reason else (),
        }
        if used is not None:
            named |= usage_attributes(used)
        if self._with_content:
            named |= {
                "gen_ai.input.messages": encode_messages(session.given),
                "gen_ai.output.messages": encode_messages(session.said),
            }
        session.given, session.said = [], []
        session.began, session.answered, session.asked = None, None, max(session.asked, end)
        span_id = hash_id(SPAN_BYTES, self._workspace, row.path, row.seq, "chat")
        model = asked or answered
        return _span(
            session, row, "chat", model, span_id, session.turn_id, start, end, named, error=step.error
        )

    def _finish_turn(self, session: _Session, row: Row, status: SessionStatus, error: str) -> SpanRecord:
        session.is_over = True
        session.calls.clear()
        named: dict[str, SpanValue] = {
            "gen_ai.request.model": bound_name(session.model),
            "watchroom.client": bound_name(session.client),
            "watchroom.session.status": status,
        }
        return _span(
            session,
            row,
            "invoke_agent",
            session.agent,
            session.turn_id,
            session.place.parent_id,
            session.turn_start,
            row.time,
            named,
            error=(error or status) if status == "error" else "",
        )._replace(links=session.links)


class SpanReader:
    """Reads the spans of ``journal`` that were not over yet at row ``since``. ``with_content``: as of
    `SpanProjection`. Each reading goes on where the last one ended."""

    def __init__(self, journal: Journal, *, since: int = 0, with_content: bool = False) -> None:
        self._journal = journal
        self._since = since

        def content(number: int) -> str | None:
            return find_content(journal, number)

        self._projection = SpanProjection(content, with_content=with_content)
        self.row = 0
        """The newest row that was read."""

    def read(self) -> Iterator[SpanRecord]:
        """The spans that are over by now, in the order in which they were. Raises `JournalError`."""
        while rows := self._journal.rows(self.row):
            for row in rows:
                spans = self._projection.apply(row)
                self.row = row.seq
                if row.seq > self._since:
                    yield from spans


def _span(
    session: _Session,
    row: Row,
    operation: str,
    subject: str,
    span_id: str,
    parent_id: str,
    start: int,
    end: int,
    named: Mapping[str, SpanValue],
    *,
    error: str,
) -> SpanRecord:
    attributes = {
        **agent_attributes(operation, session.agent),
        "gen_ai.conversation.id": bound_name(session.path),
        **named,
    }
    return SpanRecord(
        span_name(operation, subject),
        "client" if operation == "chat" else "internal",
        session.place.trace_id,
        span_id,
        parent_id,
        min(start, end),
        end,
        freeze_attributes(attributes, row, error),
        row.seq,
        error,
    )
