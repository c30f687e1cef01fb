"""The tools with which people steer agents. Agents do not have them."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from watchroom.kernel.tools.context import ToolContext
from watchroom.kernel.tools.models import Message, Name, NoParams, ParamsModel, ResultModel
from watchroom.kernel.tools.tool import Toolset

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
    """Pause the agent or the session in ``params``. Raise `InvalidAgentId`, `UnknownAgent`, `InvalidSession`,
    `SessionNotFound`."""
    return _steer(context, params.agent_id, params.session_id, "")


class ResumeAgentParams(SessionParams):
    when: Literal["now", "reset"] | None = None


@tool("resume_agent", path=("agent_id",))
def resume_agent(context: ToolContext, params: ResumeAgentParams) -> SessionResult:
    """Resume the agent or the session in ``params``, now or once when the limit resets for which it is
    parked. Raise the errors of `pause_agent`, and `NoReset` if no reset time is known."""
    return _steer(context, params.agent_id, params.session_id, "", at_reset=params.when == "reset")


class CancelAgentParams(SessionParams):
    reason: Message | None = None


@tool("cancel_agent", path=("agent_id",))
def cancel_agent(context: ToolContext, params: CancelAgentParams) -> SessionResult:
    """Cancel the agent or the session in ``params``. Raise the errors of `pause_agent`."""
    return _steer(context, params.agent_id, params.session_id, params.reason or "")


class StopAgentsParams(ParamsModel):
    agents: Annotated[list[Name], Field(min_length=1, max_length=1000)]
    everybody: bool | None = None


class StopAgentsResult(ResultModel):
    rows: dict[str, int]
    """The row that paused or resumed each agent."""
    refused: dict[str, str] | None = None
    """The reason why an agent could not be paused, by agent."""


@tool("stop_agents")
def stop_agents(context: ToolContext, params: StopAgentsParams) -> StopAgentsResult:
    """Pause the agents in ``params`` and record them as stopped, with ``everybody`` also agents that begin
    later. If none can be paused, raise the errors of `pause_agent`."""
    agents = dict.fromkeys(params.agents)
    told, refused = context.zones.stops.stop(context.call, agents, everybody=params.everybody is True)
    if refused and not told:
        raise next(iter(refused.values()))
    why = {agent: str(error) for agent, error in refused.items()}
    return StopAgentsResult(rows=told, refused=why or None)


@tool("release_agents")
def release_agents(context: ToolContext, params: NoParams) -> StopAgentsResult:
    """Resume the agents that were paused by `stop_agents` and not resumed since. ``params`` are empty."""
    return StopAgentsResult(rows=dict(context.zones.stops.release(context.call)))


def _steer(
    context: ToolContext, agent: str, session: str | None, text: str, *, at_reset: bool = False
) -> SessionResult:
    row = context.zones.session_zone.control(context.call, agent, session, text, at_reset=at_reset)
    return SessionResult(agent_id=agent, session_id=session, row=row.seq)
