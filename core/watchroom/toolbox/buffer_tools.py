"""An agent's open buffers as what its model has beside its messages (spec 4 §7.2): shown as they are before
each question, with the tools that their states allow."""

from __future__ import annotations

import json
from functools import partial
from typing import Final, cast

from watchroom.editing import parse_tool_name
from watchroom.model import Json
from watchroom.rules.requests import parse_json
from watchroom.runtime.agent import AgentTool, LiveToolsSnapshot
from watchroom.toolbox.agent_tools import agent_tools, call_of, writes_as
from watchroom.toolbox.tool_registry import all_tools
from watchroom.toolbox.toolbox import Toolbox
from watchroom.zones.buffers.record import OPEN

_TOOLSET = "buffer"
_OPENED: Final = ("success", "buffer", "source")
_EDITED: Final = ("error", "status", "workflow_state", "summary", "guidance")
"""What stays of an answer once the model has seen it: the basic level of detail."""


class BufferTools:
    """The buffers of the toolbox's agent, for `ChatAgent`."""

    def __init__(self, toolbox: Toolbox) -> None:
        self._toolbox = toolbox

    def snapshot(self) -> LiveToolsSnapshot:
        """Raises `WatchroomError` where the journal cannot be read."""
        shown = self._toolbox.show_buffers()
        return LiveToolsSnapshot(tuple(agent_tools(self._toolbox, toolsets=[_TOOLSET])), shown)

    def find(self, name: str) -> AgentTool | None:
        found = self._toolbox.registry.find(name)
        if found is None or found.toolset != _TOOLSET:
            return None
        run = partial(call_of, self._toolbox, name)
        return AgentTool(
            name,
            run,
            recovers=True,
            writes_as=writes_as(self._toolbox, name),
            checksum=partial(self._toolbox.approval_checksum, name),
        )

    def condense(self, tool: str, content: str, *, is_newest: bool) -> str:
        """Of an answer that the model has seen stays what was done and what came of it. The Markdown is left
        out of the newest, too: it says once more what the answer says, or `snapshot` shows."""
        if tool != OPEN and (parse_tool_name(tool) is None or tool in all_tools()):
            return content
        given = _parsed(content)
        # Where a person changed the arguments, the result stands beside them.
        inner = given.get("result")
        result = cast("dict[str, Json]", inner) if isinstance(inner, dict) else given
        if "markdown" not in result:
            return content
        kept = result.keys() - {"markdown"} if is_newest else _OPENED if tool == OPEN else _EDITED
        short: dict[str, Json] = {name: value for name, value in result.items() if name in kept}
        whole = {**given, "result": short} if result is inner else short
        return json.dumps(whole, ensure_ascii=False, separators=(",", ":"))


def _parsed(content: str) -> dict[str, Json]:
    """The object that a text says, empty where it says none."""
    try:
        given = parse_json(content)
    except (ValueError, RecursionError):
        return {}
    return given if isinstance(given, dict) else {}
