"""The events of a session. Each step produces events. All events together are the session's history."""

from __future__ import annotations

from typing import Literal

from watchroom.features.requests.rows import Answer, Option
from watchroom.features.sessions.runtime.messages import (
    EMPTY_OBJECT,
    Frozen,
    FrozenObject,
    FrozenValue,
    ToolCall,
    UserMessage,
)
from watchroom.features.sessions.runtime.models.protocol import ModelChunk, Usage


class LlmAnswer(Frozen):
    """The complete answer of a model."""

    content: str
    tool_calls: tuple[ToolCall, ...] = ()


class ErrorInfo(Frozen):
    """A recorded error: its stable code, a message, and a suggestion."""

    code: str
    message: str
    suggestion: str = ""


class LlmStart(Frozen):
    """A request to a model begins. ``messages`` is the number of messages sent; they are in the state."""

    type: Literal["llm_start"] = "llm_start"
    model: str = ""
    messages: int = 0


class LlmStream(Frozen):
    """A streamed piece of a model's answer."""

    type: Literal["llm_stream"] = "llm_stream"
    chunk: ModelChunk


class LlmResult(Frozen):
    """A model's complete answer, with its usage."""

    type: Literal["llm_result"] = "llm_result"
    result: LlmAnswer
    usage: Usage | None = None
    finish_reason: str | None = None


class LlmIncomplete(Frozen):
    """A model's answer was cut off at the maximum length, or is empty. Its calls are not made."""

    type: Literal["llm_incomplete"] = "llm_incomplete"
    reason: Literal["length", "empty"]


class Thought(Frozen):
    """A model's reasoning before its answer, if its client reports it."""

    type: Literal["thought"] = "thought"
    text: str


class PlanEntry(Frozen):
    """An entry of an agent's plan, with its status."""

    text: str
    status: Literal["pending", "in_progress", "completed"] = "pending"


class PlanChanged(Frozen):
    """The agent has a new plan, given completely."""

    type: Literal["plan_changed"] = "plan_changed"
    entries: tuple[PlanEntry, ...]


class UsageReported(Frozen):
    """A client reported usage without an answer."""

    type: Literal["usage_reported"] = "usage_reported"
    model: str = ""
    usage: Usage


class ToolPending(Frozen):
    """These calls wait for a person's approval."""

    type: Literal["tool_pending"] = "tool_pending"
    tools_calling: tuple[ToolCall, ...]


class ToolFinished(Frozen):
    """A call of a tool ended. ``id`` is the id of the call, ``result`` the tool's result."""

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
    """A request was answered, by ``human:NAME``, or by ``system`` if it expired."""

    type: Literal["human_answered"] = "human_answered"
    answer: Answer
    by: str


class MessageReceived(Frozen):
    """The agent received a message. The model gets it with its next turn."""

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


class RateLimited(Frozen):
    """A rate or usage limit parked the session. ``text``: the words of the client or the model's server.

    ``resets``: the reset time in ISO 8601, empty if it is unknown.
    """

    type: Literal["rate_limited"] = "rate_limited"
    text: str = ""
    resets: str = ""


class Cancelled(Frozen):
    """The session was cancelled."""

    type: Literal["cancelled"] = "cancelled"
    by: str = ""
    reason: str = ""


class Failed(Frozen):
    """The step ended with an error."""

    type: Literal["error"] = "error"
    error: ErrorInfo
