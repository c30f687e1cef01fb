"""The server: an agent's toolbox as the protocol has it, over whichever transport.

Who calls is known by the transport (``--agent`` on stdio, a token on HTTP), never by an argument of a tool.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Collection
from functools import partial
from importlib.metadata import version
from typing import Any, Final, TypeAlias

from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server

from watchroom import validation
from watchroom.errors import ApprovalOutdated, InvalidArguments
from watchroom.rules.trace_context import TRACEPARENT
from watchroom.runtime.errors import BudgetReached
from watchroom.runtime.threads import run_in_thread
from watchroom.serving.approvals import CallApprovals
from watchroom.serving.call_messages import CallMessages
from watchroom.serving.errors import CallRejected, CallUnanswered
from watchroom.serving.malformed_messages import parse_problem
from watchroom.serving.resources import WorkspaceResources
from watchroom.serving.tool_list_changes import ToolListNotifier
from watchroom.toolbox import Toolbox
from watchroom.toolbox.toolbox import ToolResult

NAME: Final = "watchroom"
Context: TypeAlias = ServerRequestContext[Any, Any]
Paging: TypeAlias = types.PaginatedRequestParams | None
ToolboxOf: TypeAlias = Callable[[Context], Awaitable[Toolbox]]
"""Returns the toolbox of the agent that a request comes from."""


def make_server(
    toolbox_of: ToolboxOf,
    resources: WorkspaceResources,
    approvals: CallApprovals,
    *,
    messages: CallMessages | None = None,
    toolsets: Collection[str] | None = None,
    instructions: str = "",
    notifier: ToolListNotifier | None = None,
) -> Server[Any]:
    """Return an MCP server.

    - ``toolbox_of``: returns the toolbox of a request.
    - ``toolsets``: offer only these sets of tools, default all.
    - ``resources``: the resources that it offers.
    - ``approvals``: asks people to approve calls.
    - ``messages``: sent with the results of calls, default none.
    - ``instructions``: the server's instructions for the client.
    - ``notifier``: notifies a single client that the list of tools has changed.
    """

    async def list_tools(context: Context, params: Paging) -> types.ListToolsResult:
        toolbox = await toolbox_of(context)
        definitions = await run_in_thread(toolbox.get_tool_definitions, "mcp", toolsets=toolsets)
        if notifier is not None:
            notifier.record_listed([str(each["name"]) for each in definitions])
        return types.ListToolsResult(tools=[types.Tool.model_validate(each) for each in definitions])

    async def call_tool(
        context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        toolbox = await toolbox_of(context)
        result = await _call_tool(context, toolbox, approvals, params)
        if messages is not None and isinstance(result, types.CallToolResult):
            text = await run_in_thread(messages.take, toolbox.actor)
            added = [types.TextContent(type="text", text=text)] if text else []
            result = result.model_copy(update={"content": [*added, *result.content]})
        if notifier is not None:
            names = await run_in_thread(toolbox.registry.available_names, toolsets)
            await notifier.notify_if_changed(context, names)
        return result

    async def list_resources(context: Context, params: Paging) -> types.ListResourcesResult:
        found, more = await run_in_thread(resources.list_page, params.cursor if params else None)
        return types.ListResourcesResult(resources=found, next_cursor=more)

    async def list_templates(context: Context, params: Paging) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=resources.list_templates())

    async def read_resource(
        context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        toolbox = await toolbox_of(context)
        return await run_in_thread(resources.read, toolbox, params.uri, approvals.are_required)

    return Server(
        NAME,
        version=version(NAME),
        instructions=instructions or None,
        # No argument of a tool travels in a header; else all tools would be listed with each call.
        get_tool_input_schema=lambda name: None,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_subscriptions_listen=None if notifier is None else notifier.listen,
    )


async def _call_tool(
    context: Context, toolbox: Toolbox, approvals: CallApprovals, params: types.CallToolRequestParams
) -> types.CallToolResult | types.InputRequiredResult:
    given = (params.meta or {}).get(TRACEPARENT)
    trace = None if given is None else await run_in_thread(toolbox.begin_trace, given)
    dispatch = partial(toolbox.dispatch_tool_call, params.name, trace=trace)
    refuse = partial(toolbox.refuse, params.name, trace=trace)
    problem = parse_problem(params.arguments or {})
    if problem is not None:
        error = InvalidArguments(tool=validation.escape_unstorable(params.name, 100), problems=problem)
        return _to_call_tool_result(await run_in_thread(refuse, {}, error))
    try:
        await approvals.wait_for_budgets(toolbox.actor)
    except BudgetReached as reached:
        return _to_call_tool_result(await run_in_thread(refuse, params.arguments or {}, reached))
    if not await run_in_thread(approvals.are_required, toolbox, params.name, params.arguments or {}):
        return _to_call_tool_result(await run_in_thread(dispatch, params.arguments or {}))
    is_outdated = False
    while True:
        try:
            approved = await approvals.request(context, toolbox, params, is_outdated=is_outdated)
        except (CallRejected, CallUnanswered) as error:
            return _to_call_tool_result(await run_in_thread(refuse, params.arguments or {}, error))
        if isinstance(approved, types.InputRequiredResult):
            return approved
        # By its key the call is made once, however often the client repeats it with the same approval.
        call = partial(dispatch, call=approved.key, again=True, approved=approved.checksum)
        result = await run_in_thread(call, approved.arguments)
        if result.get("error") != ApprovalOutdated.code:
            return _to_call_tool_result(result, approved.notice)
        is_outdated = True


def _to_call_tool_result(result: ToolResult, notice: str = "") -> types.CallToolResult:
    """``result`` as the protocol has it, structured, and as text for clients that read only that. A refusal
    or a conflict is an error that the model reads, never one of the protocol. ``notice`` is what else the
    model is told."""
    markdown = result.get("markdown")
    text = markdown if isinstance(markdown, str) else json.dumps(result, ensure_ascii=False)
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=each) for each in (notice, text) if each],
        structured_content=result,
        is_error=result.get("success") is not True,
    )
