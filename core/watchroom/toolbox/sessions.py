"""The tools with which people answer agents and steer them. Agents have none of them."""

from __future__ import annotations

from typing import Final

from watchroom.model import CANCEL, PAUSE, RESUME
from watchroom.toolbox.context import ToolContext
from watchroom.toolbox.models import Message, Name, ParamsModel, ResultModel
from watchroom.toolbox.tool import Toolset

TOOLS: Final = Toolset("session", audience="people")
tool = TOOLS.tool


class SessionParams(ParamsModel):
    agent_id: Name
    session_id: Name | None = None


class SessionResult(ResultModel):
    agent_id: str
    session_id: str | None = None
    row: int


@tool("pause_agent", path=("agent_id",))
def pause_agent(context: ToolContext, params: SessionParams) -> SessionResult:
    """Pause the agent or the session in ``params``, for the person of ``context``. Raises `InvalidAgentId`,
    `UnknownAgent`, `InvalidSession`, `SessionNotFound`."""
    return _steer(context, PAUSE, params.agent_id, params.session_id, "")


@tool("resume_agent", path=("agent_id",))
def resume_agent(context: ToolContext, params: SessionParams) -> SessionResult:
    """Resume the agent or the session in ``params``, for the person of ``context``. Raises as
    `pause_agent`."""
    return _steer(context, RESUME, params.agent_id, params.session_id, "")


class CancelAgentParams(SessionParams):
    reason: Message | None = None


@tool("cancel_agent", path=("agent_id",))
def cancel_agent(context: ToolContext, params: CancelAgentParams) -> SessionResult:
    """Cancel the agent or the session in ``params``, for the person of ``context``. Raises as
    `pause_agent`."""
    return _steer(context, CANCEL, params.agent_id, params.session_id, params.reason or "")


def _steer(context: ToolContext, tool: str, agent: str, session: str | None, text: str) -> SessionResult:
    row = context.zones.session_zone.control(context.actor, tool, agent, session, text)
    return SessionResult(agent_id=agent, session_id=session, row=row.seq)
