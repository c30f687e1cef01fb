"""The tools with which people answer agents and steer them. Agents have none of them."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from watchroom.model import CANCEL, PAUSE, RESUME
from watchroom.toolbox.context import ToolContext
from watchroom.toolbox.models import Message, Name, NoParams, ParamsModel, ResultModel
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


class StopAgentsParams(ParamsModel):
    agents: Annotated[list[Name], Field(min_length=1, max_length=1000)]


class StopAgentsResult(ResultModel):
    rows: dict[str, int]
    """By agent, the row that told it."""
    refused: dict[str, str] | None = None
    """By agent, why it could not be told."""


@tool("stop_agents")
def stop_agents(context: ToolContext, params: StopAgentsParams) -> StopAgentsResult:
    """Pause the agents in ``params``, for the person of ``context``, and remember them. Raises as
    `pause_agent` where none can be told."""
    told, refused = context.zones.stops.stop(context.actor, dict.fromkeys(params.agents))
    if refused and not told:
        raise next(iter(refused.values()))
    why = {agent: str(error) for agent, error in refused.items()}
    return StopAgentsResult(rows=told, refused=why or None)


@tool("release_agents")
def release_agents(context: ToolContext, params: NoParams) -> StopAgentsResult:
    """Have those go on that `stop_agents` paused and nobody resumed since, for the person of ``context``;
    ``params`` are empty."""
    return StopAgentsResult(rows=dict(context.zones.stops.release(context.actor)))


def _steer(context: ToolContext, tool: str, agent: str, session: str | None, text: str) -> SessionResult:
    row = context.zones.session_zone.control(context.actor, tool, agent, session, text)
    return SessionResult(agent_id=agent, session_id=session, row=row.seq)
