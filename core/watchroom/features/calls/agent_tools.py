"""The tools and the open buffers of a toolbox, for an agent in the runtime."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Final, cast

from watchroom.algorithms.editing import parse_tool_name
from watchroom.errors import ApprovalOutdated
from watchroom.features.buffers.rows import OPEN
from watchroom.features.calls.tool_registry import all_tools
from watchroom.features.calls.toolbox import Toolbox
from watchroom.features.requests.rows import parse_json
from watchroom.features.sessions.runtime.agent import AgentTool, CallOrigin, LiveToolsSnapshot
from watchroom.kernel.tools.schemas import build_definition
from watchroom.kernel.tools.tool import AnyTool
from watchroom.kernel.zones import ZONES
from watchroom.model import Json


def agent_tools(toolbox: Toolbox, *, toolsets: Iterable[str] | None = None) -> list[AgentTool]:
    """Return the current tools of ``toolbox`` for an agent in the runtime.

    ``toolsets``: include only these sets of tools, default all. A call that was interrupted by the end of its
    process does not run twice, because it finds its earlier row.
    """
    return [agent_tool(toolbox, tool) for tool in toolbox.registry.available(toolsets)]


def agent_tool(toolbox: Toolbox, tool: AnyTool) -> AgentTool:
    """Return ``tool`` of ``toolbox`` for an agent in the runtime."""
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
    """Return the tool that writes to the source of a buffer if ``name`` is the buffer's flush tool; else
    empty."""
    buffer, which = parse_tool_name(name) or ("", "")
    source = toolbox.source_of_buffer(buffer) if which == "flush" else None
    return ZONES[source].write_tool if source else ""


def run_call(toolbox: Toolbox, name: str, arguments: Mapping[str, Json], origin: CallOrigin) -> Json:
    """Run the call ``origin`` of the tool ``name``, and return its result. Raise `ApprovalOutdated`."""
    result = toolbox.dispatch_tool_call(
        name, arguments, call=origin.key, again=origin.may_have_run, approved=origin.approved
    )
    if result.get("error") == ApprovalOutdated.code:
        raise ApprovalOutdated(tool=name)
    return result


_TOOLSET = "buffer"
_OPEN_FIELDS: Final = ("success", "buffer", "source")
_EDIT_FIELDS: Final = ("error", "status", "workflow_state", "summary", "guidance")
"""The fields of a result that are kept once the model has seen it."""


class BufferTools:
    """The open buffers of an agent and their tools, as the ``live`` tools of a `ChatAgent` (EDIT-7.2)."""

    def __init__(self, toolbox: Toolbox) -> None:
        self._toolbox = toolbox

    def snapshot(self) -> LiveToolsSnapshot:
        """Return the view of the buffers and the tools that their states allow. Raise `JournalError`."""
        shown = self._toolbox.show_buffers()
        return LiveToolsSnapshot(tuple(agent_tools(self._toolbox, toolsets=[_TOOLSET])), shown)

    def find(self, name: str) -> AgentTool | None:
        """Return the tool ``name`` of an open buffer, even if the buffer's state does not offer it.

        None for any other name. Raise `JournalError`.
        """
        found = self._toolbox.registry.find(name)
        return agent_tool(self._toolbox, found) if found and found.toolset == _TOOLSET else None

    def condense(self, tool: str, content: str, *, is_newest: bool) -> str:
        """Return the short form of ``content``, a result of ``tool`` that the model has seen.

        The Markdown is always left out, because it repeats other fields or the view of `snapshot`.
        ``is_newest``: keep all other fields, because the model has not answered since.
        """
        if tool != OPEN and (parse_tool_name(tool) is None or tool in all_tools()):
            return content
        parsed = _parse_object(content)
        # If a person edited the arguments, the result is nested in a field.
        inner = parsed.get("result")
        result = cast("dict[str, Json]", inner) if isinstance(inner, dict) else parsed
        if "markdown" not in result:
            return content
        kept = result.keys() - {"markdown"} if is_newest else _OPEN_FIELDS if tool == OPEN else _EDIT_FIELDS
        short: dict[str, Json] = {name: value for name, value in result.items() if name in kept}
        whole = {**parsed, "result": short} if result is inner else short
        return json.dumps(whole, ensure_ascii=False, separators=(",", ":"))


def _parse_object(content: str) -> dict[str, Json]:
    """Return the JSON object in ``content``; empty if there is none."""
    try:
        parsed = parse_json(content)
    except (ValueError, RecursionError):
        return {}
    return parsed if isinstance(parsed, dict) else {}
