"""The built-in executors: each carries out one kind of instruction and gives events and a new state."""

from __future__ import annotations

import asyncio
import inspect
import json
import time
from collections.abc import Mapping, Sequence
from typing import Final, cast

from watchroom import names
from watchroom.errors import (
    InvalidToolArguments,
    LlmProviderRequired,
    ToolFailed,
    ToolNotFound,
    WatchroomError,
)
from watchroom.model import Json
from watchroom.requests import AskedCall, Request
from watchroom.runtime.agent import Agent, AgentTool, CallOrigin, Executor, RuntimeConfig, Tool, WithModel
from watchroom.runtime.events import (
    Done,
    ErrorInfo,
    Event,
    Failed,
    HumanApproveRequired,
    HumanPromptRequired,
    HumanSelectRequired,
    LlmAnswer,
    LlmResult,
    LlmStart,
    LlmStream,
    ToolPending,
    ToolResult,
)
from watchroom.runtime.instructions import (
    CallLlm,
    CallTool,
    Finish,
    Instruction,
    RequestHumanApprove,
    RequestHumanPrompt,
    RequestHumanSelect,
)
from watchroom.runtime.messages import AssistantMessage, ToolCall, ToolMessage
from watchroom.runtime.models.accumulate import Answer, chunk_of
from watchroom.runtime.models.protocol import ModelPayload, ModelRuntime
from watchroom.runtime.state import AgentState, StepResult
from watchroom.texts import Language, catalogue

MOST_REASON: Final = 500


class Executors:
    """The built-in executors for ``agent`` as ``config`` sets it up."""

    def __init__(self, agent: Agent, config: RuntimeConfig) -> None:
        self._agent = agent
        self._config = config

    def by_kind(self) -> dict[str, Executor]:
        return {
            "call_llm": self.call_llm,
            "call_tool": self.call_tool,
            "finish": self.finish,
            "request_human_approve": self.request_human_approve,
            "request_human_prompt": self.request_human_prompt,
            "request_human_select": self.request_human_select,
        }

    async def call_llm(self, instruction: Instruction, state: AgentState) -> StepResult:
        """Ask the model, and take its answer into the messages. A part of an answer changes nothing."""
        if not isinstance(instruction, CallLlm):
            raise TypeError(instruction.type)
        model = self._model()
        payload = instruction.payload or ModelPayload.model_construct(
            messages=state.messages, tools=self._definitions(), model="", options={}
        )
        events: list[Event] = []
        self._happens(events, LlmStart(model=payload.model, messages=len(payload.messages)))
        whole = Answer(f"call_{state.step_count}")
        stream = model(payload)
        try:
            async for given in stream:
                chunk = chunk_of(given)
                whole.add(chunk)
                self._happens(events, LlmStream(chunk=chunk))
            answer = whole.whole()
        except Exception as error:  # noqa: BLE001  # spec 5: an executor's error becomes an event
            return failed(state, error, self._config.language, tuple(events))
        finally:
            close = getattr(stream, "aclose", None)
            if close is not None:
                await close()
        result = LlmResult(
            result=LlmAnswer(content=answer.content, tool_calls=answer.tool_calls),
            usage=answer.usage,
            finish_reason=answer.finish_reason,
        )
        self._happens(events, result)
        spent = state.spent
        used = answer.usage
        said = AssistantMessage(content=answer.content, tool_calls=answer.tool_calls)
        return StepResult(
            events=tuple(events),
            new_state=state.with_messages(said).but(
                spent=spent.model_copy(
                    update={
                        "model_calls": spent.model_calls + 1,
                        "input_tokens": spent.input_tokens + (used.input_tokens if used else 0),
                        "output_tokens": spent.output_tokens + (used.output_tokens if used else 0),
                    }
                ),
                errors_in_a_row=0,
            ),
        )

    async def call_tool(self, instruction: Instruction, state: AgentState) -> StepResult:
        """Run a call, if the policy lets it, and take the result into the messages.

        What goes wrong in a tool is an event, and the model is told, so that it can try otherwise.
        """
        if not isinstance(instruction, CallTool):
            raise TypeError(instruction.type)
        call = instruction.tool_call
        name = call.function.name
        policy = self._config.policies.of(name)
        if policy == "ask" and not instruction.approved:
            return await self.request_human_approve(RequestHumanApprove(pending_tools_calling=(call,)), state)
        state = _taken_off(state, call)
        if policy == "never":
            refusal = self._words("tool_forbidden", tool=names.storable(name, 100))
            return self._gave(state, call, {"success": False, "error": "tool_forbidden", **refusal})
        tool = self._agent.tools.get(name)
        if tool is None:
            return self._broke(state, call, ToolNotFound(tool=names.storable(name, 100)))
        try:
            arguments = _arguments(call)
        except InvalidToolArguments as error:
            return self._broke(state, call, error)
        key = f"{state.session_id}/{len(state.messages)}"
        again = self._config.ledger is not None and await self._config.ledger.begins(call, key, tool)
        if again and not (isinstance(tool, AgentTool) and (tool.repeatable or tool.recovers)):
            doubt = self._words("tool_interrupted", tool=name)
            return self._gave(state, call, {"success": False, "error": "tool_interrupted", **doubt})
        try:
            result = await _run(tool, arguments, CallOrigin(key, again))
            content = _as_json(result)
        except Exception as error:  # noqa: BLE001  # a tool may raise anything, and the session goes on
            return self._broke(state, call, _tool_error(name, error))
        return self._gave(state, call, json.loads(content), content)

    async def finish(self, instruction: Instruction, state: AgentState) -> StepResult:
        """End the session; a message to it begins it again."""
        if not isinstance(instruction, Finish):
            raise TypeError(instruction.type)
        ended = state.but(status="done")
        done = Done(reason=instruction.reason, final_state=ended.but(events=()))
        return self._result(ended, done)

    async def request_human_approve(self, instruction: Instruction, state: AgentState) -> StepResult:
        """Wait until a person has decided on each of the calls."""
        if not isinstance(instruction, RequestHumanApprove):
            raise TypeError(instruction.type)
        calls = instruction.pending_tools_calling
        asked = Request(
            "approve",
            calls=tuple(AskedCall(call.id, call.function.name, call.function.arguments) for call in calls),
            expires=self._expires(instruction.timeout),
        )
        required = HumanApproveRequired(pending_tools_calling=calls, session_id=state.session_id)
        waiting = _waiting(state, asked).but(pending_tools_calling=calls)
        return self._result(waiting, required, ToolPending(tools_calling=calls))

    async def request_human_prompt(self, instruction: Instruction, state: AgentState) -> StepResult:
        """Wait until a person has written something."""
        if not isinstance(instruction, RequestHumanPrompt):
            raise TypeError(instruction.type)
        asked = Request(
            "prompt",
            prompt=instruction.prompt,
            metadata=instruction.metadata,
            expires=self._expires(instruction.timeout),
        )
        required = HumanPromptRequired(
            prompt=instruction.prompt, metadata=instruction.metadata, session_id=state.session_id
        )
        return self._result(_waiting(state, asked), required)

    async def request_human_select(self, instruction: Instruction, state: AgentState) -> StepResult:
        """Wait until a person has chosen."""
        if not isinstance(instruction, RequestHumanSelect):
            raise TypeError(instruction.type)
        asked = Request(
            "select",
            prompt=instruction.prompt,
            options=instruction.options,
            multi=instruction.multi,
            metadata=instruction.metadata,
            expires=self._expires(instruction.timeout),
        )
        required = HumanSelectRequired(
            prompt=instruction.prompt,
            options=instruction.options,
            multi=instruction.multi,
            metadata=instruction.metadata,
            session_id=state.session_id,
        )
        return self._result(_waiting(state, asked), required)

    def _model(self) -> ModelRuntime:
        own = self._agent.model_runtime if isinstance(self._agent, WithModel) else None
        model = own or self._config.model_runtime
        if model is None:
            raise LlmProviderRequired()
        return model

    def _definitions(self) -> tuple[Mapping[str, Json], ...]:
        """Of the tools that have one and may be called."""
        return tuple(
            tool.definition
            for name, tool in self._agent.tools.items()
            if isinstance(tool, AgentTool) and tool.definition and self._config.policies.of(name) != "never"
        )

    def _expires(self, timeout: float | None) -> int | None:
        seconds = self._config.ask_timeout if timeout is None else timeout
        return None if seconds is None else time.time_ns() + int(seconds * 1e9)

    def _words(self, key: str, **values: str) -> dict[str, str]:
        texts = catalogue(self._config.language)
        return {
            part: texts(f"error.{key}.{part}", **(values if part == "message" else {}))
            for part in ("message", "suggestion")
        }

    def _happens(self, events: list[Event], event: Event) -> None:
        events.append(event)
        if self._config.on_event is not None:
            self._config.on_event(event)

    def _result(self, state: AgentState, *events: Event) -> StepResult:
        for event in events:
            self._happens([], event)
        return StepResult(events=events, new_state=state)

    def _gave(
        self, state: AgentState, call: ToolCall, result: Mapping[str, Json], content: str | None = None
    ) -> StepResult:
        text = _as_json(result) if content is None else content
        edited = _edited_arguments(state, call)
        if edited is not None:
            text = _as_json({"edited_arguments": edited, "result": cast(Json, json.loads(text))})
        told = state.with_messages(ToolMessage(tool_call_id=call.id, content=text)).but(errors_in_a_row=0)
        return self._result(told, ToolResult.model_validate({"id": call.id, "result": result}))

    def _broke(self, state: AgentState, call: ToolCall, error: WatchroomError) -> StepResult:
        info = error_info(error, self._config.language)
        told: Json = {
            "success": False,
            "error": info.code,
            "message": info.message,
            "suggestion": info.suggestion,
        }
        after = state.with_messages(ToolMessage(tool_call_id=call.id, content=_as_json(told)))
        return self._result(after.but(errors_in_a_row=state.errors_in_a_row + 1), Failed(error=info))


def error_info(error: Exception, language: Language) -> ErrorInfo:
    """An error as it is kept. Of one that is not ours, what it is and says."""
    if isinstance(error, WatchroomError):
        return ErrorInfo(
            code=error.code, message=error.message(language), suggestion=error.suggestion(language)
        )
    text = names.storable(f"{type(error).__name__}: {error}", MOST_REASON)
    return ErrorInfo(code="agent_failed", message=text)


def failed(
    state: AgentState, error: Exception, language: Language, before: Sequence[Event] = ()
) -> StepResult:
    """The step that ``error`` ended, after the events ``before``."""
    info = error_info(error, language)
    after = state.but(status="error", error=info, errors_in_a_row=state.errors_in_a_row + 1)
    return StepResult(events=(*before, Failed(error=info)), new_state=after)


def _waiting(state: AgentState, asked: Request) -> AgentState:
    return state.but(status="waiting_for_human_input", asked=asked)


def _taken_off(state: AgentState, call: ToolCall) -> AgentState:
    """The state without ``call`` among those that wait; the request is over when none waits any more."""
    if call.id not in {each.id for each in (*state.pending_tools_calling, *state.approved_tools_calling)}:
        return state
    pending = tuple(each for each in state.pending_tools_calling if each.id != call.id)
    approved = tuple(each for each in state.approved_tools_calling if each.id != call.id)
    after = state.but(pending_tools_calling=pending, approved_tools_calling=approved)
    return after.but(status="waiting_for_human_input") if pending else after.but(asked=None)


def _edited_arguments(state: AgentState, call: ToolCall) -> Json:
    """The arguments that were run, where a person changed those of the model."""
    asked = next((each for each in state.open_calls if each.id == call.id), call)
    return None if asked.function.arguments == call.function.arguments else dict(_arguments(call))


def _arguments(call: ToolCall) -> Mapping[str, Json]:
    text = call.function.arguments.strip() or "{}"
    try:
        arguments = json.loads(text)
    except (ValueError, RecursionError) as error:
        problem = names.storable(str(error), 200)
        raise InvalidToolArguments(tool=call.function.name, problem=problem) from error
    if not isinstance(arguments, dict):
        raise InvalidToolArguments(tool=call.function.name, problem=f"not an object: {text[:50]}")
    return cast("Mapping[str, Json]", arguments)


async def _run(tool: Tool, arguments: Mapping[str, Json], origin: CallOrigin) -> Json:
    if isinstance(tool, AgentTool):
        if inspect.iscoroutinefunction(tool.run):
            return cast(Json, await tool.run(arguments, origin))
        result = await asyncio.to_thread(tool.run, arguments, origin)
    elif inspect.iscoroutinefunction(tool):
        return cast(Json, await tool(arguments))
    else:
        result = await asyncio.to_thread(tool, arguments)
    return await result if inspect.isawaitable(result) else result


def _as_json(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _tool_error(name: str, error: Exception) -> WatchroomError:
    if isinstance(error, WatchroomError):
        return error
    return ToolFailed(tool=name, reason=names.storable(f"{type(error).__name__}: {error}", MOST_REASON))
