"""The toolbox's tools as the tools of an agent that the runtime runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Final

from watchroom.editing import parse_tool_name
from watchroom.errors import ApprovalOutdated
from watchroom.model import Json, Zone
from watchroom.runtime.agent import AgentTool, CallOrigin
from watchroom.toolbox.schemas import definition
from watchroom.toolbox.toolbox import Toolbox

_WRITERS: Final[Mapping[Zone, str]] = {
    "private": "save_to_my_workspace",
    "collab": "collab_write",
    "board": "whiteboard_write",
    "file": "write_file",
}


def agent_tools(toolbox: Toolbox, *, toolsets: Iterable[str] | None = None) -> list[AgentTool]:
    """The tools of ``toolbox``, or of some of its toolsets, in their order. A call that the end of its
    process cut off finds out what it had done, so that nothing is done twice."""
    return [
        AgentTool(
            tool.name,
            partial(call_of, toolbox, tool.name),
            definition(tool, "openai", toolbox.language),
            repeatable=tool.annotations.reads_only,
            recovers=True,
            writes_as=writes_as(toolbox, tool.name),
            checksum=partial(toolbox.approval_checksum, tool.name),
        )
        for tool in toolbox.registry.available(toolsets)
    ]


def writes_as(toolbox: Toolbox, name: str) -> str:
    """The tool that writes where a flush of that name would; empty of any other tool."""
    buffer, which = parse_tool_name(name) or ("", "")
    source = toolbox.source_of_buffer(buffer) if which == "flush" else None
    return _WRITERS.get(source, "") if source else ""


def call_of(toolbox: Toolbox, name: str, arguments: Mapping[str, Json], origin: CallOrigin) -> Json:
    """Run a call for an agent that the runtime runs. Raises `ApprovalOutdated`."""
    result = toolbox.dispatch_tool_call(
        name, arguments, call=origin.key, again=origin.may_have_run, approved=origin.approved
    )
    if result.get("error") == ApprovalOutdated.code:
        raise ApprovalOutdated(tool=name)
    return result
