"""The tools of agents for handoffs (FILES-2)."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from watchroom.features.handoffs.rows import BRIEFING_FILE, HAND_OVER
from watchroom.kernel.tools.context import ToolContext
from watchroom.kernel.tools.models import FrozenModel, Message, Name, ParamsModel, ResultModel
from watchroom.kernel.tools.tool import Toolset
from watchroom.model import Row

Sender = Annotated[str, Field(serialization_alias="from")]

TOOLS: Final = Toolset("handoff", audience="agents")
tool = TOOLS.tool


class HandoffDeliverParams(ParamsModel):
    to_agent: Name
    filename: Name
    content: str
    message: Message


class HandoffDeliverResult(ResultModel):
    to: str
    filename: str
    delivery: int


@tool("handoff_file", path=("to_agent", "filename"))
def handoff_file(context: ToolContext, params: HandoffDeliverParams) -> HandoffDeliverResult:
    """Deliver the file in ``params`` from the actor of ``context`` to another agent. Raise
    `UnknownAgent`."""
    row = context.zones.handoff.deliver(
        context.call,
        params.to_agent,
        params.filename,
        params.content,
        message=params.message,
    )
    return _deliver_result(context, params, row)


@TOOLS.replay(handoff_file)
def _deliver_result(context: ToolContext, params: HandoffDeliverParams, row: Row) -> HandoffDeliverResult:
    return HandoffDeliverResult(to=params.to_agent, filename=params.filename, delivery=row.version or 0)


class HandoffInboxParams(ParamsModel):
    include_acknowledged: bool | None = None


class InboxEntry(FrozenModel):
    sender: Sender
    filename: str
    message: str
    timestamp: str
    size: int
    delivery: int
    read: bool
    acknowledged: bool


class HandoffInboxResult(ResultModel):
    count: int
    handoffs: list[InboxEntry]


@tool("check_my_handoffs", reads_only=True)
def check_my_handoffs(context: ToolContext, params: HandoffInboxParams) -> HandoffInboxResult:
    """Return the handoffs to the actor of ``context``. ``params``: whether to include acknowledged
    handoffs."""
    found = context.zones.handoff.inbox(context.call, acknowledged=params.include_acknowledged or False)
    entries = [
        InboxEntry(
            sender=each.sender,
            filename=each.filename,
            message=each.row.message,
            timestamp=each.row.timestamp,
            size=each.row.size or 0,
            delivery=each.row.version or 0,
            read=each.read,
            acknowledged=each.acknowledged is not None,
        )
        for each in found
    ]
    return HandoffInboxResult(count=len(entries), handoffs=entries)


class HandoffReadParams(ParamsModel):
    from_agent: Name
    filename: Name


class HandoffReadResult(ResultModel):
    sender: Sender
    filename: str
    content: str
    message: str
    timestamp: str
    delivery: int


@tool("read_handoff", path=("from_agent", "filename"), reads_only=True)
def read_handoff(context: ToolContext, params: HandoffReadParams) -> HandoffReadResult:
    """Return the handoff in ``params`` to the actor of ``context``, and mark it as read. Raise
    `NotFound`."""
    content, row = context.zones.handoff.read(context.call, params.from_agent, params.filename)
    return HandoffReadResult(
        sender=params.from_agent,
        filename=params.filename,
        content=content,
        message=row.message,
        timestamp=row.timestamp,
        delivery=row.version or 0,
    )


class HandoffAcknowledgeParams(HandoffReadParams):
    message: Message | None = None


class HandoffAcknowledgeResult(ResultModel):
    sender: Sender
    filename: str
    delivery: int


@tool("acknowledge_handoff", path=("from_agent", "filename"), idempotent=True)
def acknowledge_handoff(context: ToolContext, params: HandoffAcknowledgeParams) -> HandoffAcknowledgeResult:
    """Acknowledge the handoff in ``params`` for the actor of ``context``. Raise `NotFound`."""
    row = context.zones.handoff.acknowledge(
        context.call, params.from_agent, params.filename, params.message or ""
    )
    return _acknowledge_result(context, params, row)


@TOOLS.replay(acknowledge_handoff)
def _acknowledge_result(
    context: ToolContext, params: HandoffAcknowledgeParams, row: Row
) -> HandoffAcknowledgeResult:
    return HandoffAcknowledgeResult(
        sender=params.from_agent, filename=params.filename, delivery=row.base or 0
    )


class HandOverParams(ParamsModel):
    """The agent whose work is handed over, its receiver, and the briefing about it."""

    agent_id: Name
    to_agent: Name
    briefing: Annotated[str, Field(min_length=1, max_length=100_000)]
    is_prompt: bool | None = None


class HandOverResult(ResultModel):
    """The number of the note, and the name of the handoff, None if the briefing is a prompt."""

    agent_id: str
    to: str
    row: int
    filename: str | None = None


@tool(HAND_OVER, path=("agent_id",), audience="people", zone="agent")
def hand_over_work(context: ToolContext, params: HandOverParams) -> HandOverResult:
    """Hand the work of an agent over to another, for the person of ``context``. Raise `UnknownAgent`,
    `InvalidHandOver`, `NotText`."""
    row = context.zones.handoff.hand_over(
        *(context.call, params.agent_id, params.to_agent, params.briefing),
        is_prompt=params.is_prompt or False,
    )
    return _hand_over_result(context, params, row)


@TOOLS.replay(hand_over_work)
def _hand_over_result(context: ToolContext, params: HandOverParams, row: Row) -> HandOverResult:
    filename = None if params.is_prompt else BRIEFING_FILE
    return HandOverResult(agent_id=params.agent_id, to=params.to_agent, row=row.seq, filename=filename)
