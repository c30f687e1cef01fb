"""The MCP server of an agent's toolbox, over any transport.

The transport identifies the caller (``--agent`` on stdio, a token on HTTP). No tool takes an identity as an
argument.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection
from functools import partial
from importlib.metadata import version
from typing import Any, Final, TypeAlias

from mcp import types
from mcp.server.lowlevel import Server

from watchroom import validation
from watchroom.errors import ApprovalOutdated, DeniedError, InvalidArguments
from watchroom.features.calls.toolbox import Toolbox, ToolResult
from watchroom.features.sessions.rows import is_unfinished
from watchroom.features.sessions.runtime.threads import run_in_thread
from watchroom.kernel.rules.trace_context import TRACEPARENT
from watchroom.model import HUMAN_PREFIX
from watchroom.serving.approvals import CallApprovals
from watchroom.serving.call_tasks import (
    EXTENSION,
    CallTasks,
    TaskParams,
    TaskState,
    UpdateTaskParams,
    are_supported,
    check_header,
    require_support,
)
from watchroom.serving.malformed_messages import parse_problem
from watchroom.serving.notifications import ChangeNotifier, Context, IsReadable
from watchroom.serving.resources import WorkspaceResources
from watchroom.texts import catalogue
from watchroom.workspace import Workspace

NAME: Final = "watchroom"
Paging: TypeAlias = types.PaginatedRequestParams | None
CallOutcome: TypeAlias = types.CallToolResult | types.InputRequiredResult | TaskState
ToolboxOf: TypeAlias = Callable[[Context], Awaitable[Toolbox]]
"""Returns the toolbox of the agent that sent a request."""


def make_server(
    toolbox_of: ToolboxOf,
    resources: WorkspaceResources,
    approvals: CallApprovals,
    *,
    take_messages: Callable[[str], str] | None = None,
    toolsets: Collection[str] | None = None,
    instructions: str = "",
    notifier: ChangeNotifier | None = None,
    tasks: CallTasks | None = None,
) -> Server[Any]:
    """Return an MCP server.

    - ``toolbox_of``: returns the toolbox of a request.
    - ``toolsets``: offer only these sets of tools, default all.
    - ``resources``: the resources to offer.
    - ``approvals``: asks people to approve calls.
    - ``take_messages``: returns the messages for an agent. They are sent with the result of its call.
    - ``instructions``: the server's instructions for the client.
    - ``notifier``: notifies clients of changes, default none.
    - ``tasks``: makes calls that wait for people to tasks, if the client supports tasks. Default none.
    """
    handlers = _Handlers(toolbox_of, resources, approvals, take_messages, toolsets, notifier, tasks)
    is_connected = notifier is not None and notifier.has_one_client
    server: Server[Any] = Server(
        NAME,
        version=version(NAME),
        instructions=instructions or None,
        # No tool sends arguments in headers. Otherwise all tools would be listed with each call.
        get_tool_input_schema=lambda name: None,
        on_list_tools=handlers.list_tools,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_templates,
        on_read_resource=handlers.read_resource,
        on_subscribe_resource=handlers.subscribe if is_connected else None,
        on_unsubscribe_resource=handlers.unsubscribe if is_connected else None,
        on_subscriptions_listen=None if notifier is None else handlers.listen,
    )
    # The library's own argument does not allow results of an extension.
    server.add_request_handler("tools/call", types.CallToolRequestParams, handlers.call_tool)
    if tasks is not None:
        server.extensions[EXTENSION] = {}
        server.add_request_handler("tasks/get", TaskParams, handlers.get_task)
        server.add_request_handler("tasks/update", UpdateTaskParams, handlers.update_task)
        server.add_request_handler("tasks/cancel", TaskParams, handlers.cancel_task)
    return server


class _Handlers:
    """The handlers of a server's requests. For the arguments see `make_server`."""

    def __init__(
        self,
        toolbox_of: ToolboxOf,
        resources: WorkspaceResources,
        approvals: CallApprovals,
        take_messages: Callable[[str], str] | None,
        toolsets: Collection[str] | None,
        notifier: ChangeNotifier | None,
        tasks: CallTasks | None,
    ) -> None:
        self._toolbox_of = toolbox_of
        self._resources = resources
        self._approvals = approvals
        self._take_messages = take_messages
        self._toolsets = toolsets
        self._notifier = notifier
        self._tasks = tasks

    async def list_tools(self, context: Context, params: Paging) -> types.ListToolsResult:
        toolbox = await self._toolbox_of(context)
        definitions = await run_in_thread(toolbox.get_tool_definitions, "mcp", toolsets=self._toolsets)
        if self._notifier is not None:
            self._notifier.record_listed(toolbox.actor, [str(each["name"]) for each in definitions])
        return types.ListToolsResult(tools=[types.Tool.model_validate(each) for each in definitions])

    async def call_tool(self, context: Context, params: types.CallToolRequestParams) -> CallOutcome:
        toolbox = await self._toolbox_of(context)
        tasks = self._tasks if are_supported(context) else None
        result = await _call_tool(context, toolbox, self._approvals, params, tasks)
        if isinstance(result, types.CallToolResult):
            result = await self._add_messages(toolbox, result)
        if self._notifier is not None and self._notifier.is_listening(toolbox.actor):
            names = await run_in_thread(toolbox.registry.available_names, self._toolsets)
            await self._notifier.notify_tools(context, toolbox.actor, names)
        return result

    async def _add_messages(self, toolbox: Toolbox, result: types.CallToolResult) -> types.CallToolResult:
        if self._take_messages is None:
            return result
        text = await run_in_thread(self._take_messages, toolbox.actor)
        added = [types.TextContent(type="text", text=text)] if text else []
        return result.model_copy(update={"content": [*added, *result.content]})

    async def list_resources(self, context: Context, params: Paging) -> types.ListResourcesResult:
        found, more = await run_in_thread(self._resources.list_page, params.cursor if params else None)
        return types.ListResourcesResult(resources=found, next_cursor=more)

    async def list_templates(self, context: Context, params: Paging) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=self._resources.list_templates())

    async def read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        toolbox = await self._toolbox_of(context)
        return await run_in_thread(self._resources.read, toolbox, params.uri, self._approvals.are_required)

    async def listen(
        self, context: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        if (params.notifications.model_extra or {}).get("taskIds"):
            # Ends of tasks are not reported, but the specification requires this error.
            require_support(context)
        toolbox = await self._toolbox_of(context)
        return await self._required_notifier.listen(context, toolbox, params, self._readable_by(toolbox))

    async def subscribe(self, context: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
        toolbox = await self._toolbox_of(context)
        return await self._required_notifier.subscribe(
            context, toolbox, params.uri, self._readable_by(toolbox)
        )

    async def unsubscribe(
        self, context: Context, params: types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        return self._required_notifier.unsubscribe(params.uri)

    async def get_task(self, context: Context, params: TaskParams) -> TaskState:
        tasks, toolbox = await self._begin_task_request(context, params.task_id)
        found = await tasks.get(context, toolbox, params.task_id)
        if isinstance(found, TaskState):
            return found
        if found.result is None:
            return found.state
        result = await self._add_messages(toolbox, _to_call_tool_result(found.result, found.notice))
        shown = result.model_dump(mode="json", by_alias=True, exclude_none=True)
        return found.state.model_copy(update={"result": shown})

    async def update_task(self, context: Context, params: UpdateTaskParams) -> types.EmptyResult:
        tasks, toolbox = await self._begin_task_request(context, params.task_id)
        await tasks.update(context, toolbox, params.task_id, params.input_responses)
        return types.EmptyResult()

    async def cancel_task(self, context: Context, params: TaskParams) -> types.EmptyResult:
        tasks, toolbox = await self._begin_task_request(context, params.task_id)
        await run_in_thread(tasks.cancel, toolbox, params.task_id)
        return types.EmptyResult()

    async def _begin_task_request(self, context: Context, task_id: str) -> tuple[CallTasks, Toolbox]:
        require_support(context)
        check_header(context, task_id)
        if self._tasks is None:
            raise TypeError("a server without tasks got a request about a task")
        return self._tasks, await self._toolbox_of(context)

    @property
    def _required_notifier(self) -> ChangeNotifier:
        if self._notifier is None:
            raise TypeError("a server without notifications got a subscription")
        return self._notifier

    def _readable_by(self, toolbox: Toolbox) -> IsReadable:
        return lambda uri: self._resources.is_readable(toolbox, uri, self._approvals.are_required)


async def _call_tool(
    context: Context,
    toolbox: Toolbox,
    approvals: CallApprovals,
    params: types.CallToolRequestParams,
    tasks: CallTasks | None,
) -> CallOutcome:
    given = (params.meta or {}).get(TRACEPARENT)
    trace = None if given is None else await run_in_thread(toolbox.begin_trace, given)
    dispatch = partial(toolbox.dispatch_tool_call, params.name, trace=trace)
    refuse = partial(toolbox.refuse, params.name, trace=trace)
    problem = parse_problem(params.arguments or {})
    if problem is not None:
        error = InvalidArguments(tool=validation.escape_unstorable(params.name, 100), problems=problem)
        return _to_call_tool_result(await run_in_thread(refuse, {}, error))
    # The waits for budgets, for an approval and for a resume share one deadline.
    deadline = asyncio.get_running_loop().time() + approvals.seconds
    try:
        await approvals.admit(toolbox.actor, deadline)
    except DeniedError as error:
        return _to_call_tool_result(await run_in_thread(refuse, params.arguments or {}, error))
    if not await run_in_thread(approvals.are_required, toolbox, params.name, params.arguments or {}):
        return _to_call_tool_result(await run_in_thread(dispatch, params.arguments or {}))
    if tasks is not None:
        try:
            begun = await tasks.create(context, toolbox, params, given if trace is not None else None)
        except DeniedError as error:
            return _to_call_tool_result(await run_in_thread(refuse, params.arguments or {}, error))
        if isinstance(begun, TaskState):
            return begun
        return _to_call_tool_result(begun.result or {}, begun.notice)
    is_outdated = False
    while True:
        try:
            approved = await approvals.request(context, toolbox, params, deadline, is_outdated=is_outdated)
        except DeniedError as error:
            return _to_call_tool_result(await run_in_thread(refuse, params.arguments or {}, error))
        if isinstance(approved, types.InputRequiredResult):
            return approved
        # The key ensures that the call runs once, even if the client repeats it with the same approval.
        call = partial(dispatch, call=approved.key, again=True, approved=approved.checksum)
        result = await run_in_thread(call, approved.arguments)
        if result.get("error") != ApprovalOutdated.code:
            return _to_call_tool_result(result, approved.notice)
        is_outdated = True


def _to_call_tool_result(result: ToolResult, notice: str = "") -> types.CallToolResult:
    """Return ``result`` in the protocol's form: structured, and as a text for clients that only read text.

    A refusal or a conflict is an error for the model, not an error of the protocol.

    ``notice``: a text for the model before the result, empty for none.
    """
    markdown = result.get("markdown")
    text = markdown if isinstance(markdown, str) else json.dumps(result, ensure_ascii=False)
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=each) for each in (notice, text) if each],
        structured_content=result,
        is_error=result.get("success") is not True,
    )


def take_messages(workspace: Workspace, actor: str) -> str:
    """Return the messages that wait for the agent ``actor``, one line each, and record them as handed over.

    Return an empty text for a person, if no message waits, or if the agent has an open session, which gets
    the messages. The server cannot determine whether the client receives the result. Raise `JournalError`.
    """
    if actor.startswith(HUMAN_PREFIX):
        return ""
    step = workspace.session_zone.newest_step(actor)
    if step is not None and is_unfinished(step):
        return ""
    with workspace.messages.hand_over() as handover:
        messages = handover.take(actor)
        handover.record()
    texts = catalogue(workspace.config.language)
    return "\n".join(
        texts("hook.message", sender=each.row.actor, text="\n  ".join(each.text.splitlines()))
        for each in messages
    )
