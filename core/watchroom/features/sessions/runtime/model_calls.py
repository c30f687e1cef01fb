"""The executor of ``call_llm``: it streams and assembles the model's answer and counts its usage."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Container, Mapping, Sequence
from typing import Final, Literal, TypeAlias

from watchroom.errors import IncompleteAnswer, LlmProviderRequired, ModelLimited
from watchroom.features.sessions.runtime.agent import AgentProgram, AgentTool, CallLlm, RuntimeConfig
from watchroom.features.sessions.runtime.events import (
    LlmAnswer,
    LlmIncomplete,
    LlmResult,
    LlmStart,
    LlmStream,
)
from watchroom.features.sessions.runtime.messages import AssistantMessage, Message, UserMessage
from watchroom.features.sessions.runtime.models.answer_accumulator import (
    AnswerAccumulator,
    ModelAnswer,
    SurrogateJoiner,
    to_chunk,
)
from watchroom.features.sessions.runtime.models.protocol import ModelPayload, ModelRuntime, Usage
from watchroom.features.sessions.runtime.prices import price_usage, total_of
from watchroom.features.sessions.runtime.state import AgentState, Event, StepResult
from watchroom.features.sessions.runtime.step_results import fail_step, park_step
from watchroom.features.sessions.runtime.threads import is_task_cancelled, run_in_thread
from watchroom.features.sessions.runtime.tool_calls import ToolPolicies
from watchroom.model import SYSTEM, Json
from watchroom.texts import catalogue

Incompleteness: TypeAlias = Literal["length", "empty"]
_CUT_OFF: Final = frozenset({"length", "max_tokens"})
"""The finish reasons of an answer that was cut off at the maximum length."""
_BYTES_PER_TOKEN: Final = 4
"""Approximate bytes of UTF-8 per token, in English, Chinese and JSON."""


class ModelExecutor:
    """Asks the model of ``agent``, default: the model of ``config``. ``policies`` decide which tools are
    offered."""

    def __init__(self, agent: AgentProgram, config: RuntimeConfig, policies: ToolPolicies) -> None:
        self._agent = agent
        self._config = config
        self._policies = policies
        self._call_ids = _CallIds()

    async def call_llm(self, instruction: CallLlm, state: AgentState) -> StepResult:
        """Ask the model and append its answer to the messages. A partial answer changes no messages.

        Raise `LlmProviderRequired`. Any other error is the result of the step.
        """
        model = self._find_model()
        payload = instruction.payload or ModelPayload.model_construct(
            messages=state.messages, tools=self._tool_definitions(), model="", options={}
        )
        events: list[Event] = []
        self._emit(events, LlmStart(model=payload.model, messages=len(payload.messages)))
        whole = AnswerAccumulator(f"call_{state.step_count}", self._call_ids.of(state))
        used: Usage | None = None
        joiner = SurrogateJoiner()
        stream: object = None
        try:
            stream = model(payload)
            async for given in stream:
                chunk = joiner.join(to_chunk(given))
                whole.add(chunk)
                used = chunk.usage or used
                self._emit(events, LlmStream(chunk=chunk))
            if (left := joiner.rest()) is not None:
                whole.add(left)
                self._emit(events, LlmStream(chunk=left))
            answer = whole.whole()
        except (Exception, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and is_task_cancelled():
                raise
            charged = await _charge(state, used, payload, events)
            if isinstance(error, ModelLimited) and self._config.gate is not None:
                # Outside of a session, nobody can resume a parked state.
                return park_step(charged, error, self._config.language, tuple(events))
            return fail_step(charged, error, self._config.language, tuple(events))
        finally:
            close = getattr(stream, "aclose", None) or getattr(stream, "close", None)
            closing = close() if close is not None else None
            if inspect.isawaitable(closing):
                await closing
        charged = await _charge(state, used, payload, events)
        result = LlmResult(
            result=LlmAnswer(content=answer.content, tool_calls=answer.tool_calls),
            usage=answer.usage,
            finish_reason=answer.finish_reason,
        )
        events.append(result)
        problem = _find_problem(answer)
        if problem is not None:
            return self._handle_incomplete(charged, events, answer.content, problem)
        said = AssistantMessage(content=answer.content, tool_calls=answer.tool_calls)
        after = charged.with_messages(said).with_changes(incomplete_answers=0)
        if state.said_last != "tool":
            # If the newest message is not a tool's result, the earlier failure was not a failed call.
            after = after.with_changes(errors_in_a_row=0)
        return StepResult(events=tuple(events), new_state=after)

    def _handle_incomplete(
        self, state: AgentState, events: list[Event], content: str, problem: Incompleteness
    ) -> StepResult:
        """Return the step of an incomplete answer: the model is notified and continues. The session fails at
        the second incomplete answer in a row."""
        language = self._config.language
        notice = UserMessage(content=catalogue(language)(f"incomplete.{problem}"), author=SYSTEM)
        said = (AssistantMessage(content=content),) if content.strip() else ()
        after = state.with_messages(*said, notice).with_changes(
            incomplete_answers=state.incomplete_answers + 1
        )
        events = [*events, LlmIncomplete(reason=problem)]
        if state.incomplete_answers:
            return fail_step(after, IncompleteAnswer(), language, tuple(events))
        return StepResult(events=tuple(events), new_state=after)

    def _find_model(self) -> ModelRuntime:
        own: ModelRuntime | None = getattr(self._agent, "model_runtime", None)
        model = own or self._config.model_runtime
        if model is None:
            raise LlmProviderRequired()
        return model

    def _tool_definitions(self) -> tuple[Mapping[str, Json], ...]:
        """Return the definitions of the tools that may be called."""
        return tuple(
            tool.definition
            for name, tool in self._agent.tools.items()
            if isinstance(tool, AgentTool) and tool.definition and self._policies.of(name) != "never"
        )

    def _emit(self, events: list[Event], event: Event) -> None:
        events.append(event)
        self._config.notify(event)


class _CallIds:
    """The ids of the calls of a session. The last session is cached, so that only new messages are read."""

    def __init__(self) -> None:
        self._seen: tuple[Message, ...] = ()
        self._ids: set[str] = set()

    def of(self, state: AgentState) -> Container[str]:
        known = len(self._seen)
        if state.messages[:known] != self._seen:
            known, self._ids = 0, set()
        for message in state.messages[known:]:
            if isinstance(message, AssistantMessage):
                self._ids.update(call.id for call in message.tool_calls)
        self._seen = state.messages
        return self._ids


def _find_problem(answer: ModelAnswer) -> Incompleteness | None:
    """Return why an answer is incomplete, None if it is complete."""
    if answer.finish_reason in _CUT_OFF:
        return "length"
    return None if answer.tool_calls or answer.content.strip() else "empty"


async def _charge(
    state: AgentState, used: Usage | None, payload: ModelPayload, events: Sequence[Event]
) -> AgentState:
    """Return ``state`` with the usage of one request to a model.

    ``used``: the usage as the provider reports it. Otherwise it is estimated from the payload and ``events``.
    """
    is_counted = used is not None and used.tokens > 0
    counted = used if used is not None and is_counted else _estimate_usage(payload, events)
    total = total_of(counted)
    if not total.priced_by:
        # Loading the table of prices is slow.
        total = await run_in_thread(price_usage, total, counted.model or payload.model)
    spent = state.spent.with_usage(total)
    more = {
        "model_calls": spent.model_calls + 1,
        "estimated_tokens": spent.estimated_tokens + (0 if is_counted else total.tokens),
    }
    return state.with_changes(spent=spent.model_copy(update=more))


def _estimate_usage(payload: ModelPayload, events: Sequence[Event]) -> Usage:
    """Return the estimated tokens of a request; zero if no answer began."""
    chunks = [event.chunk for event in events if isinstance(event, LlmStream)]
    if not chunks:
        return Usage()
    sent = sum(_utf8_size(message.content) for message in payload.messages)
    calls = [call for message in payload.messages for call in getattr(message, "tool_calls", ())]
    sent += sum(_utf8_size(call.function.arguments) for call in calls)
    sent += _utf8_size(json.dumps(payload.tools, ensure_ascii=False)) if payload.tools else 0
    pieces = [piece for chunk in chunks for piece in chunk.tool_calls]
    said = sum(_utf8_size(chunk.content) for chunk in chunks)
    said += sum(_utf8_size(piece.function.name) + _utf8_size(piece.function.arguments) for piece in pieces)
    return Usage(input_tokens=_estimate_tokens(sent), output_tokens=_estimate_tokens(said))


def _utf8_size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _estimate_tokens(size: int) -> int:
    return -(-size // _BYTES_PER_TOKEN)
