"""The toolbox's tools as the tools of an agent that the runtime runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

from watchroom.model import Json
from watchroom.runtime.agent import AgentTool, CallOrigin
from watchroom.toolbox.offered import tools
from watchroom.toolbox.toolbox import Toolbox


def agent_tools(toolbox: Toolbox, *, toolsets: Iterable[str] | None = None) -> list[AgentTool]:
    """The tools of ``toolbox``, or of some of its toolsets, in their order. A call that the end of its
    process cut off finds out what it had done, so that nothing is done twice."""
    return [
        AgentTool(
            str(shape["name"]),
            partial(_call, toolbox, str(shape["name"])),
            definition,
            repeatable=tools()[str(shape["name"])].hints.reads_only,
            recovers=True,
        )
        for definition in toolbox.get_tool_definitions("openai", toolsets=toolsets)
        if isinstance(shape := definition["function"], Mapping)
    ]


def _call(toolbox: Toolbox, name: str, arguments: Mapping[str, Json], origin: CallOrigin) -> Json:
    return toolbox.dispatch_tool_call(name, arguments, call=origin.key, again=origin.may_have_run)
