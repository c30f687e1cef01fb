"""The executor of ``call_tool``: one call a step, if the policy allows it, and only once."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from watchroom import validation
from watchroom.errors import (
    ApprovalOutdated,
    InvalidToolArguments,
    PolicyDenied,
    ToolInterrupted,
    ToolNotFound,
)
from watchroom.model import Json
from watchroom.rules.policy import PolicyDecision
from watchroom.rules.requests import PendingCall, parse_arguments, parse_json, stricter_policy
from watchroom.runtime.agent import AgentProgram, AgentTool, CallOrigin, RuntimeConfig, Tool
from watchroom.runtime.executors.request_executor import RequestExecutor
from watchroom.runtime.executors.tool_policies import POLICIES, ToolPolicies
from watchroom.runtime.executors.tool_results import fail_call, forbid_call, record_result, refuse_call
from watchroom.runtime.instructions import CallTool, RequestHumanApprove
from watchroom.runtime.messages import ToolCall
from watchroom.runtime.state import AgentState, StepResult, call_key
from watchroom.runtime.step_errors import wrap_tool_error
from watchroom.runtime.threads import is_task_cancelled, run_in_thread
from watchroom.texts import catalogue


class ToolExecutor:
    """Runs the tools of ``agent`` as ``config`` and ``policies`` allow; ``people`` makes the requests where a
    policy wants approval."""

    def __init__(
        self, agent: AgentProgram, config: RuntimeConfig, policies: ToolPolicies, people: RequestExecutor
    ) -> None:
        self._agent = agent
        self._config = config
        self._policies = policies
        self._people = people

    async def call_tool(self, instruction: CallTool, state: AgentState) -> StepResult:
        """Carry out ``instruction`` (`CallTool`) in ``state``: run the call, if the policy allows it, and
        append the result to the messages.

        What goes wrong in a tool is an event, and the model is told, so that it can try otherwise."""
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
        except (Exception, asyncio.CancelledError) as error:  # a tool may raise anything: the session goes on
            if isinstance(error, asyncio.CancelledError) and is_task_cancelled():
                raise
            return fail_call(state, call, wrap_tool_error(name, error), language, self._notice_of(shown))

    async def _request_approval(
        self, call: ToolCall, decision: PolicyDecision, state: AgentState
    ) -> StepResult:
        """Ask people about ``call``, and with it about the others of the same answer of the model that the
        workspace's policy wants approved."""
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
        """Carry out ``instruction`` (`RequestHumanApprove`) in ``state`` as `RequestExecutor` does; nobody is
        asked about a call that the workspace's policy denies: it is refused."""
        for call in instruction.pending_tools_calling:
            is_forbidden = self._policies.of(call.function.name) == "never"
            if not is_forbidden and (await self._policies.decide(call)).verdict == "deny":
                return await self.call_tool(CallTool(tool_call=call), state)
        return await self._people.request_human_approve(instruction, state)

    def _notice_of(self, shown: PendingCall | None) -> str:
        """What the model has to know of how its call was approved."""
        if shown is None:
            return ""
        changed = catalogue(self._config.language)("request.changed_for_model") if shown.asked_again else ""
        return "\n".join(each for each in (changed, shown.notice) if each)


async def _approved_checksum(
    tool: Tool, call: ToolCall, arguments: Mapping[str, Json], shown: PendingCall | None
) -> str:
    """The checksum that a call is approved with; empty where its approval depends on its arguments alone.
    What a person changed in them is approved as it is, if nothing else has changed. Raises
    `ApprovalOutdated`."""
    if shown is None or not shown.checksum or not isinstance(tool, AgentTool) or tool.checksum is None:
        return ""
    is_edited = call.function.arguments != shown.arguments
    if tool.recovers and not is_edited:
        # It compares by itself, after it has found out whether it ran before.
        return shown.checksum
    current = await run_in_thread(tool.checksum, arguments)
    as_shown = await run_in_thread(tool.checksum, parse_arguments(shown.arguments)) if is_edited else current
    if as_shown != shown.checksum:
        if tool.recovers:
            # It may have written already what was approved, and finds that out.
            return shown.checksum
        raise ApprovalOutdated(tool=call.function.name)
    return current


def _remove_call(state: AgentState, call: ToolCall) -> AgentState:
    """The state without ``call`` among those that wait; the request is over when none waits any more."""
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
    """The result of ``tool`` for ``arguments`` and ``origin``; raises what it raises. It is called in a
    thread of its own unless it is a coroutine function."""
    if isinstance(tool, AgentTool):
        if inspect.iscoroutinefunction(tool.run):
            return cast(Json, await tool.run(arguments, origin))
        result = await run_in_thread(tool.run, arguments, origin)
    elif inspect.iscoroutinefunction(tool):
        return cast(Json, await tool(arguments))
    else:
        result = await run_in_thread(tool, arguments)
    return await result if inspect.isawaitable(result) else result
