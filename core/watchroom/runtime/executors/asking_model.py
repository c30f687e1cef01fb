"""Asking the model: its answer is streamed, put together, and charged to the session."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Container, Mapping

from watchroom.errors import LlmProviderRequired
from watchroom.model import Json
from watchroom.runtime.agent import Agent, AgentTool, RuntimeConfig, WithModel
from watchroom.runtime.events import Event, LlmAnswer, LlmResult, LlmStart, LlmStream
from watchroom.runtime.executors.policies import ToolPolicies
from watchroom.runtime.failures import failed
from watchroom.runtime.instructions import CallLlm, Instruction
from watchroom.runtime.listening import tell
from watchroom.runtime.messages import AssistantMessage, Message
from watchroom.runtime.models.accumulate import Answer, SurrogateJoiner, chunk_of
from watchroom.runtime.models.protocol import ModelPayload, ModelRuntime, Usage
from watchroom.runtime.state import AgentState, StepResult
from watchroom.runtime.threads import is_cancelling


class ModelAsker:
    """Asks the model of ``agent``, or that of ``config`` where the agent has none."""

    def __init__(self, agent: Agent, config: RuntimeConfig, policies: ToolPolicies) -> None:
        self._agent = agent
        self._config = config
        self._policies = policies
        self._call_ids = _CallIds()
        # Asked once: a protocol that is checked as the program runs is slow to check.
        self._with_model = agent if isinstance(agent, WithModel) else None

    async def call_llm(self, instruction: Instruction, state: AgentState) -> StepResult:
        """Ask the model, and take its answer into the messages. A part of an answer changes nothing.

        Raises `LlmProviderRequired`; any other error is the step's result.
        """
        if not isinstance(instruction, CallLlm):
            raise TypeError(instruction.type)
        model = self._model()
        payload = instruction.payload or ModelPayload.model_construct(
            messages=state.messages, tools=self._definitions(), model="", options={}
        )
        events: list[Event] = []
        self._streams(events, LlmStart(model=payload.model, messages=len(payload.messages)))
        whole = Answer(f"call_{state.step_count}", self._call_ids.of(state))
        used: Usage | None = None
        joiner = SurrogateJoiner()
        stream: object = None
        try:
            stream = model(payload)
            async for given in stream:
                chunk = joiner.join(chunk_of(given))
                whole.add(chunk)
                used = chunk.usage or used
                self._streams(events, LlmStream(chunk=chunk))
            if (left := joiner.rest()) is not None:
                whole.add(left)
                self._streams(events, LlmStream(chunk=left))
            answer = whole.whole()
        except (Exception, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and is_cancelling():
                raise
            return failed(_charged(state, used), error, self._config.language, tuple(events))
        finally:
            close = getattr(stream, "aclose", None) or getattr(stream, "close", None)
            closing = close() if close is not None else None
            if inspect.isawaitable(closing):
                await closing
        result = LlmResult(
            result=LlmAnswer(content=answer.content, tool_calls=answer.tool_calls),
            usage=answer.usage,
            finish_reason=answer.finish_reason,
        )
        said = AssistantMessage(content=answer.content, tool_calls=answer.tool_calls)
        after = _charged(state, used).with_messages(said).but(errors_in_a_row=0)
        return StepResult(events=(*events, result), new_state=after)

    def _model(self) -> ModelRuntime:
        own = self._with_model.model_runtime if self._with_model is not None else None
        model = own or self._config.model_runtime
        if model is None:
            raise LlmProviderRequired()
        return model

    def _definitions(self) -> tuple[Mapping[str, Json], ...]:
        """Of the tools that have one and may be called."""
        return tuple(
            tool.definition
            for name, tool in self._agent.tools.items()
            if isinstance(tool, AgentTool) and tool.definition and self._policies.of(name) != "never"
        )

    def _streams(self, events: list[Event], event: Event) -> None:
        events.append(event)
        tell(self._config, event)


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


def _charged(state: AgentState, used: Usage | None) -> AgentState:
    """The state with one more request to a model, and what that used."""
    spent = state.spent
    more = {
        "model_calls": spent.model_calls + 1,
        "input_tokens": spent.input_tokens + (used.input_tokens if used else 0),
        "output_tokens": spent.output_tokens + (used.output_tokens if used else 0),
    }
    return state.but(spent=spent.model_copy(update=more))
