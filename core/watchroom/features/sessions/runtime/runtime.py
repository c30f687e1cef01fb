"""The runtime of one agent: it takes steps, and keeps no state of its sessions."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, TypeVar, cast

from pydantic import JsonValue, ValidationError

from watchroom import validation
from watchroom.errors import InvalidInstruction, LimitReached
from watchroom.features.sessions.runtime.agent import (
    DEFAULT_STEPS,
    AgentProgram,
    CallLlm,
    CallTool,
    Executor,
    Finish,
    Instruction,
    RequestHumanApprove,
    RequestHumanPrompt,
    RequestHumanSelect,
    RuntimeConfig,
    instructions,
)
from watchroom.features.sessions.runtime.events import LlmStart, LlmStream
from watchroom.features.sessions.runtime.messages import Message, ToolCall
from watchroom.features.sessions.runtime.model_calls import ModelExecutor
from watchroom.features.sessions.runtime.models.answer_accumulator import describe_validation_error
from watchroom.features.sessions.runtime.state import AgentState, Done, StepResult, create_initial_state
from watchroom.features.sessions.runtime.step_results import fail_step
from watchroom.features.sessions.runtime.threads import is_task_cancelled
from watchroom.features.sessions.runtime.tool_calls import (
    RequestExecutor,
    ToolExecutor,
    ToolPolicies,
    wait_for_request,
)
from watchroom.model import timestamp

_WITHOUT_CALL: Final = frozenset(
    {"finish", "request_human_approve", "request_human_prompt", "request_human_select"}
)
"""The instructions that use no budget."""


class AgentRuntime:
    """Takes steps of ``agent`` with ``config``.

    Executors of the agent override executors of ``config``, and these override the built-in executors. One
    runtime can take steps of many sessions concurrently. `Sessions` records steps as rows, which survive a
    crash.

    Example::

        runtime = AgentRuntime(agent, RuntimeConfig(model_runtime=model))
        state = runtime.create_initial_state(session_id="s1", messages=[{"role": "user", "content": "Hello"}])
        while state.status not in ("done", "error", "waiting_for_human_input"):
            state = (await runtime.step(state)).new_state
    """

    def __init__(self, agent: AgentProgram, config: RuntimeConfig | None = None) -> None:
        self.agent = agent
        self.config = config or RuntimeConfig()
        self.executors: Mapping[str, Executor] = {
            **built_in_executors(agent, self.config),
            **self.config.executors,
            **(getattr(agent, "executors", None) or {}),
        }

    @staticmethod
    def create_initial_state(
        *,
        session_id: str,
        messages: Sequence[Message | Mapping[str, object]] = (),
        metadata: Mapping[str, JsonValue] | None = None,
    ) -> AgentState:
        """Return the initial state of a session
        (`watchroom.features.sessions.runtime.create_initial_state`)."""
        return create_initial_state(session_id=session_id, messages=messages, metadata=metadata)

    async def step(self, state: AgentState, tool_call: ToolCall | None = None) -> StepResult:
        """Take the next step from ``state`` and return its events and the new state.

        ``tool_call``: run this call, which a person approved. Default: run an approved call of the state,
        else ask the agent. A paused, parked or cancelled state is returned unchanged. So is a state that
        waits for a person if ``tool_call`` is None. Errors become events. Only a cancellation is raised.
        """
        waits = state.status == "waiting_for_human_input" and tool_call is None
        if waits or state.status in ("paused", "parked", "cancelled"):
            return StepResult(events=(), new_state=state)
        over = self._find_reached_limit(state) if tool_call is None else None
        if over is not None:
            return self._finish_step(state, fail_step(state, over, self.config.language), "limit", 0.0)
        began = time.monotonic()
        kind, result = await self._run_step(state.with_changes(status="running", error=None), tool_call)
        return self._finish_step(state, result, kind, time.monotonic() - began)

    async def _run_step(self, state: AgentState, tool_call: ToolCall | None) -> tuple[str, StepResult]:
        """Return the kind of the next instruction and the result of the step."""
        kind = "agent"
        left = asyncio.timeout(self._seconds_left(state))
        try:
            async with left:
                instruction = await self._next_instruction(state, tool_call)
                held = None if tool_call is not None else await self._hold_call(instruction, state)
                if held is not None:
                    return "limit", held
                executor = self._find_executor(instruction)
                kind = instruction.type
                result: object = await executor(instruction, state)
                if not isinstance(result, StepResult):
                    raise InvalidInstruction(problem=f"{kind}: {type(result).__name__}")
                return kind, result
        except (Exception, asyncio.CancelledError) as error:  # RUN-errors: errors become events
            if isinstance(error, asyncio.CancelledError) and is_task_cancelled():
                raise
            seconds = self.config.limits.seconds
            if left.expired() and seconds is not None:
                error = LimitReached(limit="seconds", most=seconds)
            return kind, fail_step(state, error, self.config.language)

    async def _hold_call(self, instruction: Instruction, state: AgentState) -> StepResult | None:
        """Return the step that asks people because a budget is used up; None if the call may run."""
        gate = self.config.gate
        if gate is None or state.granted_step == state.step_count:
            return None
        if getattr(instruction, "type", None) in _WITHOUT_CALL:
            return None
        asked = await gate.hold_call(state)
        return None if asked is None else wait_for_request(state, asked)

    async def _next_instruction(self, state: AgentState, tool_call: ToolCall | None) -> Instruction:
        if tool_call is not None:
            return CallTool(tool_call=tool_call, approved=True)
        if state.approved_tools_calling:
            return CallTool(tool_call=state.approved_tools_calling[0], approved=True)
        decided: object = self.agent.runner(state)
        if inspect.isawaitable(decided):
            decided = await decided
        if isinstance(decided, Mapping):
            try:
                decided = instructions.validate_python(decided)
            except ValidationError as error:
                raise InvalidInstruction(problem=describe_validation_error(error)) from error
        if isinstance(decided, CallTool) and decided.approved:
            # Only people approve calls.
            decided = decided.model_copy(update={"approved": False})
        return cast(Instruction, decided)

    def _find_executor(self, instruction: Instruction) -> Executor:
        kind = getattr(instruction, "type", None)
        if not isinstance(kind, str):
            raise InvalidInstruction(problem=f"{type(instruction).__name__} is not an instruction")
        executor = self.executors.get(kind)
        if executor is None:
            raise InvalidInstruction(
                problem=f"{validation.escape_unstorable(kind, 100)}: {', '.join(self.executors)}"
            )
        return executor

    def _find_reached_limit(self, state: AgentState) -> LimitReached | None:
        limits = self.config.limits
        steps = "default_steps" if limits.steps == DEFAULT_STEPS else "steps"
        tokens = "estimated_tokens" if state.spent.estimated_tokens else "tokens"
        for name, most, used in (
            (steps, limits.steps, state.step_count - state.granted_from),
            (tokens, limits.tokens, state.spent.tokens),
            ("seconds", limits.seconds, state.spent.seconds),
            ("errors", limits.errors, state.errors_in_a_row),
        ):
            if most is not None and used >= most:
                return LimitReached(limit=name, most=most)
        return None

    def _seconds_left(self, state: AgentState) -> float | None:
        most = self.config.limits.seconds
        return None if most is None else max(0.0, most - state.spent.seconds)

    def _finish_step(self, before: AgentState, result: StepResult, kind: str, seconds: float) -> StepResult:
        """Return the finished step. Its events are part of the state, and its time and calls are counted."""
        after = result.new_state
        spent = after.spent.model_copy(
            update={
                "seconds": before.spent.seconds + seconds,
                "tool_calls": before.spent.tool_calls + (kind == "call_tool"),
            }
        )
        now = timestamp(self.config.clock())
        counted = after.with_changes(step_count=before.step_count + 1, spent=spent, last_modified=now)
        final = counted.with_changes(events=())
        events = tuple(
            event.model_copy(update={"final_state": final}) if isinstance(event, Done) else event
            for event in result.events
        )
        for event in events:
            if not isinstance(event, LlmStart | LlmStream):
                self.config.notify(event)
        state = counted.with_changes(events=(*before.events, *events))
        return result.model_copy(update={"events": events, "new_state": state, "instruction": kind})


K = TypeVar("K", CallLlm, CallTool, Finish, RequestHumanApprove, RequestHumanPrompt, RequestHumanSelect)


def built_in_executors(agent: AgentProgram, config: RuntimeConfig) -> dict[str, Executor]:
    """Return the built-in executors by kind of instruction. Each raises TypeError for another kind."""
    policies = ToolPolicies(agent, config)
    model = ModelExecutor(agent, config, policies)
    people = RequestExecutor(agent, config, policies)
    tools = ToolExecutor(agent, config, policies, people)
    return {
        "call_llm": _for_instruction(CallLlm, model.call_llm),
        "call_tool": _for_instruction(CallTool, tools.call_tool),
        "finish": _for_instruction(Finish, finish),
        "request_human_approve": _for_instruction(RequestHumanApprove, tools.request_human_approve),
        "request_human_prompt": _for_instruction(RequestHumanPrompt, people.request_human_prompt),
        "request_human_select": _for_instruction(RequestHumanSelect, people.request_human_select),
    }


def _for_instruction(kind: type[K], execute: Callable[[K, AgentState], Awaitable[StepResult]]) -> Executor:
    def run(instruction: Instruction, state: AgentState) -> Awaitable[StepResult]:
        if not isinstance(instruction, kind):
            raise TypeError(instruction.type)
        return execute(instruction, state)

    return run


async def finish(instruction: Finish, state: AgentState) -> StepResult:
    """End the session. A message to the session continues it."""
    ended = state.with_changes(status="done")
    done = Done(reason=instruction.reason, final_state=ended.with_changes(events=()))
    return StepResult(events=(done,), new_state=ended)
