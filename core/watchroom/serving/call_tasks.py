"""Tool calls that wait for people as tasks, which their client polls (MCP's extension for tasks).

The state of a task is computed from rows: its request at ``AGENT/mcp/ID``, the answer, and a note with the
result. So a task continues after the end of the connection or the service. An approved call is made when its
agent polls next, and once. It is never made without an approval.
"""

from __future__ import annotations

import asyncio
import json
import re
import uuid
from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from mcp import types
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_NAME_HEADER
from mcp.types import HEADER_MISMATCH, INVALID_PARAMS, METHOD_NOT_FOUND, MISSING_REQUIRED_CLIENT_CAPABILITY
from mcp.types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from watchroom.errors import ApprovalExpired, ApprovalOutdated, DeniedError, TooManyRequests
from watchroom.features.calls.toolbox import Toolbox, ToolResult
from watchroom.features.requests.rows import PendingCall, Request, has_expired, parse_arguments
from watchroom.features.requests.service import RequestOutcome
from watchroom.features.sessions.runtime.threads import run_in_thread
from watchroom.kernel.call_context import CallContext
from watchroom.model import Json, Row, timestamp
from watchroom.serving.approvals import CallApprovals, can_elicit
from watchroom.serving.notifications import Context
from watchroom.workspace import Workspace

EXTENSION: Final = "io.modelcontextprotocol/tasks"
TASK_SECONDS: Final = 3600.0
"""Seconds that a task waits for people, and then for the poll that makes the approved call."""
POLL_SECONDS: Final = 1.0
"""Suggested seconds between two polls. A poll waits at most this long for the call to end."""
_TASK: Final = "task"
"""The field of a request's metadata that marks a task: the ``traceparent`` of its call, or empty."""
_ID: Final = re.compile(r"[0-9a-f]{32}")
_CANCELLED: Final = "cancelled"
TaskStatus: TypeAlias = Literal["working", "input_required", "completed", "cancelled"]


class TaskParams(types.RequestParams):
    """The parameters of ``tasks/get`` and ``tasks/cancel``."""

    task_id: str


class UpdateTaskParams(TaskParams):
    """The parameters of ``tasks/update``: answers by the key of their question."""

    input_responses: dict[str, Any]


class TaskState(types.Result):
    """The state of a task as the protocol defines it."""

    result_type: Literal["task", "complete"] = "complete"
    task_id: str
    status: TaskStatus
    status_message: str | None = None
    created_at: str
    last_updated_at: str
    ttl_ms: int
    """Milliseconds after which the call is not made any more. The state is kept as long as the journal."""
    poll_interval_ms: int = int(POLL_SECONDS * 1000)
    input_requests: dict[str, Any] | None = None
    result: dict[str, Any] | None = None


class EndedTask(NamedTuple):
    """A task that has ended. ``result``: the result of its call with a notice, None if it was cancelled."""

    state: TaskState
    result: ToolResult | None
    notice: str = ""


class _Task(NamedTuple):
    """A task, and its newest request.

    - ``asked``: the row of its first request.
    - ``path``: the path of its newest request, the ``number``-th.
    """

    id: str
    asked: Row
    path: str
    number: int
    request: Request

    @property
    def call(self) -> PendingCall:
        return self.request.calls[0]

    @property
    def input_key(self) -> str:
        return f"approve-{self.number}"

    def state(self, status: TaskStatus, row: Row | None = None, message: str | None = None) -> TaskState:
        updated = self.asked.time if row is None else row.time
        waits = (self.request.expires or self.asked.time) - self.asked.time
        return TaskState(
            task_id=self.id,
            status=status,
            status_message=message,
            created_at=timestamp(self.asked.time),
            last_updated_at=timestamp(updated),
            # The request is answered in time, and then the call is made in time.
            ttl_ms=2 * max(0, waits) // 1_000_000,
        )


class CallTasks:
    """The tasks of all agents of ``workspace``.

    - ``approvals``: asks people.
    - ``seconds``: see `TASK_SECONDS`.
    """

    def __init__(self, workspace: Workspace, approvals: CallApprovals, seconds: float = TASK_SECONDS) -> None:
        self._journal = workspace.journal
        self._requests = workspace.requests
        self._budgets = workspace.budgets
        self._stops = workspace.stops
        self._approvals = approvals
        self._seconds = seconds
        self._running: set[asyncio.Future[None]] = set()

    async def create(
        self, context: Context, toolbox: Toolbox, params: types.CallToolRequestParams, traceparent: object
    ) -> EndedTask | TaskState:
        """Ask people to approve the call ``params`` by the agent of ``toolbox``. Return the new task, or its
        end if it was approved at once. ``traceparent``: the trace of the call, None for none. Raise
        `TooManyRequests`."""
        task = await run_in_thread(
            self._open, toolbox, params.name, params.arguments or {}, str(traceparent or "")
        )
        if await run_in_thread(self._requests.find_end, task.path) is not None:
            found = await self.get(context, toolbox, task.id)
            if isinstance(found, EndedTask) and found.result is not None:
                return found
        message = toolbox.texts("elicit.task_open", tool=params.name)
        return task.state("working", message=message).model_copy(update={"result_type": "task"})

    async def get(self, context: Context, toolbox: Toolbox, task_id: str) -> EndedTask | TaskState:
        """Return the state of a task of the agent of ``toolbox``. If people approved its call, make the call.

        The call of a paused agent waits until a person resumes the agent. A call that takes longer than
        `POLL_SECONDS` continues, and a later poll returns its result. Raise `MCPError` if the agent has no
        such task.
        """
        while True:
            task = await run_in_thread(self._find, toolbox, task_id)
            ended = await run_in_thread(self._read_end, toolbox, task)
            if ended is not None:
                return ended
            outcome = await run_in_thread(self._outcome, task)
            if outcome is None:
                return await run_in_thread(self._state_of_open, toolbox, task, is_asking=can_elicit(context))
            if outcome.answer is None:
                return EndedTask(task.state("cancelled", outcome.row), None)
            if await run_in_thread(self._stops.is_paused, toolbox.actor):
                return task.state("working", outcome.row, toolbox.texts("elicit.task_paused"))
            making = asyncio.ensure_future(run_in_thread(self._make, toolbox, task, outcome))
            self._running.add(making)
            making.add_done_callback(self._running.discard)
            if (await asyncio.wait({making}, timeout=POLL_SECONDS))[0]:
                making.result()
            if not making.done() or await run_in_thread(self._is_running, task):
                message = toolbox.texts("elicit.task_running", tool=task.call.name)
                return task.state("working", outcome.row, message)

    async def update(
        self, context: Context, toolbox: Toolbox, task_id: str, responses: Mapping[str, Any]
    ) -> None:
        """Record the answer that the client's user gave. Ignore answers to other questions. Raise
        `MCPError` if the agent has no such task, or if the answer is malformed."""
        task = await run_in_thread(self._find, toolbox, task_id)
        given = responses.get(task.input_key)
        if given is None or not can_elicit(context):
            return
        try:
            response = types.ElicitResult.model_validate(given)
        except ValidationError as error:
            raise MCPError(INVALID_PARAMS, "Invalid input response") from error
        await run_in_thread(self._approvals.record_answer, toolbox, task.path, response)

    def cancel(self, toolbox: Toolbox, task_id: str) -> None:
        """Withdraw the request of a task. If its call was approved but has not started, it is never made. A
        call that has started continues. Raise `MCPError` if the agent has no such task."""
        task = self._find(toolbox, task_id)
        with self._journal.claim(self._claim_of(task)) as is_ours:
            # People may have been asked again in the meantime.
            task = self._find(toolbox, task_id)
            if not is_ours or self._read_end(toolbox, task) is not None:
                return
            if self._requests.withdraw(task.path).answer is not None:
                self._record(toolbox, task, {"status": _CANCELLED})

    def _open(self, toolbox: Toolbox, tool: str, arguments: Mapping[str, Json], traceparent: str) -> _Task:
        expires = self._journal.now() + int(self._seconds * 1e9)
        request = self._approvals.build_request(
            toolbox, tool, arguments, expires=expires, metadata={_TASK: traceparent}
        )
        task_id = uuid.uuid4().hex
        path = _path(toolbox.actor, task_id, 1)
        row = self._requests.ask(CallContext(toolbox.actor), path, request)
        return _Task(task_id, row, path, 1, request)

    def _find(self, toolbox: Toolbox, task_id: str) -> _Task:
        """Return a task of the agent of ``toolbox``. Raise `MCPError` if there is none."""
        found: _Task | None = None
        number = 1
        while _ID.fullmatch(task_id):
            path = _path(toolbox.actor, task_id, number)
            asked = self._requests.find_asked(path, toolbox.actor)
            if asked is None or len(asked[1].calls) != 1 or not _is_task(asked[1]):
                break
            first = asked[0] if found is None else found.asked
            found = _Task(task_id, first, path, number, asked[1])
            number += 1
        if found is None:
            raise MCPError(INVALID_PARAMS, toolbox.texts("elicit.task_unknown", task=task_id[:100]))
        return found

    def _read_end(self, toolbox: Toolbox, task: _Task) -> EndedTask | None:
        """Return the end of ``task`` from the note of its result; None if there is no note."""
        found = self._requests.find_result(toolbox.actor, task.asked.path)
        if found is None:
            return None
        row, text = found
        end: dict[str, Any] = json.loads(text)
        if end["status"] == _CANCELLED:
            return EndedTask(task.state("cancelled", row), None)
        return EndedTask(task.state("completed", row), end["result"], end["notice"])

    def _outcome(self, task: _Task) -> RequestOutcome | None:
        """Return the outcome of the newest request of ``task``, None while it is open."""
        outcome = self._requests.ended(task.path, task.request)
        if outcome is None and has_expired(task.request.expires, self._journal.now()):
            return self._requests.expire(task.path)
        return outcome

    def _state_of_open(self, toolbox: Toolbox, task: _Task, *, is_asking: bool) -> TaskState:
        message = toolbox.texts("elicit.task_open", tool=task.call.name)
        if not is_asking:
            return task.state("working", message=message)
        form = types.ElicitRequest(params=self._approvals.build_form(task.call, toolbox))
        asked = {task.input_key: form.model_dump(mode="json", by_alias=True, exclude_none=True)}
        return task.state("input_required", message=message).model_copy(update={"input_requests": asked})

    def _is_running(self, task: _Task) -> bool:
        return self._journal.is_claimed(self._claim_of(task))

    def _claim_of(self, task: _Task) -> str:
        return f"task/{task.asked.path}"

    def _make(self, toolbox: Toolbox, task: _Task, outcome: RequestOutcome) -> None:
        """Make the call of ``task`` as people decided in ``outcome``, and record the result. Do nothing if
        another thread or process makes it."""
        with self._journal.claim(self._claim_of(task)) as is_ours:
            # Another poll may have made the call, or asked again, since the task was read.
            is_current = is_ours and self._find(toolbox, task.id).path == task.path
            if not is_current or self._read_end(toolbox, task) is not None:
                return
            name, arguments = task.call.name, parse_arguments(task.call.arguments)
            trace = toolbox.begin_trace(task.request.metadata[_TASK])
            deadline = outcome.row.time + int(self._seconds * 1e9)
            notice = ""
            try:
                approved = self._approvals.read_approval(toolbox, task.path, task.call, outcome.answer)
                if has_expired(deadline, self._journal.now()):
                    raise ApprovalExpired(tool=name)
                self._budgets.check_stop(toolbox.actor)
            except DeniedError as error:
                result = toolbox.refuse(name, arguments, error, trace=trace)
            else:
                notice = approved.notice
                result = toolbox.dispatch_tool_call(
                    name,
                    approved.arguments,
                    call=approved.key,
                    again=True,
                    approved=approved.checksum,
                    trace=trace,
                )
                if result.get("error") == ApprovalOutdated.code:
                    try:
                        self._ask_again(toolbox, task)
                    except TooManyRequests as error:
                        result = toolbox.refuse(name, arguments, error, trace=trace)
                    else:
                        return
            self._record(toolbox, task, {"status": "completed", "result": result, "notice": notice})

    def _ask_again(self, toolbox: Toolbox, task: _Task) -> None:
        """Ask people about the call of ``task`` again, because it would now write another text."""
        request = self._approvals.build_request(
            toolbox,
            task.call.name,
            parse_arguments(task.call.arguments),
            expires=task.request.expires or 0,
            is_outdated=True,
            metadata={_TASK: str(task.request.metadata[_TASK])},
        )
        path = _path(toolbox.actor, task.id, task.number + 1)
        self._requests.ask(CallContext(toolbox.actor), path, request)

    def _record(self, toolbox: Toolbox, task: _Task, end: Mapping[str, Json]) -> None:
        text = json.dumps(end, ensure_ascii=False)
        self._requests.record_result(CallContext(toolbox.actor), task.asked.path, text)


def are_supported(context: Context) -> bool:
    """Return whether the client of ``context`` declares in its request that it supports tasks."""
    declared = context.session.client_capabilities
    has_extension = declared is not None and EXTENSION in (declared.extensions or {})
    return has_extension and context.protocol_version in MODERN_PROTOCOL_VERSIONS


def require_support(context: Context) -> None:
    """Raise `MCPError` unless the client of ``context`` supports tasks."""
    if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        raise MCPError(METHOD_NOT_FOUND, "Method not found", context.method)
    if not are_supported(context):
        missing: Json = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
        raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, "Missing required client capability", missing)


def check_header(context: Context, task_id: str) -> None:
    """Raise `MCPError` unless the request names the task in its header. Only over HTTP."""
    headers = getattr(context.request, "headers", None)
    if headers is not None and headers.get(MCP_NAME_HEADER) != task_id:
        raise MCPError(HEADER_MISMATCH, f"The header {MCP_NAME_HEADER} does not name the task")


def _path(actor: str, task_id: str, number: int) -> str:
    """Return the path of the ``number``-th request of a task."""
    return f"{actor}/mcp/{task_id}" + (f".{number}" if number > 1 else "")


def _is_task(request: Request) -> bool:
    return request.kind == "approve" and isinstance(request.metadata.get(_TASK), str)
