"""The session of an agent whose client is a program of its own: what happens there, as rows.

The rows are those of every session, so that the dashboard, needs and replay know no difference. A row is
made from the newest one alone, so any process may write the next: the one that runs the client, the server
that the client has started, or a hook.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from typing import Final
from uuid import uuid4

from pydantic import JsonValue

from watchroom import validation
from watchroom.clients.client_traces import describe_process
from watchroom.clients.events import (
    BudgetHeld,
    CallFinished,
    CallStarted,
    ClientEvent,
    ClientInfo,
    ClientPaused,
    MessageCompleted,
    PlanUpdated,
    PromptSubmitted,
    SessionEnded,
    TextStreamed,
    TurnEnded,
    TurnFailed,
    UsageTold,
)
from watchroom.clients.stopping import find_process
from watchroom.errors import SessionExists, SessionTaken
from watchroom.model import (
    CLIENT_CALL,
    CLIENT_DENIED,
    CONTINUE,
    ENDED,
    PRESENCE,
    Json,
    Row,
    SessionStatus,
    timestamp,
)
from watchroom.rules.client_calls import CALL, ClientCall, call_detail, describe_client_call
from watchroom.rules.details import StepDetail
from watchroom.rules.presence import UNSUPERVISED, presence_of
from watchroom.rules.requests import Answer, PendingCall, Request, describe_call
from watchroom.rules.usage import PARENT, USED, UsageRecord, usage_detail
from watchroom.runtime.events import (
    Cancelled,
    ErrorInfo,
    Failed,
    HumanAnswered,
    HumanApproveRequired,
    HumanPromptRequired,
    HumanSelectRequired,
    LlmAnswer,
    LlmResult,
    Paused,
    PlanChanged,
    PlanEntry,
    Resumed,
    Thought,
    ToolResult,
    UsageReported,
)
from watchroom.runtime.messages import AssistantMessage, Function, Message, ToolCall, ToolMessage, UserMessage
from watchroom.runtime.prices import price_usage, usage_from
from watchroom.runtime.state import AgentState, Done, Event, Spent, StepResult, create_initial_state
from watchroom.runtime.step_encoding import encode_initial_state, encode_step
from watchroom.runtime.step_summary import step_detail, summarize_step
from watchroom.workspace import Workspace
from watchroom.zones.sessions import HEARD_IN_SESSION, heard_in_session, heard_until, session_path

TOOL: Final = "client_event"
"""The tool of the rows of such a session, except for those with which calls end."""
_FOLDER: Final = "cwd"
"""In the detail of the first row."""
_TRIES: Final = 100
"""So often another process may be first before a row is given up."""
_LOOKED_THROUGH: Final = 100
"""So many steps at most are looked through for the session's end."""
_MAX_ID: Final = 80
"""Characters of a call's id in the path of a question about it."""
_LONGEST_TEXT: Final = 1_000_000
"""Characters of one message, call or result that are kept."""
_MAX_OPEN_CALLS: Final = 100
"""Calls without a result that are remembered, so that the line of a result can name its call."""


class ClientSession:
    """The session ``session_id`` of the registered ``agent`` in ``workspace``, which ``info`` runs: begun
    where it does not exist, else continued. ``parent`` is the path of the session whose subagent it is.
    ``is_owner``: this process goes on with the session; else the one does that took the newest step.

    Every method may be called from any thread, but from one at a time. Raises `UnknownAgent`,
    `InvalidSession`, `JournalError`.
    """

    def __init__(
        self,
        workspace: Workspace,
        agent: str,
        session_id: str,
        info: ClientInfo,
        *,
        parent: str = "",
        is_owner: bool = True,
    ) -> None:
        self.agent = agent
        self.info = info
        self.path = session_path(agent, validation.check_session_id(session_id))
        self._workspace = workspace
        self._zone = workspace.session_zone
        self._requests = workspace.requests
        self._journal = workspace.journal
        self.parent = parent
        self.budgeted = parent or self.path
        """The path of the session whose budget it uses: a subagent uses its parent's."""
        self.is_supervised = True
        self._is_owner = is_owner
        self._calls: dict[str, ToolCall] = {}
        self.ended_at = 0
        """When the session ended before this process went on with it, in nanoseconds; 0 where it had not."""
        self._heard = self._zone.handed_over_until(agent)
        self._begin(session_id)

    def _begin(self, session_id: str) -> None:
        newest = self._zone.newest(self.path)
        process: dict[str, Json] = {"attachment": self.info.attachment}
        if self.info.pid:
            process |= describe_process(self._workspace.platform, self.info.pid, self.info.started)
        if newest is not None:
            if self._is_owner:
                self.ended_at = self._find_end(newest)
                self._zone.record_takeover(newest, process)
            elif self.info.pid and not self.parent:
                self._note_process(newest, process)
            return
        metadata: dict[str, JsonValue] = {
            name: value for name, value in self.info._asdict().items() if value not in ("", 0)
        }
        state = create_initial_state(session_id=session_id, metadata=metadata, now=self._zone.now())
        about: dict[str, Json] = {"client": self.info.client, _FOLDER: self.info.cwd, **process}
        detail = {**step_detail(state, last_processed=self._heard), **about}
        try:
            self._zone.begin(
                self.agent, session_id, encode_initial_state(state), "", self._with_parent(detail)
            )
        except SessionExists:
            # A hook of the same client was quicker.
            return

    def _note_process(self, newest: Row, process: dict[str, Json]) -> None:
        """Say which process goes on with the session, if rows name another one: that of a client that has
        ended says nothing of the one that resumed its session."""
        known = find_process(self._workspace, self.path)
        if known is None or (known.pid, known.started) != (self.info.pid, self.info.started):
            detail = {**process, PRESENCE: presence_of(newest)}
            self._zone.note(self.agent, CONTINUE, self.path, "", detail, base=newest.version)

    def _find_end(self, newest: Row) -> int:
        """When the session ended last, as far as that is not long ago: hooks may have gone on since."""
        after = max(0, (newest.version or 0) - _LOOKED_THROUGH)
        steps = self._journal.history("session", self.path, after_version=after)
        return max((row.time for row in steps if StepDetail.of(row).status in ENDED), default=0)

    @cached_property
    def folder(self) -> str:
        """The folder in which the client began the session, empty where that is not known."""
        begun = self._journal.version("session", self.path, 1)
        folder = begun.detail.get(_FOLDER) if begun is not None else None
        return folder if isinstance(folder, str) else ""

    @property
    def last(self) -> Row:
        """The newest step. Raises `SessionTaken` if the session is gone, which cannot be."""
        newest = self._zone.newest(self.path)
        if newest is None:
            raise SessionTaken(session=self.path)
        return newest

    @property
    def status(self) -> SessionStatus:
        """How the session stands by its newest step."""
        return StepDetail.of(self.last).status

    @property
    def call_count(self) -> int:
        """How many calls have ended in the session."""
        return StepDetail.of(self.last).calls

    def record(self, event: ClientEvent) -> Row | None:
        """Make a row of ``event``; returns it, None for streamed text, whose row comes soon. Raises
        `SessionTaken` where too many others write at once, `JournalError`."""
        if isinstance(event, TextStreamed):
            self._zone.record_stream(self.path, _bounded(event.text))
            return None
        if isinstance(event, PromptSubmitted):
            said = UserMessage(content=_bounded(event.text), author=event.author)
            return self._write((), (said,), "running", key=event.key, is_worked=False)
        if isinstance(event, MessageCompleted):
            return self._record_message(event)
        if isinstance(event, CallStarted):
            call = _tool_call(event.id, event.tool, event.arguments)
            self._calls[call.id] = call
            if len(self._calls) > _MAX_OPEN_CALLS:
                del self._calls[next(iter(self._calls))]
            return self._write((), (AssistantMessage(tool_calls=(call,)),), "running", key=f"call {event.id}")
        if isinstance(event, CallFinished):
            return self._record_result(event)
        if isinstance(event, PlanUpdated):
            entries = tuple(PlanEntry(text=_bounded(text), status=at) for text, at in event.entries)
            return self._write((PlanChanged(entries=entries),), ())
        if isinstance(event, UsageTold):
            used = price_usage(event.used, event.model)
            told = UsageReported(model=event.model, usage=usage_from(used, event.model))
            record = UsageRecord(event.model, used)
            return self._write((told,), (), used=record, key=event.key and f"usage {event.key}")
        if isinstance(event, ClientPaused):
            status: SessionStatus = "paused" if event.is_paused else "running"
            change = Paused(by=event.by) if event.is_paused else Resumed(by=event.by)
            return self._write((change,), (), status)
        if isinstance(event, BudgetHeld):
            return self._write((), (), "waiting_for_human_input" if event.is_held else "running")
        if isinstance(event, TurnEnded):
            return self._write((), (), "idle", message=event.reason)
        return self._record_end(event)

    def _record_message(self, event: MessageCompleted) -> Row:
        priced = price_usage(event.used, event.model) if event.used is not None else None
        usage = usage_from(priced, event.model) if priced is not None else None
        text = _bounded(event.text)
        thoughts = (Thought(text=_bounded(event.thought)),) if event.thought.strip() else ()
        result = LlmResult(result=LlmAnswer(content=text), usage=usage)
        used = UsageRecord(event.model, priced) if priced is not None else None
        messages = (AssistantMessage(content=text),) if text.strip() else ()
        # It may be told late: after the turn has ended, or while a person is asked.
        return self._write((*thoughts, result), messages, used=used, key=event.key)

    def _record_result(self, event: CallFinished) -> Row:
        content = event.result
        if event.is_error:
            code = event.refusal or "failed"
            content = json.dumps(
                {"success": False, "error": code, "message": event.result}, ensure_ascii=False
            )
        content = _bounded(content)
        done = ToolResult(id=event.id, result=content)
        said = ToolMessage(tool_call_id=event.id, content=content)
        # Another call may wait meanwhile.
        row = self._write((done,), (said,), key=f"result {event.id}", calls=1, ended=self._describe(event))
        self._calls.pop(event.id, None)
        return row

    def _describe(self, event: CallFinished) -> ClientCall | None:
        """The call that ended, for those who do not read the content of its row; None if no tool is known, or
        one of ours."""
        tool, arguments = event.tool, event.arguments
        known = self._calls.get(event.id)
        if not tool and known is not None:
            tool, arguments = known.function.name, known.function.arguments
        return describe_client_call(
            tool,
            arguments,
            folder=self.folder,
            cwd=event.cwd,
            outcome="denied" if event.refusal else "failed" if event.is_error else "ok",
            error=event.refusal,
            reason=event.result if event.is_error else "",
        )

    def _record_end(self, event: SessionEnded | TurnFailed) -> Row:
        if isinstance(event, TurnFailed):
            return self._record_failure("turn_failed", event.reason)
        if event.outcome == "error":
            return self._record_failure("client_failed", event.reason)
        reason = validation.escape_unstorable(event.reason, 500)
        # An attached client reports no end of a turn that its user interrupts.
        is_worked = self.info.attachment == "run"
        if event.outcome == "cancelled":
            return self._write((Cancelled(reason=reason),), (), "cancelled", is_worked=is_worked)
        done = Done.model_construct(type="done", reason=reason)
        return self._write((done,), (), "done", message=reason, is_worked=is_worked)

    def _record_failure(self, code: str, reason: str) -> Row:
        error = ErrorInfo(code=code, message=validation.escape_unstorable(reason, 500))
        return self._write((Failed(error=error),), (), "error", error=error)

    def ask(self, call_id: str, request: Request) -> str:
        """Ask people ``request``, which is about the call ``call_id``, and say that the session waits.
        Returns the path of the request; asked again, it is the same one. Raises `JournalError`."""
        path = self.request_path(call_id)
        self._requests.ask(self.agent, path, request)
        calls = tuple(_tool_call(each.id, each.name, each.arguments) for each in request.calls)
        asked: Event
        if request.kind == "approve":
            asked = HumanApproveRequired(pending_tools_calling=calls, session_id=self.path)
        elif request.kind == "select":
            asked = HumanSelectRequired(
                prompt=request.prompt, options=request.options, multi=request.multi, session_id=self.path
            )
        else:
            asked = HumanPromptRequired(prompt=request.prompt, session_id=self.path)
        self._write((asked,), (), "waiting_for_human_input", key=f"ask {path}")
        return path

    def find_request_id(self, call_id: str, request: Request) -> str:
        """Return an id for ``request``, which is about the call ``call_id``, that no other question of the
        session has. Clients and models may use the id of a call again: what was answered then says nothing
        of this call."""
        own = call_id
        while (asked := self._journal.version("request", self.request_path(own), 1)) is not None and (
            self._requests.ended(asked.path) is not None or self._requests.read(asked).calls != request.calls
        ):
            own = f"{call_id[:_MAX_ID]}-{uuid4().hex[:12]}"
        return own

    def request_path(self, call_id: str) -> str:
        """The path of the request about the call ``call_id``."""
        return f"{self.path}/{validation.escape_unstorable(call_id, 100).replace('/', '_')}"

    def record_answer(self, path: str, answer: Answer, by: str) -> Row:
        """Say that the request at ``path`` was answered with ``answer`` by ``by``, and that the session goes
        on. Raises `JournalError`."""
        return self._write((HumanAnswered(answer=answer, by=by),), (), "running", key=f"answer {path}")

    def record_unsupervised(self) -> None:
        """Say that the client does something of which no hook tells. Raises `JournalError`."""
        if self.is_supervised:
            self.is_supervised = False
            self._write((), ())

    def record_withdrawal(self, path: str) -> Row:
        """Say that nobody needs to answer the request at ``path`` any more. Raises `JournalError`."""
        return self._write((), (), "running", key=f"answer {path}")

    def _write(
        self,
        events: Sequence[Event],
        messages: Sequence[Message],
        status: SessionStatus | None = None,
        *,
        used: UsageRecord | None = None,
        calls: int = 0,
        error: ErrorInfo | None = None,
        message: str = "",
        key: str = "",
        ended: ClientCall | None = None,
        is_worked: bool = True,
    ) -> Row:
        """The next step, of the same ``status`` as the one before where none is given; a session that begins
        amid a turn runs. ``ended``: the call of the client's own tool that ends with it. ``is_worked``: the
        time since the step before counts if the session was running."""
        tool = TOOL if ended is None else CLIENT_DENIED if ended.outcome == "denied" else CLIENT_CALL
        for attempt in range(_TRIES):
            last = self.last
            before = _state_of(self.path, last)
            begun = "running" if messages and not before.step_count else before.status
            now = self._zone.now()
            # A subagent works within a turn of its parent.
            is_turn = is_worked and before.status == "running" and not self.parent
            seconds = (now - last.time) / 1e9 if is_turn else 0.0
            after = before.with_changes(
                status=status or begun,
                events=(*before.events, *events),
                messages=tuple(messages),
                step_count=before.step_count + 1,
                spent=_charged(before.spent, used, calls, seconds),
                error=error,
                last_modified=timestamp(now),
            )
            result = StepResult(events=tuple(events), new_state=after)
            line = (
                message
                or _summary_of(ended)
                or summarize_step(_with_calls(before, self._calls), result)
                or _said_in(messages)
            )
            heard = max(self._heard, heard_until(last))
            detail = self._with_parent(step_detail(after, last_processed=heard))
            if in_session := heard_in_session(last):
                detail[HEARD_IN_SESSION] = in_session
            if ended is not None:
                detail[CALL] = call_detail(ended)
            if used is not None:
                detail[USED] = usage_detail(used)
            if after.status == "error" and error is None:
                detail["error"] = StepDetail.of(last).error
            if not self.is_supervised:
                detail[UNSUPERVISED] = True
            if not self._is_owner:
                detail[PRESENCE] = presence_of(last)
            try:
                return self._zone.step(
                    self.path,
                    last.version or 0,
                    tool,
                    encode_step(before, after),
                    validation.escape_unstorable(line, 200),
                    detail,
                    key=_key_of(self.path, key, attempt),
                )
            except SessionTaken:
                continue
        raise SessionTaken(session=self.path)

    def _with_parent(self, detail: dict[str, Json]) -> dict[str, Json]:
        return {**detail, PARENT: self.parent} if self.parent else detail


def _key_of(path: str, key: str, attempt: int) -> str:
    """The key of a row. A row that was too late keeps its key, so a later attempt needs another one; told
    again, the attempts are the same."""
    if not key:
        return ""
    return f"{path} attempt-{attempt} {key}" if attempt else f"{path} {key}"


def _state_of(path: str, last: Row) -> AgentState:
    """As much of the state as the next row is made from."""
    detail = StepDetail.of(last)
    spent = Spent(
        input_tokens=detail.input_tokens,
        output_tokens=detail.output_tokens,
        cache_read_tokens=detail.cache_read,
        cache_write_tokens=detail.cache_write,
        estimated_tokens=detail.estimated_tokens,
        cost=detail.cost,
        unpriced_tokens=detail.unpriced,
        tool_calls=detail.calls,
        seconds=detail.seconds,
    )
    state = AgentState(
        session_id=path.partition("/")[2], status=detail.status, spent=spent, created_at="", last_modified=""
    )
    return state.with_changes(step_count=detail.steps)


def _with_calls(state: AgentState, calls: dict[str, ToolCall]) -> AgentState:
    return state.with_changes(approved_tools_calling=tuple(calls.values()))


def _summary_of(call: ClientCall | None) -> str:
    return f"{call.tool} {call.about}".strip() if call is not None else ""


def _said_in(messages: Sequence[Message]) -> str:
    for message in messages:
        if isinstance(message, UserMessage | AssistantMessage) and message.content.strip():
            return message.content.strip().split("\n", 1)[0]
        if isinstance(message, AssistantMessage) and message.tool_calls:
            function = message.tool_calls[0].function
            return describe_call(PendingCall("", function.name, function.arguments))
    return ""


def _charged(spent: Spent, used: UsageRecord | None, calls: int, seconds: float) -> Spent:
    counted = spent.model_copy(
        update={"tool_calls": spent.tool_calls + calls, "seconds": spent.seconds + max(0.0, seconds)}
    )
    return counted if used is None else counted.with_usage(used.usage)


def _tool_call(call_id: str, tool: str, arguments: str) -> ToolCall:
    name = validation.escape_unstorable(tool, 100)
    return ToolCall(id=call_id, function=Function(name=name, arguments=_bounded(arguments)))


def _bounded(text: str) -> str:
    """``text`` as the journal can keep it."""
    return validation.replace_lone_surrogates(text)[:_LONGEST_TEXT]
