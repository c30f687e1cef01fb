"""The runtime of one agent: takes it step by step (spec 5). It holds no state of a session itself."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Mapping, Sequence

from pydantic import JsonValue, ValidationError

from watchroom.errors import InvalidInstruction, LimitReached
from watchroom.runtime.agent import Agent, Executor, RuntimeConfig, WithExecutors
from watchroom.runtime.events import Done
from watchroom.runtime.executors import Executors, failed
from watchroom.runtime.instructions import CallTool, Instruction, instructions
from watchroom.runtime.messages import Message, ToolCall
from watchroom.runtime.state import AgentState, StepResult, create_initial_state, timestamp


class AgentRuntime:
    """Runs ``agent``. Executors of the agent go before those of ``config``, these before the built-in ones.

    One runtime may take steps of many sessions at the same time: they share nothing but the agent.
    """

    def __init__(self, agent: Agent, config: RuntimeConfig | None = None) -> None:
        self.agent = agent
        self.config = config or RuntimeConfig()
        own = agent.executors if isinstance(agent, WithExecutors) else {}
        self.executors: Mapping[str, Executor] = {
            **Executors(agent, self.config).by_kind(),
            **self.config.executors,
            **(own or {}),
        }

    @staticmethod
    def create_initial_state(
        *,
        session_id: str,
        messages: Sequence[Message | Mapping[str, object]] = (),
        metadata: Mapping[str, JsonValue] | None = None,
    ) -> AgentState:
        """A state in which nothing has happened yet (spec 5, state creation)."""
        return create_initial_state(session_id=session_id, messages=messages, metadata=metadata)

    async def step(self, state: AgentState, tool_call: ToolCall | None = None) -> StepResult:
        """Take the next step from ``state``, which stays as it is.

        With a ``tool_call`` that call is run, as a person has approved of it; else calls that were approved
        run first, and then the agent decides. A state that waits for a person, and one that is paused, stay
        as they are. Whatever goes wrong is an event; only a cancellation is raised.
        """
        if tool_call is None:
            if state.status in ("waiting_for_human_input", "paused", "cancelled"):
                return StepResult(events=(), new_state=state)
            over = self._limit_reached(state)
            if over is not None:
                return self._closed(state, failed(state, over, self.config.language), "limit", 0.0)
        began = time.monotonic()
        running = state.but(status="running", error=None)
        kind = "agent"
        try:
            async with asyncio.timeout(self._seconds_left(state)):
                instruction = await self._next(running, tool_call)
                kind = instruction.type
                result = await self._executor(kind)(instruction, running)
        except TimeoutError as error:
            limit = self._limit_reached(state, time.monotonic() - began)
            result = failed(running, limit or error, self.config.language)
        except Exception as error:  # noqa: BLE001  # spec 5, business rules: errors become events
            result = failed(running, error, self.config.language)
        return self._closed(state, result, kind, time.monotonic() - began)

    async def _next(self, state: AgentState, tool_call: ToolCall | None) -> Instruction:
        if tool_call is not None:
            return CallTool(tool_call=tool_call, approved=True)
        if state.approved_tools_calling:
            return CallTool(tool_call=state.approved_tools_calling[0], approved=True)
        decided = self.agent.runner(state)
        if inspect.isawaitable(decided):
            decided = await decided
        if isinstance(decided, Mapping):
            try:
                decided = instructions.validate_python(decided)
            except ValidationError as error:
                first = error.errors(include_url=False, include_context=False, include_input=False)[0]
                where = ".".join(map(str, first["loc"]))
                raise InvalidInstruction(problem=f"{where} {first['msg']}".strip()) from error
        if not hasattr(decided, "type"):
            raise InvalidInstruction(problem=f"{type(decided).__name__} is not an instruction")
        return decided

    def _executor(self, kind: str) -> Executor:
        executor = self.executors.get(kind)
        if executor is None:
            raise InvalidInstruction(problem=f"{kind}: {', '.join(self.executors)}")
        return executor

    def _limit_reached(self, state: AgentState, seconds: float = 0.0) -> LimitReached | None:
        limits = self.config.limits
        for name, most, used in (
            ("steps", limits.steps, state.step_count),
            ("tokens", limits.tokens, state.spent.tokens),
            ("seconds", limits.seconds, state.spent.seconds + seconds),
            ("errors", limits.errors, state.errors_in_a_row),
        ):
            if most is not None and used >= most:
                return LimitReached(limit=name, most=most)
        return None

    def _seconds_left(self, state: AgentState) -> float | None:
        most = self.config.limits.seconds
        return None if most is None else max(0.0, most - state.spent.seconds)

    @staticmethod
    def _closed(before: AgentState, result: StepResult, kind: str, seconds: float) -> StepResult:
        """What every step ends with, whichever executor took it: events become history, costs are counted."""
        after = result.new_state
        spent = after.spent.model_copy(
            update={
                "seconds": before.spent.seconds + seconds,
                "tool_calls": before.spent.tool_calls + (kind == "call_tool"),
            }
        )
        counted = after.but(step_count=before.step_count + 1, spent=spent, last_modified=timestamp())
        final = counted.but(events=())
        events = tuple(
            event.model_copy(update={"final_state": final}) if isinstance(event, Done) else event
            for event in result.events
        )
        state = counted.but(events=(*before.events, *events))
        return result.model_copy(update={"events": events, "new_state": state, "instruction": kind})
