"""The toolbox's tools as the tools of an agent that the runtime runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

from watchroom.editing import parse_tool_name
from watchroom.errors import ApprovalOutdated
from watchroom.model import Json
from watchroom.runtime.agent import AgentTool, CallOrigin
from watchroom.toolbox.call_policy import WRITERS
from watchroom.toolbox.schemas import build_definition
from watchroom.toolbox.tool import AnyTool
from watchroom.toolbox.toolbox import Toolbox


def agent_tools(toolbox: Toolbox, *, toolsets: Iterable[str] | None = None) -> list[AgentTool]:
    """Return the tools that the agent of ``toolbox`` has now, or those of ``toolsets``, as those of an agent
    that the runtime runs, in their order. A call that the end of its process cut off finds out what it had
    done, so that nothing is done twice."""
    return [agent_tool(toolbox, tool) for tool in toolbox.registry.available(toolsets)]


def agent_tool(toolbox: Toolbox, tool: AnyTool) -> AgentTool:
    """Return ``tool`` of ``toolbox`` as `agent_tools` does."""
    return AgentTool(
        tool.name,
        partial(run_call, toolbox, tool.name),
        build_definition(tool, "openai", toolbox.language),
        repeatable=tool.annotations.reads_only,
        recovers=True,
        writes_as=writes_as(toolbox, tool.name),
        checksum=partial(toolbox.approval_checksum, tool.name),
        policy=partial(toolbox.decide_policy, tool.name),
    )


def writes_as(toolbox: Toolbox, name: str) -> str:
    """Return the name of the tool that writes where the flush ``name`` of a buffer of ``toolbox`` would;
    empty of any other tool."""
    buffer, which = parse_tool_name(name) or ("", "")
    source = toolbox.source_of_buffer(buffer) if which == "flush" else None
    return WRITERS.get(source, "") if source else ""


def run_call(toolbox: Toolbox, name: str, arguments: Mapping[str, Json], origin: CallOrigin) -> Json:
    """Run a call of the tool ``name`` of ``toolbox`` with ``arguments``, for an agent that the runtime runs;
    ``origin`` says which call it is. Returns its result. Raises `ApprovalOutdated`."""
    result = toolbox.dispatch_tool_call(
        name, arguments, call=origin.key, again=origin.may_have_run, approved=origin.approved
    )
    if result.get("error") == ApprovalOutdated.code:
        raise ApprovalOutdated(tool=name)
    return result
