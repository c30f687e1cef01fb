"""Asking people: the session waits until one of them has approved, written or chosen."""

from __future__ import annotations

import time

from watchroom.requests import AskedCall, Request
from watchroom.runtime.agent import RuntimeConfig
from watchroom.runtime.events import (
    HumanApproveRequired,
    HumanPromptRequired,
    HumanSelectRequired,
    ToolPending,
)
from watchroom.runtime.executors.policies import ToolPolicies
from watchroom.runtime.executors.tool_results import forbidden
from watchroom.runtime.instructions import (
    Instruction,
    RequestHumanApprove,
    RequestHumanPrompt,
    RequestHumanSelect,
)
from watchroom.runtime.state import AgentState, StepResult


class PeopleAsker:
    """Asks people, who have the time that ``config`` gives them where an instruction sets none."""

    def __init__(self, config: RuntimeConfig, policies: ToolPolicies) -> None:
        self._config = config
        self._policies = policies

    async def request_human_approve(self, instruction: Instruction, state: AgentState) -> StepResult:
        """Wait until a person has decided on each of the calls. Nobody is asked what may not be done."""
        if not isinstance(instruction, RequestHumanApprove):
            raise TypeError(instruction.type)
        calls = instruction.pending_tools_calling
        never = next((call for call in calls if self._policies.of(call.function.name) == "never"), None)
        if never is not None:
            return forbidden(state, never, self._config.language)
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

    def _expires(self, timeout: float | None) -> int | None:
        """When ``timeout`` seconds from now are over, in nanoseconds since the epoch; None: never."""
        seconds = self._config.ask_timeout if timeout is None else timeout
        return None if seconds is None else time.time_ns() + int(seconds * 1e9)


def _waiting(state: AgentState, asked: Request) -> AgentState:
    return state.but(status="waiting_for_human_input", asked=asked)
