"""The MCP server of an agent's toolbox, over any transport.

The transport identifies the caller (``--agent`` on stdio, a token on HTTP). No tool takes an identity as an
argument.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import partial
from importlib.metadata import version
from typing import Any, Final, TypeAlias

from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged

from watchroom import validation
from watchroom.errors import ApprovalOutdated, BudgetReached, CallRejected, CallUnanswered, InvalidArguments
from watchroom.features.calls.toolbox import Toolbox, ToolResult
from watchroom.features.sessions.rows import is_unfinished
from watchroom.features.sessions.runtime.threads import run_in_thread
from watchroom.kernel.rules.trace_context import TRACEPARENT
from watchroom.model import HUMAN_PREFIX
from watchroom.serving.approvals import CallApprovals
from watchroom.serving.malformed_messages import parse_problem
from watchroom.serving.resources import WorkspaceResources
from watchroom.texts import catalogue
from watchroom.workspace import Workspace

NAME: Final = "watchroom"
Context: TypeAlias = ServerRequestContext[Any, Any]
Paging: TypeAlias = types.PaginatedRequestParams | None
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
    notifier: ToolListNotifier | None = None,
) -> Server[Any]:
    """Return an MCP server.

    - ``toolbox_of``: returns the toolbox of a request.
    - ``toolsets``: offer only these sets of tools, default all.
    - ``resources``: the resources to offer.
    - ``approvals``: asks people to approve calls.
    - ``take_messages``: returns the messages for an agent. They are sent with the result of its call.
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
        if take_messages is not None and isinstance(result, types.CallToolResult):
            text = await run_in_thread(take_messages, toolbox.actor)
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
        # No tool sends arguments in headers. Otherwise all tools would be listed with each call.
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
    # The waits for budgets and for an approval share one deadline.
    deadline = asyncio.get_running_loop().time() + approvals.seconds
    try:
        await approvals.wait_for_budgets(toolbox.actor, deadline)
    except BudgetReached as reached:
        return _to_call_tool_result(await run_in_thread(refuse, params.arguments or {}, reached))
    if not await run_in_thread(approvals.are_required, toolbox, params.name, params.arguments or {}):
        return _to_call_tool_result(await run_in_thread(dispatch, params.arguments or {}))
    is_outdated = False
    while True:
        try:
            approved = await approvals.request(context, toolbox, params, deadline, is_outdated=is_outdated)
        except (CallRejected, CallUnanswered) as error:
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


class ToolListNotifier:
    """Notifies one client of changes to its list of tools. The list changes because the tools of buffers
    depend on their state.

    Older clients are notified with their next call, newer clients on their subscription
    (`subscriptions/listen`). Over HTTP there are no notifications, because requests are independent.
    """

    def __init__(self) -> None:
        self._bus = InMemorySubscriptionBus()
        self._streams = ListenHandler(self._bus)
        self._known: Sequence[str] | None = None

    def record_listed(self, names: Sequence[str]) -> None:
        """Record that the client listed the tools ``names``."""
        self._known = names

    async def notify_if_changed(self, context: ServerRequestContext[Any, Any], names: Sequence[str]) -> None:
        """Notify the client of ``context`` once if its tools are now ``names``, and differ from the listed
        tools."""
        if self._known is None or self._known == names:
            return
        self._known = names
        await context.session.send_tool_list_changed()
        await self._bus.publish(ToolsListChanged())

    async def listen(
        self, context: ServerRequestContext[Any, Any], params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Serve the subscription ``params`` of the client of ``context`` until the client ends it.

        The first message says that only changes of tools are reported.
        """
        wanted = types.SubscriptionFilter(tools_list_changed=params.notifications.tools_list_changed)
        return await self._streams(context, params.model_copy(update={"notifications": wanted}))
