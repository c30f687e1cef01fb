"""The state of a session. It is immutable: each step produces a new one (RUN-frozen)."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Annotated, Final, Literal, Self, TypeAlias

from pydantic import Field, JsonValue

from watchroom.features.budgets.rows import UsageTotal
from watchroom.features.requests.rows import PendingCall, Request
from watchroom.features.sessions.runtime.events import (
    Cancelled,
    ErrorInfo,
    Failed,
    HumanAnswered,
    HumanApproveRequired,
    HumanPromptRequired,
    HumanSelectRequired,
    LlmIncomplete,
    LlmResult,
    LlmStart,
    LlmStream,
    MessageReceived,
    Paused,
    PlanChanged,
    RateLimited,
    Resumed,
    Thought,
    ToolFinished,
    ToolPending,
    UsageReported,
)
from watchroom.features.sessions.runtime.messages import (
    EMPTY_OBJECT,
    AssistantMessage,
    Frozen,
    FrozenObject,
    Message,
    ToolCall,
    ToolMessage,
)
from watchroom.model import SessionStatus, timestamp


class Spent(Frozen):
    """The usage of a session.

    - ``input_tokens``: without tokens from a cache
    - ``estimated_tokens``: tokens that no provider counted, estimated from the lengths of texts
    - ``cost``: US dollars, for all tokens except ``unpriced_tokens``
    - ``seconds``: working time, without waits
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    estimated_tokens: int = 0
    cost: float = 0.0
    unpriced_tokens: int = 0
    model_calls: int = 0
    tool_calls: int = 0
    seconds: float = 0.0

    @property
    def tokens(self) -> int:
        """Input and output tokens, without tokens from a cache."""
        return self.input_tokens + self.output_tokens

    def with_usage(self, used: UsageTotal) -> Self:
        """Return a copy with ``used`` added."""
        return self.model_copy(
            update={
                "input_tokens": self.input_tokens + used.input,
                "output_tokens": self.output_tokens + used.output,
                "cache_read_tokens": self.cache_read_tokens + used.cache_read,
                "cache_write_tokens": self.cache_write_tokens + used.cache_write,
                "cost": round(self.cost + used.cost, 9),
                "unpriced_tokens": self.unpriced_tokens + used.unpriced,
            }
        )


class ModelLimit(Frozen):
    """The limit for which a session is parked. ``resets``: nanoseconds since the epoch, None if unknown.
    ``text``: the words of the model's server."""

    resets: int | None = None
    text: str = ""


class AgentState(Frozen):
    """Everything that a session needs to continue, in any process.

    Times are in ISO 8601 and UTC. The state is frozen at every depth: a change of ``metadata`` raises
    TypeError.

    - ``pending_tools_calling``: calls that wait for a person; ``approved_tools_calling``: calls that run next
    - ``approvals``: the approved calls, as they were shown to people
    - ``asked``: the open request to a person, None for none
    - ``paused_from``: the status before the pause
    - ``limit``: the limit for which the session is parked, None if it is not parked
    - ``granted_from``: the step at which the count for the step limit and step budgets begins
    - ``granted_step``: the step that a person allows despite a used-up budget, -1 for none
    - ``errors_in_a_row``: consecutive turns in which a call failed; ``failed_turn``: the message of the last
      such turn, -1 for none
    - ``incomplete_answers``: consecutive answers of the model that were cut off or empty
    """

    session_id: str
    status: SessionStatus = "idle"
    messages: tuple[Message, ...] = ()
    events: tuple[Event, ...] = ()
    pending_tools_calling: tuple[ToolCall, ...] = ()
    approved_tools_calling: tuple[ToolCall, ...] = ()
    approvals: tuple[PendingCall, ...] = ()
    asked: Request | None = None
    paused_from: SessionStatus | None = None
    limit: ModelLimit | None = None
    step_count: int = 0
    granted_from: int = 0
    granted_step: int = -1
    errors_in_a_row: int = 0
    failed_turn: int = -1
    incomplete_answers: int = 0
    spent: Spent = Spent()
    error: ErrorInfo | None = None
    created_at: str
    last_modified: str
    metadata: FrozenObject = EMPTY_OBJECT

    def with_changes(self, **changes: object) -> Self:
        """Return a copy with ``changes`` to its fields. The values are not validated. Raise TypeError for an
        unknown field."""
        if not changes.keys() <= _FIELDS:
            raise TypeError(f"no field of a state: {', '.join(changes.keys() - _FIELDS)}")
        return self.model_copy(update=changes)

    def with_messages(self, *new: Message) -> Self:
        """Return a copy with the messages ``new`` appended."""
        return self.with_changes(messages=(*self.messages, *new))

    @property
    def open_calls(self) -> tuple[ToolCall, ...]:
        """The calls of the last answer that have no result yet, in the model's order."""
        answered: set[str] = set()
        for message in reversed(self.messages):
            if isinstance(message, ToolMessage):
                answered.add(message.tool_call_id)
            elif isinstance(message, AssistantMessage):
                return tuple(call for call in message.tool_calls if call.id not in answered)
        return ()

    def asked_call(self, call: ToolCall) -> PendingCall | None:
        """Return ``call`` as it was shown to a person, None if nobody was asked about it."""
        waiting = self.asked.calls if self.asked is not None else ()
        return next((each for each in (*self.approvals, *waiting) if each.id == call.id), None)

    @property
    def said_last(self) -> str:
        """The role of the newest message, empty if there is none."""
        return self.messages[-1].role if self.messages else ""


_FIELDS: Final = AgentState.model_fields.keys()


class Done(Frozen):
    """The session ended. ``final_state`` is the state without its events."""

    type: Literal["done"] = "done"
    reason: str = ""
    final_state: AgentState


Event: TypeAlias = Annotated[
    LlmStart
    | LlmStream
    | LlmResult
    | LlmIncomplete
    | Thought
    | PlanChanged
    | UsageReported
    | ToolPending
    | ToolFinished
    | HumanApproveRequired
    | HumanPromptRequired
    | HumanSelectRequired
    | HumanAnswered
    | MessageReceived
    | Paused
    | Resumed
    | RateLimited
    | Cancelled
    | Done
    | Failed,
    Field(discriminator="type"),
]


class StepResult(Frozen):
    """The result of a step: its ``events``, the ``new_state``, and the kind of its ``instruction``."""

    events: tuple[Event, ...]
    new_state: AgentState
    instruction: str = ""


def create_initial_state(
    *,
    session_id: str,
    messages: Sequence[Message | Mapping[str, object]] = (),
    metadata: Mapping[str, JsonValue] | None = None,
    now: int | None = None,
) -> AgentState:
    """Return the initial state of the session ``session_id``.

    - ``messages``: messages, or mappings with ``role`` and ``content``
    - ``metadata``: kept unchanged
    - ``now``: the start time in nanoseconds since the epoch, default the current time of this machine

    Raise pydantic's `ValidationError` if a message or the metadata has another shape.
    """
    began = timestamp(time.time_ns() if now is None else now)
    return AgentState.model_validate(
        {
            "session_id": session_id,
            "messages": tuple(messages),
            "created_at": began,
            "last_modified": began,
            "metadata": metadata or {},
        }
    )


def call_key(state: AgentState, call: ToolCall) -> str:
    """Return a key for ``call`` in ``state``, unique in its session. It stays the same until the call has a
    result, and is not reused after that."""
    turn = _turn_of(state, call)
    if turn is not None and call.id in {each.id for each in state.open_calls}:
        at, place = turn
        return f"{state.session_id}/{at}/{place}"
    # No model made the call, so the number of its earlier results is part of the key.
    made = sum(isinstance(each, ToolMessage) and each.tool_call_id == call.id for each in state.messages)
    return f"{state.session_id}/-/{call.id}/{made}"


def count_failure(state: AgentState, call: ToolCall) -> AgentState:
    """Return ``state`` with the failure of ``call`` counted. Failures in one turn of the model count once."""
    turn, _ = _turn_of(state, call) or (-1, 0)
    if turn >= 0 and turn == state.failed_turn:
        return state
    return state.with_changes(errors_in_a_row=state.errors_in_a_row + 1, failed_turn=turn)


def _turn_of(state: AgentState, call: ToolCall) -> tuple[int, int] | None:
    """Return the index of the message with ``call``, and the call's index there; None if the newest message
    of the model does not have it."""
    for at in range(len(state.messages) - 1, -1, -1):
        message = state.messages[at]
        if isinstance(message, AssistantMessage):
            ids = [each.id for each in message.tool_calls]
            return (at, ids.index(call.id)) if call.id in ids else None
    return None
