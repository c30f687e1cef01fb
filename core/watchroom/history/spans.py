"""The work of agents as spans, following OpenTelemetry's semantic conventions for GenAI 0.1.0.

A turn of a session is ``invoke_agent``. Within it, an answer of the model is ``chat``, and a call is
``execute_tool``. Spans and their ids are computed from rows alone. Reading the journal again gives the same
spans, so a receiver can drop duplicates. Only finished work becomes a span.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, TypeAlias

from watchroom.features.budgets.rows import UsageRecord, parent_of, usage_of
from watchroom.features.sessions.reads import MAX_TEXT, StepContent, call_error, parse_step
from watchroom.features.tasks.rows import is_spawn
from watchroom.kernel.journal import Journal
from watchroom.kernel.reads import find_content
from watchroom.kernel.rules.details import StepDetail
from watchroom.kernel.rules.trace_context import TracedCall, traced_call
from watchroom.model import CALL, ENDED, Json, Row, SessionStatus
from watchroom.validation import escape_unstorable

SpanKind: TypeAlias = Literal["internal", "client", "server"]
SpanValue: TypeAlias = str | int | float | tuple[str, ...]

MAX_MESSAGES: Final = 100_000
"""Maximum characters of the newest messages in a chat span."""
_TRACE_BYTES: Final = 16
_SPAN_BYTES: Final = 8
_MAX_NAME: Final = 200
_MAX_NUMBER: Final = 2**63 - 1
"""The largest number that can be sent, because numbers have 64 bits."""
_MAX_KEPT_MESSAGES: Final = 100
"""Maximum number of newest messages that are kept until the next answer."""
_MAX_CALLS: Final = 1000
"""Maximum number of unfinished calls that are kept for a session."""
_MCP_CALL: Final = "tools/call"
"""The MCP method of a remote call."""
_SPAWNING: Final = frozenset({"Agent", "Task", "spawn_agent"})
"""The names of clients' tools that start a subagent."""


class SpanRecord(NamedTuple):
    """A finished span.

    - ``trace_id``, ``span_id``, ``parent_id``: ids in hex; the parent is empty for the first span of a trace.
    - ``start``, ``end``: nanoseconds since the epoch.
    - ``row``: the row that finished it.
    - ``error``: the code of the error, empty on success.
    - ``links``: ids of earlier spans of the trace.
    - ``is_parent_remote``: whether the parent is a span of the caller.
    """

    name: str
    kind: SpanKind
    trace_id: str
    span_id: str
    parent_id: str
    start: int
    end: int
    attributes: Mapping[str, SpanValue]
    row: int
    error: str = ""
    links: tuple[str, ...] = ()
    is_parent_remote: bool = False


def traced_span(row: Row, call: TracedCall) -> SpanRecord:
    """Return the span of a remote ``call`` whose first row is ``row``."""
    attributes: dict[str, SpanValue] = {
        **agent_attributes("execute_tool", row.actor),
        "gen_ai.tool.name": bound_name(row.tool),
        "gen_ai.tool.type": "function",
        "mcp.method.name": _MCP_CALL,
    }
    error = "" if row.outcome == "ok" else row.error or row.outcome
    return SpanRecord(
        span_name(_MCP_CALL, row.tool),
        "server",
        call.parent.trace_id,
        traced_span_id(row),
        call.parent.span_id,
        call.began,
        row.time,
        freeze_attributes(attributes, row, error),
        row.seq,
        error,
        is_parent_remote=True,
    )


def traced_span_id(row: Row) -> str:
    """Return the span id of a remote call whose first row is ``row``."""
    return hash_id(_SPAN_BYTES, row.time, row.seq, row.actor, row.tool, row.detail_json)


def agent_attributes(operation: str, agent: str) -> dict[str, SpanValue]:
    """Return the attributes for an ``operation`` of ``agent`` (its id)."""
    return {"gen_ai.operation.name": operation, "gen_ai.agent.name": bound_name(agent)}


def usage_attributes(used: UsageRecord) -> dict[str, SpanValue]:
    """Return the attributes for the usage ``used``."""
    usage = used.usage
    counts = {
        # The conventions count cached tokens as input.
        "gen_ai.usage.input_tokens": usage.input + usage.cache_read + usage.cache_write,
        "gen_ai.usage.output_tokens": usage.output,
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read or None,
        "gen_ai.usage.cache_write.input_tokens": usage.cache_write or None,
    }
    attributes: dict[str, SpanValue] = {
        name: min(count, _MAX_NUMBER) for name, count in counts.items() if count is not None
    }
    if usage.priced_by and not usage.unpriced and isfinite(usage.cost):
        attributes["watchroom.usage.cost"] = usage.cost
    return attributes


def freeze_attributes(attributes: Mapping[str, SpanValue], row: Row, error: str) -> Mapping[str, SpanValue]:
    """Return ``attributes`` without empty values, together with the ``row`` that finished the span and its
    ``error``."""
    kept = {name: value for name, value in attributes.items() if value not in ("", ())}
    if error:
        kept["error.type"] = error
    return MappingProxyType({**kept, "watchroom.row": row.seq})


def span_name(operation: str, subject: str) -> str:
    """Return the name of a span: its ``operation``, and its ``subject`` if known."""
    return f"{operation} {bound_name(subject)}".rstrip()


def bound_name(text: str) -> str:
    """Return the first characters of the name ``text``, in the form in which it is sent."""
    return escape_unstorable(text, _MAX_NAME)


def encode_messages(messages: Sequence[Mapping[str, Json]]) -> str:
    """Return the newest of ``messages`` as a JSON list, empty if there are no messages."""
    kept: list[str] = []
    size = 0
    for message in reversed(messages):
        kept.append(json.dumps(message, ensure_ascii=False))
        size += len(kept[-1])
        if size > MAX_MESSAGES:
            kept.pop()
            break
    return f"[{', '.join(reversed(kept))}]" if kept else ""


def hash_id(size: int, *parts: Json) -> str:
    """Return an id of ``size`` bytes in hex. It depends only on ``parts``."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[: 2 * size]


class _Place(NamedTuple):
    """The trace and the parent of spans."""

    trace_id: str
    parent_id: str = ""


@dataclass
class _Call:
    """An unfinished call."""

    span_id: str
    tool: str
    arguments: str
    start: int
    has_subagent: bool = False


@dataclass
class _Session:
    """The state of a session that its next spans need.

    - ``asked``: the time of the model's last input.
    - ``began``: the start of a client's answer whose usage is still unknown.
    - ``answered``: the time of the newest text in that answer.
    """

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
    """Computes spans from rows. Rows must be applied in order from the first row.

    - ``content``: returns the content of a row by its number.
    - ``providers``: the providers of models by client.
    - ``with_content``: whether to include prompts and answers. If False, spans contain no text of agents.
    """

    def __init__(
        self,
        content: Callable[[int], str | None],
        *,
        with_content: bool = False,
        providers: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._content = content
        self._providers = providers
        self._with_content = with_content
        self._workspace = ""
        self._sessions: dict[str, _Session] = {}
        self._spawned: dict[str, _Place] = {}
        """For each agent, the call that spawned it."""

    def apply(self, row: Row) -> tuple[SpanRecord, ...]:
        """Apply ``row``. Return the spans that it finishes, in order. Raise the errors of ``content``."""
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
        """Return the session's call that wrote ``row``."""
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
            place=place or _Place(hash_id(_TRACE_BYTES, self._workspace, row.path)),
            client=client if isinstance(client, str) else "",
            model=step.session_model,
            turn_id=hash_id(_SPAN_BYTES, self._workspace, row.path, row.seq),
            turn_start=row.time,
            last=row.time,
            asked=row.time,
        )
        self._sessions[row.path] = session
        return session

    def _place_of_subagent(self, parent: str) -> _Place | None:
        """Return the place for a subagent of the session ``parent``.

        It is below the first unfinished spawning call without a subagent, else below the turn.
        """
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
        """Begin a new turn of an ended session. The span of the earlier turn may already have been sent, so
        it does not change."""
        session.links = (session.turn_id,)
        session.turn_id = hash_id(_SPAN_BYTES, self._workspace, row.path, row.seq)
        session.turn_start = session.asked = session.last = row.time
        session.is_over = False

    def _open_calls(self, session: _Session, row: Row, step: StepContent) -> None:
        for call in step.calls:
            id_ = hash_id(_SPAN_BYTES, self._workspace, row.path, row.seq, call.id)
            session.calls[call.id] = _Call(id_, call.tool, call.arguments, row.time)
            if len(session.calls) > _MAX_CALLS:
                del session.calls[next(iter(session.calls))]
        if step.calls:
            session.newest_calls = tuple(call.id for call in step.calls)

    def _keep_messages(self, session: _Session, step: StepContent) -> None:
        if self._with_content:
            session.given = [*session.given, *step.given][-_MAX_KEPT_MESSAGES:]
            session.said = [*session.said, *step.said][-_MAX_KEPT_MESSAGES:]

    def _finish_call(self, session: _Session, row: Row, id_: str, result: str, start: int) -> SpanRecord:
        call = session.calls.pop(id_, None)
        if call is None:
            # The tool is unknown, because the agent made the call without a model.
            call = _Call(hash_id(_SPAN_BYTES, self._workspace, row.path, row.seq, id_), "", "", start)
        named: dict[str, SpanValue] = {
            "gen_ai.tool.name": bound_name(call.tool),
            "gen_ai.tool.call.id": bound_name(id_),
            "gen_ai.tool.type": "function",
        }
        if self._with_content:
            named |= {
                "gen_ai.tool.call.arguments": escape_unstorable(call.arguments, MAX_TEXT),
                "gen_ai.tool.call.result": escape_unstorable(result, MAX_TEXT),
            }
        return _span(
            session,
            row,
            "execute_tool",
            call.tool,
            call.span_id,
            session.turn_id,
            # A client reports the start of a call. Our runtime reports the duration of its step.
            call.start if session.client else start,
            row.time,
            named,
            error=call_error(result),
        )

    def _finish_unmeasured(self, session: _Session, row: Row) -> Iterator[SpanRecord]:
        """Yield the span of a client's answer without usage. The client may report the usage after the end of
        the turn, when it reads its transcript."""
        if session.answered is not None:
            yield self._finish_chat(session, row, StepContent(), None, session.asked)
        session.began = None

    def _finish_chat(
        self, session: _Session, row: Row, step: StepContent, used: UsageRecord | None, start: int
    ) -> SpanRecord:
        """Return the span of an answer. It began at ``start``, unless the client reported its start."""
        if session.client:
            start = session.asked if session.began is None else session.began
        end = row.time if session.answered is None else session.answered
        asked = step.requested_model or session.model
        answered = used.model if used is not None else ""
        named: dict[str, SpanValue] = {
            "gen_ai.provider.name": self._providers.get(session.client, ""),
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
        span_id = hash_id(_SPAN_BYTES, self._workspace, row.path, row.seq, "chat")
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
    """Reads the spans of ``journal`` that were not finished at row ``since``.

    ``with_content``, ``providers``: see `SpanProjection`. Each call of `read` continues after the last call.
    """

    def __init__(
        self,
        journal: Journal,
        *,
        since: int = 0,
        with_content: bool = False,
        providers: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._journal = journal
        self._since = since

        def content(number: int) -> str | None:
            return find_content(journal, number)

        self._projection = SpanProjection(content, with_content=with_content, providers=providers)
        self.row = 0
        """The last row that was read."""

    def read(self) -> Iterator[SpanRecord]:
        """Yield the newly finished spans, in order. Raise `JournalError`."""
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
