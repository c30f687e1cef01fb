"""Writes the events of a client as the rows of a session.

The rows have the same form as in every session, so the dashboard, needs and replay need no special case. A
row depends only on the newest row. So any process may write the next row: the process that runs the client,
the service, or a hook.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Sequence
from dataclasses import asdict
from functools import cached_property
from typing import Final, TypeAlias
from uuid import uuid4

from watchroom import validation
from watchroom.agents.clients.client_traces import describe_process, find_process
from watchroom.agents.clients.events import (
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
    TurnLimited,
    UsageAdded,
)
from watchroom.errors import SessionExists, SessionTaken
from watchroom.features.budgets.rows import PARENT, SHARED_ID, USED, UsageRecord, usage_detail
from watchroom.features.requests.rows import Answer, PendingCall, Request, describe_call
from watchroom.features.sessions.rows import (
    CALL,
    PARKED,
    UNSUPERVISED,
    ClientCall,
    Parking,
    add_usage,
    call_detail,
    describe_client_call,
    encode_first_record,
    encode_record,
    format_step_detail,
    parking_detail,
    parking_of,
    presence_of,
    spent_record,
)
from watchroom.features.sessions.runtime.prices import price_usage
from watchroom.features.sessions.runtime.threads import run_in_thread, run_to_completion
from watchroom.features.sessions.runtime.waiting import wait_for_budgets
from watchroom.features.sessions.service import HEARD_IN_SESSION, heard_in_session, heard_until, session_path
from watchroom.kernel.call_context import CallContext
from watchroom.kernel.rules.append import KEY
from watchroom.kernel.rules.details import StepDetail, session_status
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
from watchroom.workspace import Workspace

TOOL: Final = "client_event"
"""The tool of the rows of a client's session, except rows that end a call."""
_FOLDER: Final = "cwd"
"""The field of the client's working folder, in the detail of the first row."""
_MAX_TRIES: Final = 100
"""Maximum attempts to write a row while other processes write to the same session."""
_MAX_STEPS_READ: Final = 100
"""Maximum number of steps that are searched for the end of the session."""
_MAX_CALL_STEPS: Final = 1000
"""Maximum number of steps that are searched for the beginning of a call."""
_MAX_CALL_ID: Final = 80
"""Maximum characters of a call's id in the path of a question about it."""
_MAX_KEY: Final = 256
"""Maximum characters of an event's key in the key of its row. A server indexes keys, and refuses long
keys."""
_MAX_TEXT: Final = 1_000_000
"""Maximum characters of a message, a call or a result."""
_MAX_OPEN_CALLS: Final = 100
"""Maximum number of unfinished calls that are kept, so that the row of a result can name its call."""
_MAX_SESSION_ID: Final = 64
_NOT_IN_ID: Final = re.compile(r"[^A-Za-z0-9_.-]", re.ASCII)
_Object: TypeAlias = dict[str, Json]
"""An event or a message, as in the content of a row."""


class ClientSession:
    """The session ``session_id`` of the registered ``agent`` in ``workspace``.

    The session is begun if it does not exist, else continued.

    - ``info``: the client that runs it
    - ``parent``: the path of the parent session if this is a subagent's session, else empty
    - ``is_owner``: whether this process continues the session; else the process that wrote the newest step
      does

    Every method may be called from any thread. Hooks of a client run at the same time. Raises `UnknownAgent`,
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
        """The path of the session whose budget is used. A subagent uses the budget of its parent."""
        self.is_supervised = True
        self._is_owner = is_owner
        self._calls: dict[str, PendingCall] = {}
        self._writing = threading.Lock()
        """Held while a step is written, so that steps of this process do not conflict with each other."""
        self.ended_at = 0
        """The time at which the session ended before this process continued it, in nanoseconds since the
        epoch; 0 if it had not ended."""
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
                if self._zone.record_takeover(newest, process):
                    return
            if self.info.pid and not self.parent:
                self._note_process(newest, process)
            return
        metadata: dict[str, Json] = {
            name: value for name, value in self.info._asdict().items() if value not in ("", 0)
        }
        content = encode_first_record(session_id, timestamp(self._zone.now()), metadata)
        about: dict[str, Json] = {"client": self.info.client, _FOLDER: self.info.cwd, **process}
        detail = {**format_step_detail(StepDetail("idle"), last_processed=self._heard), **about}
        try:
            self._zone.begin(self.agent, session_id, content, "", self._with_parent(detail))
        except SessionExists:
            # A hook of the same client was faster.
            return

    def _note_process(self, newest: Row, process: dict[str, Json]) -> None:
        """Record which process continues the session, if rows name another process. The session's client may
        have ended, and another client may have resumed it."""
        known = find_process(self._workspace, self.path)
        if known is None or (known.pid, known.started) != (self.info.pid, self.info.started):
            detail = {**process, PRESENCE: presence_of(newest)}
            self._zone.note(self.agent, CONTINUE, self.path, "", detail, base=newest.version)

    def _find_end(self, newest: Row) -> int:
        """Return the time of the session's last end, according to its newest steps. Hooks may have continued
        it since."""
        after = max(0, (newest.version or 0) - _MAX_STEPS_READ)
        steps = self._journal.history("session", self.path, after_version=after)
        return max((row.time for row in steps if StepDetail.of(row).status in ENDED), default=0)

    @cached_property
    def folder(self) -> str:
        """The folder in which the client began the session, empty if unknown."""
        begun = self._journal.version("session", self.path, 1)
        folder = begun.detail.get(_FOLDER) if begun is not None else None
        return folder if isinstance(folder, str) else ""

    @property
    def last(self) -> Row:
        """The newest step. Raise `SessionTaken` if the session does not exist."""
        newest = self._zone.newest(self.path)
        if newest is None:
            raise SessionTaken(session=self.path)
        return newest

    @property
    def status(self) -> SessionStatus:
        """The session's status according to its newest step."""
        return StepDetail.of(self.last).status

    @property
    def call_count(self) -> int:
        """The number of calls that have ended in the session."""
        return StepDetail.of(self.last).calls

    def is_call_reported(self, call: str) -> bool:
        """Return whether the beginning of ``call`` is among the newest steps. Raise `JournalError`."""
        keys = {_key_of(self.path, f"call {call}", attempt) for attempt in range(_MAX_TRIES)}
        after = max(0, (self.last.version or 0) - _MAX_CALL_STEPS)
        steps = self._journal.history("session", self.path, after_version=after)
        return any(row.detail.get(KEY) in keys for row in steps)

    def record(self, event: ClientEvent) -> Row | None:
        """Record ``event`` as a row. Return the row. None for streamed text, which is recorded later.

        Raise:
        - `SessionTaken`: too many other processes write to the session at the same time
        - `JournalError`
        """
        if isinstance(event, TextStreamed):
            self._zone.record_stream(self.path, _bounded(event.text))
            return None
        if isinstance(event, PromptSubmitted):
            text = _bounded(event.text)
            message: _Object = {"role": "user", "content": text, "author": event.author}
            return self._write((), (message,), "running", line=text, key=event.key, is_worked=False)
        if isinstance(event, MessageCompleted):
            return self._record_message(event)
        if isinstance(event, CallStarted):
            return self._record_call(event)
        if isinstance(event, CallFinished):
            return self._record_result(event)
        if isinstance(event, PlanUpdated):
            entries: list[Json] = [{"text": _bounded(text), "status": at} for text, at in event.entries]
            return self._write(({"type": "plan_changed", "entries": entries},))
        if isinstance(event, UsageAdded):
            used = UsageRecord(event.model, price_usage(event.used, event.model))
            change: _Object = {"type": "usage_reported", "model": event.model, "usage": _usage_object(used)}
            # A client that uses tokens again continued without Watchroom.
            status: SessionStatus | None = "running" if event.used.tokens and self._is_parked else None
            return self._write((change,), (), status, used=used, key=event.key and f"usage {event.key}")
        if isinstance(event, ClientPaused):
            kind = "paused" if event.is_paused else "resumed"
            return self._write(
                ({"type": kind, "by": event.by},), (), "paused" if event.is_paused else "running"
            )
        if isinstance(event, BudgetHeld):
            return self._write((), (), "waiting_for_human_input" if event.is_held else "running")
        if isinstance(event, TurnEnded):
            return self._record_turn_end(event)
        if isinstance(event, TurnLimited):
            return self._record_limit(event)
        return self._record_end(event)

    def _record_message(self, event: MessageCompleted) -> Row:
        used = None
        if event.used is not None:
            used = UsageRecord(event.model, price_usage(event.used, event.model))
        text = _bounded(event.text)
        events: list[_Object] = []
        if event.thought.strip():
            events.append({"type": "thought", "text": _bounded(event.thought)})
        usage = None if used is None else _usage_object(used)
        answer: _Object = {"content": text, "tool_calls": []}
        events.append({"type": "llm_result", "result": answer, "usage": usage, "finish_reason": None})
        messages = [_assistant_message(text)] if text.strip() else []
        # A message can be reported after its turn has ended, or while a person is being asked.
        return self._write(events, messages, line=text, used=used, key=event.key)

    def _record_call(self, event: CallStarted) -> Row:
        call = _pending_call(event.id, event.tool, event.arguments)
        self._calls[call.id] = call
        if len(self._calls) > _MAX_OPEN_CALLS:
            del self._calls[next(iter(self._calls))]
        message = _assistant_message("", call)
        return self._write((), (message,), "running", line=describe_call(call), key=f"call {event.id}")

    def _record_result(self, event: CallFinished) -> Row:
        content = event.result
        if event.is_error:
            code = event.refusal or "failed"
            content = json.dumps(
                {"success": False, "error": code, "message": event.result}, ensure_ascii=False
            )
        content = _bounded(content)
        ended, known = self._describe(event), self._calls.get(event.id)
        line = describe_call(known) if known is not None else ""
        if ended is not None:
            line = f"{ended.tool} {ended.about}".strip()
        # Another call may be waiting at the same time, so the status does not change.
        row = self._write(
            ({"type": "tool_result", "id": event.id, "result": content},),
            ({"role": "tool", "tool_call_id": event.id, "content": content},),
            line=line,
            key=f"result {event.id}",
            calls=1,
            ended=ended,
        )
        self._calls.pop(event.id, None)
        return row

    def _describe(self, event: CallFinished) -> ClientCall | None:
        """Return the ended call, for readers that do not parse the content of its row. None if the tool is
        unknown or belongs to Watchroom."""
        tool, arguments = event.tool, event.arguments
        known = self._calls.get(event.id)
        if not tool and known is not None:
            tool, arguments = known.name, known.arguments
        return describe_client_call(
            tool,
            arguments,
            folder=self.folder,
            cwd=event.cwd,
            outcome="denied" if event.refusal else "failed" if event.is_error else "ok",
            error=event.refusal,
            reason=event.result if event.is_error else "",
        )

    @property
    def _is_parked(self) -> bool:
        return parking_of(self.last) is not None

    def _record_turn_end(self, event: TurnEnded) -> Row | None:
        """Record the end of a turn. A turn that a limit ended stays parked."""
        return None if self._is_parked else self._write((), (), "idle", line=event.reason)

    def _record_limit(self, event: TurnLimited) -> Row | None:
        """Record that a limit parks the session. None if a person paused or ended the session, or if it is
        parked and ``event`` adds nothing."""
        last, limit = self.last, event.limit
        if self.parent:
            # The turn of the parent ends, too.
            return None
        known = parking_of(last)
        is_known = known is not None and (limit.resets is None or limit.resets == known.resets)
        if session_status(last) in (*ENDED, "paused") or (is_known and not event.held):
            return None
        change: _Object = {"type": "rate_limited", "text": limit.text}
        if limit.resets is not None:
            change["resets"] = timestamp(limit.resets)
        parking = Parking(0, limit.resets, limit.text, event.held)
        return self._write((change,), (), "parked", line=limit.text, key=event.key, parking=parking)

    def _record_end(self, event: SessionEnded | TurnFailed) -> Row:
        if isinstance(event, TurnFailed):
            return self._record_failure("turn_failed", event.reason)
        if event.outcome == "error":
            return self._record_failure("client_failed", event.reason)
        reason = validation.escape_unstorable(event.reason, 500)
        change: _Object = {"type": "done", "reason": reason}
        if event.outcome == "cancelled":
            change = {"type": "cancelled", "by": "", "reason": reason}
        # An attached client does not report the end of a turn that its user interrupts.
        is_worked = self.info.attachment == "run"
        return self._write((change,), (), event.outcome, line=reason, is_worked=is_worked)

    def _record_failure(self, code: str, reason: str) -> Row:
        message = validation.escape_unstorable(reason, 500)
        error: _Object = {"code": code, "message": message, "suggestion": ""}
        return self._write(({"type": "error", "error": error},), (), "error", line=message, error=error)

    def ask(self, call_id: str, request: Request) -> str:
        """Ask people to approve the call ``call_id`` with ``request``, and record that the session waits.
        Raise `TooManyRequests`, `JournalError`.

        Return the path of the request. Repeating the question returns the same request.
        """
        path = self.request_path(call_id)
        self._requests.ask(CallContext(self.agent), path, request)
        calls = [_call_object(_pending_call(each.id, each.name, each.arguments)) for each in request.calls]
        asked: _Object = {
            "type": "human_approve_required",
            "pending_tools_calling": calls,
            "session_id": self.path,
        }
        self._write((asked,), (), "waiting_for_human_input", key=f"ask {path}")
        return path

    def find_request_id(self, call_id: str, request: Request) -> str:
        """Return an id for ``request`` about ``call_id`` that no other question of the session has.

        Clients and models may reuse the id of a call, and an earlier answer must not apply to this call.
        """
        own = call_id
        while (asked := self._journal.version("request", self.request_path(own), 1)) is not None and (
            self._requests.ended(asked.path) is not None or self._requests.read(asked).calls != request.calls
        ):
            own = f"{call_id[:_MAX_CALL_ID]}-{uuid4().hex[:12]}"
        return own

    def request_path(self, call_id: str) -> str:
        """Return the path of the request about the call ``call_id``."""
        return f"{self.path}/{validation.escape_unstorable(call_id, 100).replace('/', '_')}"

    def record_answer(self, path: str, answer: Answer, by: str) -> Row:
        """Record that ``by`` answered the request at ``path`` with ``answer``. The session continues. Raise
        `JournalError`."""
        answered: _Object = {"type": "human_answered", "answer": asdict(answer), "by": by}
        line = answer.text or ", ".join(answer.values) or by
        return self._write((answered,), (), "running", line=line, key=f"answer {path}")

    def record_unsupervised(self) -> None:
        """Record that the client acts without its hooks. Raise `JournalError`."""
        if self.is_supervised:
            self.is_supervised = False
            self._write()

    def record_withdrawal(self, path: str) -> Row:
        """Record that the request at ``path`` no longer needs an answer. Raise `JournalError`."""
        return self._write((), (), "running", key=f"answer {path}")

    def _write(
        self,
        events: Sequence[_Object] = (),
        messages: Sequence[_Object] = (),
        status: SessionStatus | None = None,
        *,
        line: str = "",
        used: UsageRecord | None = None,
        calls: int = 0,
        error: _Object | None = None,
        key: str = "",
        ended: ClientCall | None = None,
        parking: Parking | None = None,
        is_worked: bool = True,
    ) -> Row:
        """Write the next step.

        - ``status``: the new status, None to keep it. A session whose first step is in the middle of a turn
          is running
        - ``line``: the row's message; only its first line is kept
        - ``used``, ``calls``: the step's additions to the session's counts
        - ``key``: only one row is written for each key; empty for no check
        - ``ended``: the call of a client's own tool that ends with the step
        - ``parking``: the limit that parks the session with the step
        - ``is_worked``: whether the time since the last step counts as work, if the session was running
        """
        tool = TOOL if ended is None else CLIENT_DENIED if ended.outcome == "denied" else CLIENT_CALL
        with self._writing:
            for attempt in range(_MAX_TRIES):
                last = self.last
                before, now = StepDetail.of(last), self._zone.now()
                begun: SessionStatus = "running" if messages and not before.steps else before.status
                # A subagent works within a turn of its parent.
                is_turn = is_worked and before.status == "running" and not self.parent
                seconds = max(0.0, (now - last.time) / 1e9) if is_turn else 0.0
                after = before._replace(
                    status=status or begun,
                    steps=before.steps + 1,
                    calls=before.calls + calls,
                    seconds=before.seconds + seconds,
                    read=None,
                )
                after = after if used is None else add_usage(after, used.usage)
                is_still_failed = error is None and after.status == "error"
                code = error["code"] if error is not None else before.error if is_still_failed else ""
                after = after._replace(error=str(code))
                try:
                    return self._zone.step(
                        self.path,
                        last.version or 0,
                        tool,
                        encode_record(events, messages, _changed_fields(before, after, error, now)),
                        validation.escape_unstorable(line.strip().split("\n", 1)[0], 200),
                        self._detail_of(after, last, used, ended, parking),
                        key=_key_of(self.path, key, attempt),
                    )
                except SessionTaken:
                    continue
        raise SessionTaken(session=self.path)

    def _detail_of(
        self,
        after: StepDetail,
        last: Row,
        used: UsageRecord | None,
        ended: ClientCall | None,
        parking: Parking | None,
    ) -> dict[str, Json]:
        """Return the detail of the step ``after``, which follows the row ``last``."""
        heard = max(self._heard, heard_until(last))
        detail = self._with_parent(format_step_detail(after, last_processed=heard))
        if in_session := heard_in_session(last):
            detail[HEARD_IN_SESSION] = in_session
        if ended is not None:
            detail[CALL] = call_detail(ended)
        if used is not None:
            detail[USED] = usage_detail(used)
        if after.status == "parked":
            new = None if parking is None else parking._replace(since=(last.version or 0) + 1)
            if (current := new or parking_of(last)) is not None:
                detail[PARKED] = parking_detail(current)
        if not self.is_supervised:
            detail[UNSUPERVISED] = True
        if not self._is_owner:
            detail[PRESENCE] = presence_of(last)
        return detail

    def _with_parent(self, detail: dict[str, Json]) -> dict[str, Json]:
        return {**detail, PARENT: self.parent} if self.parent else detail


async def hold_for_budgets(
    workspace: Workspace, agent: str, session: ClientSession | None, deadline: float | None = None
) -> bool:
    """Wait while a budget of ``agent`` or of its ``session`` is used up, until people decide.

    In the meantime, the session waits for a person. ``deadline``: see `wait_for_budgets`. Return whether
    people were asked. Raise `BudgetReached`, `JournalError`.
    """
    is_held = False

    async def hold() -> None:
        nonlocal is_held
        if session is not None:
            is_held = True
            await run_in_thread(session.record, BudgetHeld())

    try:
        return await wait_for_budgets(
            workspace.budgets,
            workspace.requests,
            workspace.background,
            agent,
            session.budgeted if session is not None else "",
            deadline=deadline,
            on_hold=hold,
        )
    finally:
        if session is not None and is_held:
            await run_to_completion(None, session.record, BudgetHeld(is_held=False))


def session_id_of(given: str) -> str:
    """Return a session id for ``given``, the client's name for a session. It is ``given`` itself if that is a
    valid id."""
    kept = _NOT_IN_ID.sub("-", given).lstrip("_.-")[:_MAX_SESSION_ID]
    return kept if kept == given else f"{kept[: _MAX_SESSION_ID - 9] or 'session'}-{fingerprint(given)[:8]}"


def subagent_id_of(parent: str, subagent: str) -> str:
    """Return a session id for ``subagent``, the client's name for a subagent. ``parent``: the id of the
    session that started it."""
    return session_id_of(f"{parent[:SHARED_ID]}.{subagent}")


def fingerprint(text: str) -> str:
    """Return a checksum of ``text`` without the whitespace around it, in hexadecimal digits."""
    return hashlib.sha256(json.dumps(text.strip()).encode()).hexdigest()


def _key_of(path: str, key: str, attempt: int) -> str:
    """Return the key of a row for this ``attempt`` to write it.

    Each attempt needs another key, because a row that was written too late keeps the key of its attempt. If a
    report is repeated, its attempts have the same keys as before.
    """
    if not key:
        return ""
    if len(key) > _MAX_KEY:
        key = f"sha256 {hashlib.sha256(key.encode(errors='surrogatepass')).hexdigest()}"
    return f"{path} attempt-{attempt} {key}" if attempt else f"{path} {key}"


def _changed_fields(before: StepDetail, after: StepDetail, error: _Object | None, now: int) -> _Object:
    """Return the fields of the session's state that the step from ``before`` to ``after`` changed."""
    changed: _Object = {"step_count": after.steps, "last_modified": timestamp(now)}
    if after.status != before.status:
        changed["status"] = after.status
    if (spent := spent_record(after)) != spent_record(before):
        changed["spent"] = spent
    if error is not None:
        changed["error"] = error
    return changed


def _assistant_message(content: str, *calls: PendingCall) -> _Object:
    return {"role": "assistant", "content": content, "tool_calls": [_call_object(each) for each in calls]}


def _call_object(call: PendingCall) -> _Object:
    function: _Object = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}


def _usage_object(used: UsageRecord) -> _Object:
    usage = used.usage
    return {
        "input_tokens": usage.input,
        "output_tokens": usage.output,
        "cache_read_tokens": usage.cache_read,
        "cache_write_tokens": usage.cache_write,
        "model": used.model,
        "cost": usage.cost if usage.priced_by else None,
        "priced_by": "table" if usage.priced_by == "both" else usage.priced_by,
    }


def _pending_call(call_id: str, tool: str, arguments: str) -> PendingCall:
    return PendingCall(call_id, validation.escape_unstorable(tool, 100), _bounded(arguments))


def _bounded(text: str) -> str:
    """Return ``text`` in a form that the journal can store."""
    return validation.replace_lone_surrogates(text)[:_MAX_TEXT]
