"""The built-in executors: each carries out one kind of instruction and gives events and a new state."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import time
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from typing import Final, cast

from watchroom import names
from watchroom.errors import (
    InvalidToolArguments,
    LlmProviderRequired,
    TooLarge,
    ToolFailed,
    ToolNotFound,
    WatchroomError,
)
from watchroom.model import MAX_TEXT_BYTES, Json
from watchroom.requests import AskedCall, Policy, Request, parsed, stricter
from watchroom.runtime.agent import (
    Agent,
    AgentTool,
    CallOrigin,
    Executor,
    RuntimeConfig,
    Tool,
    WithModel,
    WithPolicies,
)
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
from watchroom.runtime.messages import AssistantMessage, Message, ToolCall, ToolMessage
from watchroom.runtime.models.accumulate import Answer, chunk_of, without_halves
from watchroom.runtime.models.protocol import ModelPayload, ModelRuntime, Usage
from watchroom.runtime.state import AgentState, StepResult, call_key
from watchroom.runtime.threads import in_own_thread, is_cancelling
from watchroom.texts import Language, catalogue

MOST_REASON: Final = 500
_log = logging.getLogger("watchroom")


class Executors:
    """The built-in executors for ``agent`` as ``config`` sets it up."""

    def __init__(self, agent: Agent, config: RuntimeConfig) -> None:
        self._agent = agent
        self._config = config
        self._call_ids = _CallIds()
        # Asked once: a protocol that is checked as the program runs is slow to check.
        self._with_model = agent if isinstance(agent, WithModel) else None
        self._with_policies = agent if isinstance(agent, WithPolicies) else config

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
        self._streams(events, LlmStart(model=payload.model, messages=len(payload.messages)))
        whole = Answer(f"call_{state.step_count}", self._call_ids.of(state))
        used: Usage | None = None
        stream: object = None
        try:
            stream = model(payload)
            async for given in stream:
                chunk = chunk_of(given)
                whole.add(chunk)
                used = chunk.usage or used
                self._streams(events, LlmStream(chunk=chunk))
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

    async def call_tool(self, instruction: Instruction, state: AgentState) -> StepResult:
        """Run a call, if the policy lets it, and take the result into the messages.

        What goes wrong in a tool is an event, and the model is told, so that it can try otherwise.
        """
        if not isinstance(instruction, CallTool):
            raise TypeError(instruction.type)
        call = instruction.tool_call
        name = call.function.name
        policy = self._policy(name)
        if policy == "ask" and not instruction.approved:
            return await self.request_human_approve(RequestHumanApprove(pending_tools_calling=(call,)), state)
        before, state = state, _taken_off(state, call)
        if policy == "never":
            return self._forbidden(state, call)
        tool = self._agent.tools.get(name)
        if tool is None:
            return self._broke(state, call, ToolNotFound(tool=names.storable(name, 100)))
        try:
            arguments = _arguments(call)
        except InvalidToolArguments as error:
            return self._broke(state, call, error)
        key = call_key(before, call)
        again = self._config.ledger is not None and await self._config.ledger.begins(call, key, tool)
        if again and not (isinstance(tool, AgentTool) and (tool.repeatable or tool.recovers)):
            doubt = self._words("tool_interrupted", tool=name)
            return self._gave(state, call, {"success": False, "error": "tool_interrupted", **doubt})
        try:
            result = await _run(tool, arguments, CallOrigin(key, again))
            return self._gave(state, call, result)
        except (Exception, asyncio.CancelledError) as error:  # a tool may raise anything: the session goes on
            if isinstance(error, asyncio.CancelledError) and is_cancelling():
                raise
            return self._broke(state, call, _tool_error(name, error))

    async def finish(self, instruction: Instruction, state: AgentState) -> StepResult:
        """End the session; a message to it begins it again."""
        if not isinstance(instruction, Finish):
            raise TypeError(instruction.type)
        ended = state.but(status="done")
        done = Done(reason=instruction.reason, final_state=ended.but(events=()))
        return StepResult(events=(done,), new_state=ended)

    async def request_human_approve(self, instruction: Instruction, state: AgentState) -> StepResult:
        """Wait until a person has decided on each of the calls. Nobody is asked what may not be done."""
        if not isinstance(instruction, RequestHumanApprove):
            raise TypeError(instruction.type)
        calls = instruction.pending_tools_calling
        forbidden = next((call for call in calls if self._policy(call.function.name) == "never"), None)
        if forbidden is not None:
            return self._forbidden(state, forbidden)
        asked = Request(
            "approve",
            calls=tuple(AskedCall(call.id, call.function.name, call.function.arguments) for call in calls),
            expires=self._expires(instruction.timeout),
        )
        required = HumanApproveRequired(pending_tools_calling=calls, session_id=state.session_id)
        waiting = _waiting(state, asked).but(pending_tools_calling=calls)
        return StepResult(events=(required, ToolPending(tools_calling=calls)), new_state=waiting)

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
        return StepResult(events=(required,), new_state=_waiting(state, asked))

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
        return StepResult(events=(required,), new_state=_waiting(state, asked))

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
            if isinstance(tool, AgentTool) and tool.definition and self._policy(name) != "never"
        )

    def _policy(self, tool: str) -> Policy:
        """The stricter one of the agent's and the configuration's."""
        return stricter(self._config.policies.of(tool), self._with_policies.policies.of(tool))

    def _expires(self, timeout: float | None) -> int | None:
        seconds = self._config.ask_timeout if timeout is None else timeout
        return None if seconds is None else time.time_ns() + int(seconds * 1e9)

    def _words(self, key: str, **values: str) -> dict[str, str]:
        texts = catalogue(self._config.language)
        return {
            part: texts(f"error.{key}.{part}", **(values if part == "message" else {}))
            for part in ("message", "suggestion")
        }

    def _forbidden(self, state: AgentState, call: ToolCall) -> StepResult:
        refusal = self._words("tool_forbidden", tool=names.storable(call.function.name, 100))
        return self._gave(state, call, {"success": False, "error": "tool_forbidden", **refusal})

    def _streams(self, events: list[Event], event: Event) -> None:
        events.append(event)
        tell(self._config, event)

    @staticmethod
    def _gave(state: AgentState, call: ToolCall, result: Json) -> StepResult:
        content = _told(result)
        event = ToolResult(id=call.id, result=json.loads(content))
        after = _with_result(state, call, content).but(errors_in_a_row=0)
        return StepResult(events=(event,), new_state=after)

    def _broke(self, state: AgentState, call: ToolCall, error: WatchroomError) -> StepResult:
        info = error_info(error, self._config.language)
        failure: Json = {
            "success": False,
            "error": info.code,
            "message": info.message,
            "suggestion": info.suggestion,
        }
        after = _with_result(state, call, _told(failure)).but(errors_in_a_row=state.errors_in_a_row + 1)
        return StepResult(events=(Failed(error=info),), new_state=after)


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


def tell(config: RuntimeConfig, event: Event) -> None:
    """Have whoever listens hear of an event. What they make of it changes nothing."""
    if config.on_event is None:
        return
    try:
        config.on_event(event)
    except Exception:  # noqa: BLE001  # it is logged, and the step goes on
        _log.exception("on_event failed")


def error_info(error: BaseException, language: Language) -> ErrorInfo:
    """An error as it is kept. Of one that is not ours, what it is and says."""
    if isinstance(error, WatchroomError):
        return ErrorInfo(
            code=error.code, message=error.message(language), suggestion=error.suggestion(language)
        )
    text = names.storable(f"{type(error).__name__}: {error}", MOST_REASON)
    return ErrorInfo(code="agent_failed", message=text)


def failed(
    state: AgentState, error: BaseException, language: Language, before: Sequence[Event] = ()
) -> StepResult:
    """The step that ``error`` ended, after the events ``before``."""
    info = error_info(error, language)
    after = state.but(status="error", error=info, errors_in_a_row=state.errors_in_a_row + 1)
    return StepResult(events=(*before, Failed(error=info)), new_state=after)


def _charged(state: AgentState, used: Usage | None) -> AgentState:
    """The state with one more request to a model, and what that used."""
    spent = state.spent
    more = {
        "model_calls": spent.model_calls + 1,
        "input_tokens": spent.input_tokens + (used.input_tokens if used else 0),
        "output_tokens": spent.output_tokens + (used.output_tokens if used else 0),
    }
    return state.but(spent=spent.model_copy(update=more))


def _waiting(state: AgentState, asked: Request) -> AgentState:
    return state.but(status="waiting_for_human_input", asked=asked)


def _taken_off(state: AgentState, call: ToolCall) -> AgentState:
    """The state without ``call`` among those that wait; the request is over when none waits any more."""
    if call.id not in {each.id for each in (*state.pending_tools_calling, *state.approved_tools_calling)}:
        return state
    pending = tuple(each for each in state.pending_tools_calling if each.id != call.id)
    approved = tuple(each for each in state.approved_tools_calling if each.id != call.id)
    asked = state.asked
    if asked is not None:
        asked = replace(asked, calls=tuple(each for each in asked.calls if each.id != call.id))
    return state.but(
        pending_tools_calling=pending,
        approved_tools_calling=approved,
        asked=asked if pending else None,
        status="waiting_for_human_input" if pending else state.status,
    )


def _with_result(state: AgentState, call: ToolCall, content: str) -> AgentState:
    """The state with what came of a call; where a person changed its arguments, the model is told."""
    asked = next((each for each in state.open_calls if each.id == call.id), call)
    if asked.function.arguments != call.function.arguments:
        content = f'{{"edited_arguments":{call.function.arguments.strip()},"result":{content}}}'
    return state.with_messages(ToolMessage(tool_call_id=call.id, content=content))


def _arguments(call: ToolCall) -> Mapping[str, Json]:
    text = call.function.arguments.strip() or "{}"
    try:
        arguments = parsed(text)
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
        result = await in_own_thread(tool.run, arguments, origin)
    elif inspect.iscoroutinefunction(tool):
        return cast(Json, await tool(arguments))
    else:
        result = await in_own_thread(tool, arguments)
    return await result if inspect.isawaitable(result) else result


def _told(result: Json) -> str:
    """A result as its model reads it. Raises `TooLarge`, or another error where it is no JSON."""
    text = json.dumps(result, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    if not names.is_unicode(text):
        text = without_halves(text)
    size = len(text.encode())
    if size > MAX_TEXT_BYTES:
        raise TooLarge(size=size, limit=MAX_TEXT_BYTES)
    return text


def _tool_error(name: str, error: BaseException) -> WatchroomError:
    if isinstance(error, WatchroomError):
        return error
    return ToolFailed(tool=name, reason=names.storable(f"{type(error).__name__}: {error}", MOST_REASON))
