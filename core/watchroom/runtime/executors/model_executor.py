"""The executor of ``call_llm``: the model's answer is streamed, assembled, and charged to the session."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Container, Mapping, Sequence
from typing import Final, Literal, TypeAlias

from watchroom.errors import LlmProviderRequired
from watchroom.model import SYSTEM, Json
from watchroom.runtime.agent import AgentProgram, AgentTool, RuntimeConfig
from watchroom.runtime.errors import IncompleteAnswer
from watchroom.runtime.events import LlmAnswer, LlmIncomplete, LlmResult, LlmStart, LlmStream
from watchroom.runtime.executors.tool_policies import ToolPolicies
from watchroom.runtime.instructions import CallLlm
from watchroom.runtime.messages import AssistantMessage, Message, UserMessage
from watchroom.runtime.models.answer_accumulator import (
    AnswerAccumulator,
    ModelAnswer,
    SurrogateJoiner,
    to_chunk,
)
from watchroom.runtime.models.protocol import ModelPayload, ModelRuntime, Usage
from watchroom.runtime.prices import price_usage, total_of
from watchroom.runtime.state import AgentState, Event, StepResult
from watchroom.runtime.step_errors import fail_step
from watchroom.runtime.threads import is_task_cancelled, run_in_thread
from watchroom.texts import catalogue

Incompleteness: TypeAlias = Literal["length", "empty"]
_CUT_OFF: Final = frozenset({"length", "max_tokens"})
"""What servers give as the reason for the end of an answer that had to be longer."""
_BYTES_PER_TOKEN: Final = 4
"""Of UTF-8, roughly, in English, in Chinese and in JSON."""


class ModelExecutor:
    """Asks the model of ``agent``, or that of ``config`` where the agent has none; ``policies`` say which
    tools it is offered."""

    def __init__(self, agent: AgentProgram, config: RuntimeConfig, policies: ToolPolicies) -> None:
        self._agent = agent
        self._config = config
        self._policies = policies
        self._call_ids = _CallIds()

    async def call_llm(self, instruction: CallLlm, state: AgentState) -> StepResult:
        """Carry out ``instruction`` (`CallLlm`) in ``state``: ask the model, and append its answer to the
        messages. A partial answer changes nothing.

        Raises `LlmProviderRequired`; any other error is the step's result."""
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
            # What failed before this answer was no call.
            after = after.with_changes(errors_in_a_row=0)
        return StepResult(events=tuple(events), new_state=after)

    def _handle_incomplete(
        self, state: AgentState, events: list[Event], content: str, problem: Incompleteness
    ) -> StepResult:
        """The step of an incomplete answer: the model is told, and goes on; the second time in a row the
        session fails."""
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
        """Of the tools that have one and may be called."""
        return tuple(
            tool.definition
            for name, tool in self._agent.tools.items()
            if isinstance(tool, AgentTool) and tool.definition and self._policies.of(name) != "never"
        )

    def _emit(self, events: list[Event], event: Event) -> None:
        events.append(event)
        self._config.notify(event)


class _CallIds:
    """Knows which ids the calls of a session have. Of the session that it was asked about last it looks at
    new messages alone, so that an answer costs no more in a long session."""

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
    """What is missing from an answer that has ended, None if it is complete."""
    if answer.finish_reason in _CUT_OFF:
        return "length"
    return None if answer.tool_calls or answer.content.strip() else "empty"


async def _charge(
    state: AgentState, used: Usage | None, payload: ModelPayload, events: Sequence[Event]
) -> AgentState:
    """The state with one more request to a model, and what that used: as its provider says, or estimated from
    what was sent and what came in ``events``."""
    is_counted = used is not None and used.tokens > 0
    counted = used if used is not None and is_counted else _estimate_usage(payload, events)
    total = total_of(counted)
    if not total.priced_by:
        # The table of prices takes a moment to load.
        total = await run_in_thread(price_usage, total, counted.model or payload.model)
    spent = state.spent.with_usage(total)
    more = {
        "model_calls": spent.model_calls + 1,
        "estimated_tokens": spent.estimated_tokens + (0 if is_counted else total.tokens),
    }
    return state.with_changes(spent=spent.model_copy(update=more))


def _estimate_usage(payload: ModelPayload, events: Sequence[Event]) -> Usage:
    """The estimated tokens of a request; none where no answer had begun."""
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
