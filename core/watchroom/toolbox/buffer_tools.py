"""An agent's open buffers as what its model has beside its messages (EDIT-7.2): shown as they are before
each question, with the tools that their states allow."""

from __future__ import annotations

import json
from typing import Final, cast

from watchroom.editing import parse_tool_name
from watchroom.model import Json
from watchroom.rules.buffers import OPEN
from watchroom.rules.requests import parse_json
from watchroom.runtime.agent import AgentTool, LiveToolsSnapshot
from watchroom.toolbox.agent_tools import agent_tool, agent_tools
from watchroom.toolbox.tool_registry import all_tools
from watchroom.toolbox.toolbox import Toolbox

_TOOLSET = "buffer"
_OPEN_FIELDS: Final = ("success", "buffer", "source")
_EDIT_FIELDS: Final = ("error", "status", "workflow_state", "summary", "guidance")
"""What stays of an answer once the model has seen it: the basic level of detail."""


class BufferTools:
    """The open buffers of the agent of ``toolbox``, for `ChatAgent`."""

    def __init__(self, toolbox: Toolbox) -> None:
        self._toolbox = toolbox

    def snapshot(self) -> LiveToolsSnapshot:
        """Return what to show of the buffers, and the tools that they have in their states. Raises
        `JournalError`."""
        shown = self._toolbox.show_buffers()
        return LiveToolsSnapshot(tuple(agent_tools(self._toolbox, toolsets=[_TOOLSET])), shown)

    def find(self, name: str) -> AgentTool | None:
        """Return the tool ``name`` of a buffer that is open, also one that its state does not offer; None of
        any other name. Raises `JournalError`."""
        found = self._toolbox.registry.find(name)
        return agent_tool(self._toolbox, found) if found and found.toolset == _TOOLSET else None

    def condense(self, tool: str, content: str, *, is_newest: bool) -> str:
        """Return what stays of ``content``, a result of ``tool`` that the model has seen: what was done
        and what came of it. Also where it ``is_newest`` it goes without the Markdown, which repeats the other
        fields or what `snapshot` shows."""
        if tool != OPEN and (parse_tool_name(tool) is None or tool in all_tools()):
            return content
        parsed = _parse_object(content)
        # Where a person changed the arguments, the result stands beside them.
        inner = parsed.get("result")
        result = cast("dict[str, Json]", inner) if isinstance(inner, dict) else parsed
        if "markdown" not in result:
            return content
        kept = result.keys() - {"markdown"} if is_newest else _OPEN_FIELDS if tool == OPEN else _EDIT_FIELDS
        short: dict[str, Json] = {name: value for name, value in result.items() if name in kept}
        whole = {**parsed, "result": short} if result is inner else short
        return json.dumps(whole, ensure_ascii=False, separators=(",", ":"))


def _parse_object(content: str) -> dict[str, Json]:
    """The JSON object in a text, empty where there is none."""
    try:
        parsed = parse_json(content)
    except (ValueError, RecursionError):
        return {}
    return parsed if isinstance(parsed, dict) else {}
