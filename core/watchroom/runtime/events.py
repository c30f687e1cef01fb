"""What happened in a session, in order: each step gives some events, and together they are its history."""

from __future__ import annotations

from typing import Literal

from watchroom.rules.requests import Answer, Option
from watchroom.runtime.messages import EMPTY_OBJECT, Frozen, FrozenObject, FrozenValue, ToolCall, UserMessage
from watchroom.runtime.models.protocol import ModelChunk, Usage


class LlmAnswer(Frozen):
    """What a model said, whole."""

    content: str
    tool_calls: tuple[ToolCall, ...] = ()


class ErrorInfo(Frozen):
    """An error as it is kept: its stable code, what happened, what to do next."""

    code: str
    message: str
    suggestion: str = ""


class LlmStart(Frozen):
    """A model is asked. ``messages`` is how many were sent: they stand in the state."""

    type: Literal["llm_start"] = "llm_start"
    model: str = ""
    messages: int = 0


class LlmStream(Frozen):
    """A piece of the model's answer."""

    type: Literal["llm_stream"] = "llm_stream"
    chunk: ModelChunk


class LlmResult(Frozen):
    """The model's complete answer, with its usage."""

    type: Literal["llm_result"] = "llm_result"
    result: LlmAnswer
    usage: Usage | None = None
    finish_reason: str | None = None


class LlmIncomplete(Frozen):
    """The model's answer was cut off at its greatest length, or is empty; calls in it are not made."""

    type: Literal["llm_incomplete"] = "llm_incomplete"
    reason: Literal["length", "empty"]


class Thought(Frozen):
    """What a model thought before it spoke, where its client shows that."""

    type: Literal["thought"] = "thought"
    text: str


class PlanEntry(Frozen):
    """One item of an agent's plan, and how far it is."""

    text: str
    status: Literal["pending", "in_progress", "completed"] = "pending"


class PlanChanged(Frozen):
    """The agent's plan is this now, as a whole."""

    type: Literal["plan_changed"] = "plan_changed"
    entries: tuple[PlanEntry, ...]


class UsageReported(Frozen):
    """A client told what was used, apart from an answer."""

    type: Literal["usage_reported"] = "usage_reported"
    model: str = ""
    usage: Usage


class ToolPending(Frozen):
    """These calls wait for a person's approval."""

    type: Literal["tool_pending"] = "tool_pending"
    tools_calling: tuple[ToolCall, ...]


class ToolResult(Frozen):
    """A tool was called; ``id`` is the call's, ``result`` what the tool gave."""

    type: Literal["tool_result"] = "tool_result"
    id: str
    result: FrozenValue


class HumanApproveRequired(Frozen):
    """People are asked to approve calls."""

    type: Literal["human_approve_required"] = "human_approve_required"
    pending_tools_calling: tuple[ToolCall, ...]
    session_id: str


class HumanPromptRequired(Frozen):
    """People are asked for a text."""

    type: Literal["human_prompt_required"] = "human_prompt_required"
    prompt: str
    metadata: FrozenObject = EMPTY_OBJECT
    session_id: str


class HumanSelectRequired(Frozen):
    """People are asked to choose."""

    type: Literal["human_select_required"] = "human_select_required"
    prompt: str
    options: tuple[Option, ...]
    multi: bool = False
    metadata: FrozenObject = EMPTY_OBJECT
    session_id: str


class HumanAnswered(Frozen):
    """A request was answered. ``by`` is who did (``human:NAME``), ``system`` where the request expired."""

    type: Literal["human_answered"] = "human_answered"
    answer: Answer
    by: str


class MessageReceived(Frozen):
    """A message was sent to the agent; the model gets it with its next turn."""

    type: Literal["message_received"] = "message_received"
    message: UserMessage


class Paused(Frozen):
    """The session was paused."""

    type: Literal["paused"] = "paused"
    by: str = ""


class Resumed(Frozen):
    """The session was resumed."""

    type: Literal["resumed"] = "resumed"
    by: str = ""


class Cancelled(Frozen):
    """The session was cancelled."""

    type: Literal["cancelled"] = "cancelled"
    by: str = ""
    reason: str = ""


class Failed(Frozen):
    """The step ended with an error."""

    type: Literal["error"] = "error"
    error: ErrorInfo
