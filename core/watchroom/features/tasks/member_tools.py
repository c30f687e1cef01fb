"""Tools of `Members`: spawn and end agents, send messages, and end the task (TASKS-society)."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from watchroom.errors import AgentEnded
from watchroom.features.tasks.rules import Member
from watchroom.kernel.tools.context import ToolContext
from watchroom.kernel.tools.models import FrozenModel, Message, Name, NoParams, ParamsModel, ResultModel
from watchroom.kernel.tools.tool import Toolset
from watchroom.model import HUMAN_PREFIX, USER, Row

TOOLS: Final = Toolset("agent", needs_task=True)
tool = TOOLS.tool


class MessagePayload(ParamsModel):
    """The content of a message."""

    text: Annotated[str, Field(min_length=1, max_length=100_000)]


class SendMessageParams(ParamsModel):
    to: Name
    payload: MessagePayload


class SendMessageResult(ResultModel):
    """``row``: the number of the message."""

    to: str
    row: int


@tool("send_message", path=("to",))
def send_message(context: ToolContext, params: SendMessageParams) -> SendMessageResult:
    """Send a message to an agent of the caller's task, or to the people (``user``). A person can send it to
    an agent (``AGENT``) or to one of its sessions (``AGENT/SESSION``).

    Raise `NotInTask`, `AgentEnded`, `UnknownAgent`, `NotText`, `SessionNotFound`.
    """
    if not context.actor.startswith(HUMAN_PREFIX):
        return _send_result(
            context, params, context.zones.members.send(context.call, params.to, params.payload.text)
        )
    agent, _, session = params.to.partition("/")
    if context.zones.members.has_ended(agent):
        raise AgentEnded(agent=agent)
    row = context.zones.session_zone.control(context.call, agent, session or None, params.payload.text)
    return _send_result(context, params, row)


@TOOLS.replay(send_message)
def _send_result(context: ToolContext, params: SendMessageParams, row: Row) -> SendMessageResult:
    return SendMessageResult(to=params.to, row=row.seq)


class SpawnAgentParams(ParamsModel):
    role: Annotated[str, Field(min_length=1, max_length=100)]
    instructions: Annotated[str, Field(min_length=1, max_length=100_000)]
    name: Annotated[str, Field(max_length=64)] | None = None


class SpawnAgentResult(ResultModel):
    agent_id: str
    role: str
    layer: str


@tool("spawn_agent", path=("name",), audience="agents")
def spawn_agent(context: ToolContext, params: SpawnAgentParams) -> SpawnAgentResult:
    """Spawn an agent in the caller's task. Raise `NotInTask`, `AgentEnded`, `InvalidAgentId`, `InvalidRole`,
    `NotText`, `AgentLimitExceeded`."""
    member = context.zones.members.spawn(context.call, params.role, params.instructions, params.name or "")
    return _spawn_result(member)


@TOOLS.replay(spawn_agent)
def _replayed_spawn(context: ToolContext, params: SpawnAgentParams, row: Row) -> SpawnAgentResult:
    members = context.zones.members
    member = next(each for each in members.of_task(str(row.detail["task"])) if each.id == row.path)
    members.ensure_registered(member)
    return _spawn_result(member)


class TerminateAgentParams(ParamsModel):
    agent_id: Name
    reason: Message | None = None


class TerminateAgentResult(ResultModel):
    ended: list[str]
    """The agents that this call ended, the given agent first."""


@tool("terminate_agent", path=("agent_id",), destroys=True)
def terminate_agent(context: ToolContext, params: TerminateAgentParams) -> TerminateAgentResult:
    """End an agent and all agents that it spawned. Raise `NotInTask`, `AgentEnded`, `UnknownAgent`,
    `AgentNotOwned`."""
    ended = context.zones.members.terminate(context.call, params.agent_id, params.reason or "")
    return TerminateAgentResult(ended=[each.id for each in ended])


@TOOLS.replay(terminate_agent)
def _terminate_result(context: ToolContext, params: TerminateAgentParams, row: Row) -> TerminateAgentResult:
    return TerminateAgentResult(ended=[each.id for each in context.zones.members.ended_with(row)])


class ListedAgent(FrozenModel):
    agent_id: str
    role: str
    made_by: str
    ended: bool | None = None


class ListAgentsResult(ResultModel):
    agents: list[ListedAgent]


@tool("list_agents", reads_only=True, audience="agents")
def list_agents(context: ToolContext, params: NoParams) -> ListAgentsResult:
    """Return the agents of the caller's task. Raise `NotInTask`, `AgentEnded`."""
    task = context.zones.members.find_active(context.call).task
    return ListAgentsResult(
        agents=[
            ListedAgent(
                agent_id=each.id,
                role=each.role,
                made_by=each.parent or USER,
                ended=each.ended is not None or None,
            )
            for each in context.zones.members.of_task(task)
        ]
    )


class EndTaskParams(ParamsModel):
    status: Literal["done", "failed", "cancelled"]
    report: Message
    task_id: Name | None = None


class EndTaskResult(ResultModel):
    task_id: str
    status: str


@tool("end_task", path=("task_id",), destroys=True, zone="task")
def end_task(context: ToolContext, params: EndTaskParams) -> EndTaskResult:
    """End the caller's task, or the given task. Raise `NotInTask`, `AgentEnded`, `TaskNotOwned`,
    `AgentNotOwned`, `TaskNotFound`."""
    task = context.zones.members.end_task(context.call, params.status, params.report, params.task_id or "")
    return EndTaskResult(task_id=task.id, status=task.status)


@TOOLS.replay(end_task)
def _end_task_result(context: ToolContext, params: EndTaskParams, row: Row) -> EndTaskResult:
    return EndTaskResult(task_id=row.path, status=params.status)


def _spawn_result(member: Member) -> SpawnAgentResult:
    return SpawnAgentResult(agent_id=member.id, role=member.role, layer=member.layer)
