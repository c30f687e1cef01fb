"""The executors of requests to people: the session waits until one of them has approved, written or
chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal, cast

from pydantic import JsonValue

from watchroom import validation
from watchroom.errors import ApprovalOutdated
from watchroom.rules.requests import POLICY_RULE, PendingCall, Request, parse_arguments
from watchroom.runtime.agent import AgentProgram, AgentTool, RuntimeConfig
from watchroom.runtime.events import (
    Failed,
    HumanApproveRequired,
    HumanPromptRequired,
    HumanSelectRequired,
    ToolPending,
)
from watchroom.runtime.executors.tool_policies import ToolPolicies
from watchroom.runtime.executors.tool_results import forbid_call
from watchroom.runtime.instructions import (
    RequestHumanApprove,
    RequestHumanPrompt,
    RequestHumanSelect,
)
from watchroom.runtime.messages import ToolCall
from watchroom.runtime.state import AgentState, StepResult
from watchroom.runtime.step_errors import describe_error
from watchroom.runtime.threads import run_in_thread
from watchroom.texts import catalogue


class RequestExecutor:
    """Makes requests to people for ``agent``. ``config`` sets the time to answer where an instruction sets
    none; ``policies`` rule out calls that are never allowed."""

    def __init__(self, agent: AgentProgram, config: RuntimeConfig, policies: ToolPolicies) -> None:
        self._agent = agent
        self._config = config
        self._policies = policies

    async def request_human_approve(
        self, instruction: RequestHumanApprove, state: AgentState, *, rule: str = ""
    ) -> StepResult:
        """Carry out ``instruction`` (`RequestHumanApprove`) in ``state``: wait until a person has decided on
        each of the calls. Nobody is asked about a call that is not allowed. ``rule`` names that of the
        workspace's policy that wants the approval."""
        calls = instruction.pending_tools_calling
        never = next((call for call in calls if self._policies.of(call.function.name) == "never"), None)
        if never is not None:
            return forbid_call(state, never, self._config.language)
        shown = [await self._describe_pending(call) for call in calls]
        deadline = self._deadline(instruction.timeout)
        return self._request_approval(state, calls, shown, deadline, rule=rule)

    async def ask_again(
        self, state: AgentState, call: ToolCall, outdated: ApprovalOutdated, notice: str = ""
    ) -> StepResult:
        """In ``state``, have a person decide again on the approved ``call``, whose effect would be another
        one by now (``outdated``), together with those that still wait. ``notice`` is what was said as it was
        approved."""
        others = state.asked.calls if state.asked is not None else ()
        shown = [*others, replace(await self._describe_pending(call), asked_again=True, notice=notice)]
        texts = catalogue(self._config.language)
        prompt = texts("request.changed_since", tools=validation.escape_unstorable(call.function.name, 100))
        result = self._request_approval(
            state, (*state.pending_tools_calling, call), shown, self._deadline(None), prompt
        )
        failed = Failed(error=describe_error(outdated, self._config.language))
        return result.model_copy(update={"events": (failed, *result.events)})

    async def _describe_pending(self, call: ToolCall) -> PendingCall:
        """The call as a person is asked about it."""
        name, arguments = call.function.name, call.function.arguments
        tool = self._agent.tools.get(name)
        if not isinstance(tool, AgentTool) or tool.checksum is None:
            return PendingCall(call.id, name, arguments)
        checksum = await run_in_thread(tool.checksum, parse_arguments(arguments))
        return PendingCall(call.id, name, arguments, checksum)

    def _request_approval(
        self,
        state: AgentState,
        calls: tuple[ToolCall, ...],
        shown: Sequence[PendingCall],
        expires: int | None,
        prompt: str = "",
        rule: str = "",
    ) -> StepResult:
        metadata = {POLICY_RULE: rule} if rule else {}
        asked = Request("approve", prompt, calls=tuple(shown), metadata=metadata, expires=expires)
        required = HumanApproveRequired(pending_tools_calling=calls, session_id=state.session_id)
        waiting = _wait_for(state, asked).with_changes(pending_tools_calling=calls)
        return StepResult(events=(required, ToolPending(tools_calling=calls)), new_state=waiting)

    async def request_human_prompt(self, instruction: RequestHumanPrompt, state: AgentState) -> StepResult:
        """Carry out ``instruction`` (`RequestHumanPrompt`) in ``state``: wait until a person has written a
        text."""
        return self._request_input(state, instruction, "prompt", HumanPromptRequired)

    async def request_human_select(self, instruction: RequestHumanSelect, state: AgentState) -> StepResult:
        """Carry out ``instruction`` (`RequestHumanSelect`) in ``state``: wait until a person has chosen."""
        return self._request_input(state, instruction, "select", HumanSelectRequired)

    def _request_input(
        self,
        state: AgentState,
        instruction: RequestHumanPrompt | RequestHumanSelect,
        kind: Literal["prompt", "select"],
        event: type[HumanPromptRequired | HumanSelectRequired],
    ) -> StepResult:
        asked = {name: getattr(instruction, name) for name in type(instruction).model_fields}
        expires = self._deadline(asked.pop("timeout"))
        del asked["type"]
        waiting = _wait_for(state, Request(kind, **asked, expires=expires))
        return StepResult(events=(event(**asked, session_id=state.session_id),), new_state=waiting)

    def _deadline(self, timeout: float | None) -> int | None:
        """When ``timeout`` seconds from now are over, in nanoseconds since the epoch; None: never."""
        seconds = self._config.ask_timeout if timeout is None else timeout
        return None if seconds is None else self._config.clock() + int(seconds * 1e9)


def wait_for_request(state: AgentState, asked: Request) -> StepResult:
    """The step after which ``state`` waits until a person has answered the choice ``asked``."""
    event = HumanSelectRequired(
        prompt=asked.prompt,
        options=asked.options,
        multi=asked.multi,
        metadata=cast("Mapping[str, JsonValue]", asked.metadata),
        session_id=state.session_id,
    )
    return StepResult(events=(event,), new_state=_wait_for(state, asked))


def _wait_for(state: AgentState, asked: Request) -> AgentState:
    return state.with_changes(status="waiting_for_human_input", asked=asked)
