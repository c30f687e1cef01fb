"""What an agent decides to do next: one instruction a step."""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias

from pydantic import Field, TypeAdapter

from watchroom.rules.requests import Option
from watchroom.runtime.messages import EMPTY_OBJECT, Frozen, FrozenObject, ToolCall
from watchroom.runtime.models.protocol import ModelPayload


class CallLlm(Frozen):
    """Ask the model. Without a payload it gets all messages, and the definitions of the agent's tools."""

    type: Literal["call_llm"] = "call_llm"
    payload: ModelPayload | None = None


class CallTool(Frozen):
    """Run one tool call. ``approved``: a person has agreed to it; an agent that says so is not believed."""

    type: Literal["call_tool"] = "call_tool"
    tool_call: ToolCall
    approved: bool = False


class Finish(Frozen):
    """End the session."""

    type: Literal["finish"] = "finish"
    reason: str = ""


class RequestHumanApprove(Frozen):
    """Have a person approve or reject these calls. ``timeout``: seconds; None for the configuration's
    ``ask_timeout``."""

    type: Literal["request_human_approve"] = "request_human_approve"
    pending_tools_calling: Annotated[tuple[ToolCall, ...], Field(min_length=1)]
    timeout: float | None = None


class RequestHumanPrompt(Frozen):
    """Ask a person for a text. A ``tool_call_id`` in ``metadata`` makes the answer that call's result. For
    ``timeout`` see `RequestHumanApprove`."""

    type: Literal["request_human_prompt"] = "request_human_prompt"
    prompt: str
    metadata: FrozenObject = EMPTY_OBJECT
    timeout: float | None = None


class RequestHumanSelect(Frozen):
    """Have a person choose; several options with ``multi``. For the rest see `RequestHumanPrompt`."""

    type: Literal["request_human_select"] = "request_human_select"
    prompt: str = ""
    options: Annotated[tuple[Option, ...], Field(min_length=1)]
    multi: bool = False
    metadata: FrozenObject = EMPTY_OBJECT
    timeout: float | None = None


Instruction: TypeAlias = (
    CallLlm | CallTool | Finish | RequestHumanApprove | RequestHumanPrompt | RequestHumanSelect
)

instructions: Final[TypeAdapter[Instruction]] = TypeAdapter(
    Annotated[Instruction, Field(discriminator="type")]
)
"""Reads an instruction from a mapping."""
