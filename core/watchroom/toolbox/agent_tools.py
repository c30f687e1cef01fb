"""The toolbox's tools as the tools of an agent that the runtime runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

from watchroom.model import Json
from watchroom.runtime.agent import AgentTool, CallOrigin
from watchroom.toolbox.schemas import definition
from watchroom.toolbox.toolbox import Toolbox


def agent_tools(toolbox: Toolbox, *, toolsets: Iterable[str] | None = None) -> list[AgentTool]:
    """The tools of ``toolbox``, or of some of its toolsets, in their order. A call that the end of its
    process cut off finds out what it had done, so that nothing is done twice."""
    return [
        AgentTool(
            tool.name,
            partial(call_of, toolbox, tool.name),
            definition(tool, "openai", toolbox.language),
            repeatable=tool.hints.reads_only,
            recovers=True,
        )
        for tool in toolbox.offered(toolsets)
    ]


def call_of(toolbox: Toolbox, name: str, arguments: Mapping[str, Json], origin: CallOrigin) -> Json:
    """Run a call for an agent that the runtime runs."""
    return toolbox.dispatch_tool_call(name, arguments, call=origin.key, again=origin.may_have_run)
