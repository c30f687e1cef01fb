"""The executors of tool calls and of requests to people.

`ToolPolicies` decides whether a tool may be called, `RequestExecutor` asks people, and `ToolExecutor` runs
calls. A call that needs an approval runs only as the person approved it.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, Literal, cast

from pydantic import JsonValue

from watchroom import validation
from watchroom.errors import (
    ApprovalOutdated,
    InvalidToolArguments,
    PolicyDenied,
    ToolInterrupted,
    ToolNotFound,
)
from watchroom.features.policy.rules import PolicyDecision, Verdict
from watchroom.features.requests.rows import (
    POLICY_RULE,
    PendingCall,
    Policy,
    Request,
    parse_arguments,
    parse_json,
    stricter_policy,
)
from watchroom.features.sessions.runtime.agent import (
    AgentProgram,
    AgentTool,
    CallOrigin,
    CallTool,
    Policies,
    RequestHumanApprove,
    RequestHumanPrompt,
    RequestHumanSelect,
    RuntimeConfig,
    Tool,
)
from watchroom.features.sessions.runtime.events import (
    Failed,
    HumanApproveRequired,
    HumanPromptRequired,
    HumanSelectRequired,
    ToolPending,
)
from watchroom.features.sessions.runtime.messages import ToolCall
from watchroom.features.sessions.runtime.state import AgentState, StepResult, call_key
from watchroom.features.sessions.runtime.step_results import (
    describe_error,
    fail_call,
    forbid_call,
    record_result,
    refuse_call,
    wrap_tool_error,
)
from watchroom.features.sessions.runtime.threads import is_task_cancelled, run_in_thread
from watchroom.model import Json
from watchroom.texts import catalogue

POLICIES: Final[Mapping[Verdict, Policy]] = {"allow": "always", "ask": "ask", "deny": "never"}
"""The tool policy for each verdict of the workspace's policy."""


class ToolPolicies:
    """The combined policies of an agent, its configuration and the workspace."""

    def __init__(self, agent: AgentProgram, config: RuntimeConfig) -> None:
        self._agent = agent
        self._config = config

    def of(self, tool: str) -> Policy:
        """Return the strictest policy for ``tool``: the agent's, the configuration's, and those for the tool
        with the same effect (``writes_as``)."""
        own: Policies = getattr(self._agent, "policies", None) or self._config.policies
        policy = stricter_policy(self._config.policies.of(tool), own.of(tool))
        found = self._agent.tools.get(tool)
        same = found.writes_as if isinstance(found, AgentTool) else ""
        return stricter_policy(policy, self.of(same)) if same else policy

    async def decide(self, call: ToolCall) -> PolicyDecision:
        """Return the decision of the workspace's policy on ``call``."""
        name, arguments = call.function.name, parse_arguments(call.function.arguments)
        tool = self._agent.tools.get(name)
        if tool is None:
            return PolicyDecision()
        if isinstance(tool, AgentTool) and tool.policy is not None:
            return await run_in_thread(tool.policy, arguments)
        if self._config.decide_policy is not None:
            return await run_in_thread(self._config.decide_policy, name, arguments)
        return PolicyDecision()


class RequestExecutor:
    """Makes requests to people for an agent.

    - ``config``: has the timeout for instructions without one.
    - ``policies``: refuse calls that are never allowed.
    """

    def __init__(self, agent: AgentProgram, config: RuntimeConfig, policies: ToolPolicies) -> None:
        self._agent = agent
        self._config = config
        self._policies = policies

    async def request_human_approve(
        self, instruction: RequestHumanApprove, state: AgentState, *, rule: str = ""
    ) -> StepResult:
        """Ask people to approve the calls of ``instruction``. A call that is never allowed is refused
        instead.

        ``rule``: the rule of the workspace's policy that requires the approval, empty for none.
        """
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
        """Ask people again about the approved ``call``, because it would now write something else.

        The request includes the other calls that still wait. ``notice``: the person's message with the first
        approval.
        """
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
        """Return ``call`` with the checksum that its approval will cover."""
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
        """Ask people for a text."""
        return self._request_input(state, instruction, "prompt", HumanPromptRequired)

    async def request_human_select(self, instruction: RequestHumanSelect, state: AgentState) -> StepResult:
        """Ask people to choose."""
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
        """Return the time ``timeout`` seconds from now, in nanoseconds since the epoch; None for no limit."""
        seconds = self._config.ask_timeout if timeout is None else timeout
        return None if seconds is None else self._config.clock() + int(seconds * 1e9)


def wait_for_request(state: AgentState, asked: Request) -> StepResult:
    """Return the step after which ``state`` waits for the answer to the request ``asked``."""
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


class ToolExecutor:
    """Runs the tool calls of an agent. ``people`` asks for approval if a policy requires it."""

    def __init__(
        self, agent: AgentProgram, config: RuntimeConfig, policies: ToolPolicies, people: RequestExecutor
    ) -> None:
        self._agent = agent
        self._config = config
        self._policies = policies
        self._people = people

    async def call_tool(self, instruction: CallTool, state: AgentState) -> StepResult:
        """Run the call of ``instruction`` if its policy allows it, and append the result to the messages.

        The failure of a tool is an event and a result for the model, not an exception.
        """
        call = instruction.tool_call
        name = call.function.name
        language = self._config.language
        policy = self._policies.of(name)
        decision = await self._policies.decide(call)
        if stricter_policy(policy, POLICIES[decision.verdict]) == "ask" and not instruction.approved:
            return await self._request_approval(call, decision, state)
        before, state = state, _remove_call(state, call)
        if policy == "never":
            return forbid_call(state, call, language)
        tool = self._agent.tools.get(name)
        if tool is None:
            return fail_call(
                state, call, ToolNotFound(tool=validation.escape_unstorable(name, 100)), language
            )
        try:
            arguments = _parse_call_arguments(call)
        except InvalidToolArguments as error:
            return fail_call(state, call, error, language)
        if decision.verdict == "deny" and not (isinstance(tool, AgentTool) and tool.policy is not None):
            return refuse_call(state, call, PolicyDenied(tool=name, number=decision.label), language)
        shown = before.asked_call(call)
        try:
            approved = await _approved_checksum(tool, call, arguments, shown)
        except ApprovalOutdated as error:
            return await self._people.ask_again(state, call, error, shown.notice if shown else "")
        key = call_key(before, call)
        again = self._config.ledger is not None and await self._config.ledger.record_start(call, key, tool)
        if again and not (isinstance(tool, AgentTool) and (tool.repeatable or tool.recovers)):
            return refuse_call(state, call, ToolInterrupted(tool=name), language)
        try:
            result = await run_tool(tool, arguments, CallOrigin(key, again, approved))
            return record_result(state, call, result, self._notice_of(shown))
        except ApprovalOutdated as error:
            return await self._people.ask_again(state, call, error, shown.notice if shown else "")
        except (
            Exception,
            asyncio.CancelledError,
        ) as error:  # a tool may raise anything; the session continues
            if isinstance(error, asyncio.CancelledError) and is_task_cancelled():
                raise
            return fail_call(state, call, wrap_tool_error(name, error), language, self._notice_of(shown))

    async def _request_approval(
        self, call: ToolCall, decision: PolicyDecision, state: AgentState
    ) -> StepResult:
        """Ask people to approve ``call`` and the other open calls for which the workspace's policy requires
        an approval."""
        calls, decisions = [call], [decision]
        known = {call.id, *(each.id for each in state.approved_tools_calling)}
        for other in state.open_calls:
            if other.id in known or self._policies.of(other.function.name) == "never":
                continue
            found = await self._policies.decide(other)
            if found.verdict == "ask":
                calls.append(other)
                decisions.append(found)
        rules = dict.fromkeys(each.label for each in decisions if each.verdict == "ask")
        approve = RequestHumanApprove(pending_tools_calling=tuple(calls))
        return await self._people.request_human_approve(approve, state, rule=", ".join(rules))

    async def request_human_approve(self, instruction: RequestHumanApprove, state: AgentState) -> StepResult:
        """Ask people to approve the calls of ``instruction``. A call that the workspace's policy denies is
        refused instead."""
        for call in instruction.pending_tools_calling:
            is_forbidden = self._policies.of(call.function.name) == "never"
            if not is_forbidden and (await self._policies.decide(call)).verdict == "deny":
                return await self.call_tool(CallTool(tool_call=call), state)
        return await self._people.request_human_approve(instruction, state)

    def _notice_of(self, shown: PendingCall | None) -> str:
        """Return the person's message to the model about the approval of its call."""
        if shown is None:
            return ""
        changed = catalogue(self._config.language)("request.changed_for_model") if shown.asked_again else ""
        return "\n".join(each for each in (changed, shown.notice) if each)


async def _approved_checksum(
    tool: Tool, call: ToolCall, arguments: Mapping[str, Json], shown: PendingCall | None
) -> str:
    """Return the checksum of an approved call; empty if its approval covers only the arguments.

    Edited arguments are approved as edited if nothing else has changed. Raise `ApprovalOutdated`.
    """
    if shown is None or not shown.checksum or not isinstance(tool, AgentTool) or tool.checksum is None:
        return ""
    is_edited = call.function.arguments != shown.arguments
    if tool.recovers and not is_edited:
        # The tool compares the checksum itself, after it has checked whether the call ran before.
        return shown.checksum
    current = await run_in_thread(tool.checksum, arguments)
    as_shown = await run_in_thread(tool.checksum, parse_arguments(shown.arguments)) if is_edited else current
    if as_shown != shown.checksum:
        if tool.recovers:
            # The call may already have written the approved text. The tool checks that.
            return shown.checksum
        raise ApprovalOutdated(tool=call.function.name)
    return current


def _remove_call(state: AgentState, call: ToolCall) -> AgentState:
    """Return ``state`` without the waiting ``call``. Without waiting calls, the request ends."""
    if call.id not in {each.id for each in (*state.pending_tools_calling, *state.approved_tools_calling)}:
        return state
    pending = tuple(each for each in state.pending_tools_calling if each.id != call.id)
    approved = tuple(each for each in state.approved_tools_calling if each.id != call.id)
    approvals = tuple(each for each in state.approvals if each.id != call.id)
    asked = state.asked
    if asked is not None:
        asked = replace(asked, calls=tuple(each for each in asked.calls if each.id != call.id))
    return state.with_changes(
        pending_tools_calling=pending,
        approved_tools_calling=approved,
        approvals=approvals,
        asked=asked if pending else None,
        status="waiting_for_human_input" if pending else state.status,
    )


def _parse_call_arguments(call: ToolCall) -> Mapping[str, Json]:
    text = call.function.arguments.strip() or "{}"
    try:
        arguments = parse_json(text)
    except (ValueError, RecursionError) as error:
        problem = validation.escape_unstorable(str(error), 200)
        raise InvalidToolArguments(tool=call.function.name, problem=problem) from error
    if not isinstance(arguments, dict):
        raise InvalidToolArguments(tool=call.function.name, problem=validation.escape_unstorable(text, 50))
    return cast("Mapping[str, Json]", arguments)


async def run_tool(tool: Tool, arguments: Mapping[str, Json], origin: CallOrigin) -> Json:
    """Run ``tool`` and return its result. Its exceptions pass through. A function that is not a coroutine
    function runs in a thread."""
    if isinstance(tool, AgentTool):
        if inspect.iscoroutinefunction(tool.run):
            return cast(Json, await tool.run(arguments, origin))
        result = await run_in_thread(tool.run, arguments, origin)
    elif inspect.iscoroutinefunction(tool):
        return cast(Json, await tool(arguments))
    else:
        result = await run_in_thread(tool, arguments)
    return await result if inspect.isawaitable(result) else result
