"""The server: an agent's toolbox as the protocol has it, over whichever transport.

Who calls is known by the transport (``--agent`` on stdio, a token on HTTP), never by an argument of a tool.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from importlib.metadata import version
from typing import Any, Final, TypeAlias

from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server

from watchroom import validation
from watchroom.errors import ApprovalOutdated, InvalidArguments
from watchroom.runtime.threads import run_in_thread
from watchroom.serving.asking import Asking
from watchroom.serving.changes import ToolChanges
from watchroom.serving.errors import CallRejected, CallUnanswered
from watchroom.serving.resources import Resources
from watchroom.serving.results import call_result
from watchroom.serving.unreadable import unreadable
from watchroom.toolbox import Toolbox

NAME: Final = "watchroom"
Context: TypeAlias = ServerRequestContext[Any, Any]
Paging: TypeAlias = types.PaginatedRequestParams | None
Caller: TypeAlias = Callable[[Context], Toolbox]
"""Whose call it is."""


def make_server(
    caller: Caller,
    resources: Resources,
    asking: Asking,
    *,
    toolsets: Collection[str] | None = None,
    instructions: str = "",
    changes: ToolChanges | None = None,
) -> Server[Any]:
    """A server whose tools are those of the caller's toolbox, or of some of its ``toolsets``. What people
    have to approve of, they are asked by ``asking``; that the list of tools is another, the client is told
    by ``changes``, where there is a single one that can be told."""

    async def tools_of(toolbox: Toolbox) -> list[types.Tool]:
        definitions = await run_in_thread(toolbox.get_tool_definitions, "mcp", toolsets=toolsets)
        return [types.Tool.model_validate(each) for each in definitions]

    async def list_tools(context: Context, params: Paging) -> types.ListToolsResult:
        tools = await tools_of(caller(context))
        if changes is not None:
            changes.listed([tool.name for tool in tools])
        return types.ListToolsResult(tools=tools)

    async def call_tool(
        context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        toolbox = caller(context)
        result = await _called(context, toolbox, asking, params)
        if changes is not None:
            await changes.look(context, [tool.name for tool in await tools_of(toolbox)])
        return result

    async def list_resources(context: Context, params: Paging) -> types.ListResourcesResult:
        found, more = await run_in_thread(resources.listed, params.cursor if params else None)
        return types.ListResourcesResult(resources=found, next_cursor=more)

    async def list_templates(context: Context, params: Paging) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=resources.templates())

    async def read_resource(
        context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        return await run_in_thread(resources.read, caller(context), params.uri, asking.wants)

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
        on_subscriptions_listen=None if changes is None else changes.listen,
    )


async def _called(
    context: Context, toolbox: Toolbox, asking: Asking, params: types.CallToolRequestParams
) -> types.CallToolResult | types.InputRequiredResult:
    problem = unreadable(params.arguments or {})
    if problem is not None:
        error = InvalidArguments(tool=validation.escape_unstorable(params.name, 100), problems=problem)
        return call_result(await run_in_thread(toolbox.refuse, params.name, {}, error))
    if not await run_in_thread(asking.wants, toolbox, params.name):
        return call_result(
            await run_in_thread(toolbox.dispatch_tool_call, params.name, params.arguments or {})
        )
    again = False
    while True:
        try:
            asked = await asking.ask(context, toolbox, params, again=again)
        except (CallRejected, CallUnanswered) as error:
            return call_result(
                await run_in_thread(toolbox.refuse, params.name, params.arguments or {}, error)
            )
        if isinstance(asked, types.InputRequiredResult):
            return asked
        # By its key the call is made once, however often the client asks with the same approval.
        made = partial(
            toolbox.dispatch_tool_call,
            params.name,
            asked.arguments,
            call=asked.key,
            again=True,
            approved=asked.checksum,
        )
        result = await run_in_thread(made)
        if result.get("error") != ApprovalOutdated.code:
            return call_result(result, asked.notice)
        again = True
