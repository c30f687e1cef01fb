"""An agent's open buffers as what its model has beside its messages (spec 4 §7.2): shown as they are before
each question, with the tools that their states allow."""

from __future__ import annotations

from functools import partial

from watchroom.editing import tool_of
from watchroom.runtime.agent import AgentTool, Look
from watchroom.toolbox.agent_tools import agent_tools, call_of, writes_as
from watchroom.toolbox.offered import tools
from watchroom.toolbox.toolbox import Toolbox

_TOOLSET = "buffer"


class BufferTools:
    """The buffers of the toolbox's agent, for `ChatAgent`."""

    def __init__(self, toolbox: Toolbox) -> None:
        self._toolbox = toolbox

    def look(self) -> Look:
        """Raises `WatchroomError` where the journal cannot be read."""
        shown = self._toolbox.show_buffers()
        return Look(tuple(agent_tools(self._toolbox, toolsets=[_TOOLSET])), shown)

    def find(self, name: str) -> AgentTool | None:
        fixed = tools().get(name)
        if fixed is not None and fixed.toolset != _TOOLSET:
            return None
        of_buffer = tool_of(name)
        if fixed is None and not (of_buffer and self._toolbox.has_buffer(of_buffer[0])):
            return None
        run = partial(call_of, self._toolbox, name)
        return AgentTool(
            name,
            run,
            recovers=True,
            writes_as=writes_as(self._toolbox, name),
            checksum=partial(self._toolbox.approval_checksum, name),
        )
