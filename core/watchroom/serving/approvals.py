"""Approval of calls by people: asked for in the client, where it can ask (elicitation), and in the dashboard.

The first answer counts. Without an answer the call is not made.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from watchroom.errors import RequestClosed, RequestExpired, RequestNotFound
from watchroom.merge import unified_diff
from watchroom.model import HUMAN_PREFIX, Json
from watchroom.projections.proposals import proposal
from watchroom.rules.decision_errors import MayNotDecide, SignatureRequired
from watchroom.rules.requests import POLICY_RULE, Answer, CallDecision, PendingCall, Request, parse_arguments
from watchroom.runtime.budget_waiting import wait_for_budgets
from watchroom.runtime.request_waiting import wait_for_outcome
from watchroom.runtime.threads import run_in_thread
from watchroom.serving.errors import CallRejected, CallUnanswered
from watchroom.texts import Catalogue
from watchroom.toolbox import Toolbox
from watchroom.toolbox.agent_tools import writes_as
from watchroom.workspace import Workspace

APPROVAL_SECONDS: Final = 600.0
"""How long people may take to answer."""
_CALL_ID: Final = "call"
_INPUT_KEY: Final = "approve"
_FIELD: Final = "approved"
_MAX_ASKED: Final = 1000
"""How many requests are remembered; the answer to an older one is not taken from a client."""
_MAX_CHARACTERS: Final = 2000
"""Of a call that is shown in a client; the dashboard shows all of it."""


class ApprovedCall(NamedTuple):
    """A call that may be made, with these arguments; ``key`` is its own, so that it is made once.
    ``checksum`` is that of the call as a person approved of it; ``notice`` is what its agent has to know of
    the approval, empty for nothing."""

    arguments: Mapping[str, Json]
    key: str
    checksum: str
    notice: str = ""


class CallApprovals:
    """Asks people in ``workspace`` to approve of the calls of ``approval_tools``, and of flushes that write
    as these do, and where the workspace's policy wants that; they have ``seconds`` to answer."""

    def __init__(
        self, workspace: Workspace, approval_tools: Collection[str], seconds: float = APPROVAL_SECONDS
    ) -> None:
        self._journal = workspace.journal
        self._requests = workspace.requests
        self._budgets = workspace.budgets
        self._dispatcher = workspace.dispatcher
        self._tools = frozenset(approval_tools)
        self._seconds = seconds
        self._asked: dict[str, Request] = {}
        """By path, the requests of this process: the state that a client sends back may name any other."""

    def are_required(self, toolbox: Toolbox, tool: str, arguments: Mapping[str, Json]) -> bool:
        """Whether a person has to approve of a call of ``tool`` with ``arguments`` by the agent of
        ``toolbox``, by the workspace's policy too. Nobody is asked about what that denies."""
        verdict = toolbox.decide_policy(tool, arguments).verdict
        if verdict != "allow":
            return verdict == "ask"
        return bool(self._tools) and (tool in self._tools or writes_as(toolbox, tool) in self._tools)

    async def wait_for_budgets(self, agent: str) -> None:
        """Wait until no budget holds the next call of ``agent``. Raises `BudgetReached`."""
        await wait_for_budgets(self._budgets, self._requests, self._dispatcher, agent, seconds=self._seconds)

    async def request(
        self,
        context: ServerRequestContext[Any, Any],
        toolbox: Toolbox,
        params: types.CallToolRequestParams,
        *,
        is_outdated: bool = False,
    ) -> ApprovedCall | types.InputRequiredResult:
        """Have people approve of the call ``params`` by the agent of ``toolbox``, which came in ``context``.
        ``is_outdated``: it was approved, and would write something else by now.

        Returns the call as it was approved; or what the client has to ask its user, after which it makes the
        call once more. Raises `CallRejected`, `CallUnanswered`.
        """
        arguments: dict[str, Json] = params.arguments or {}
        state = None if is_outdated else params.request_state
        path, request = await run_in_thread(
            self._open_request, toolbox, params.name, arguments, state, is_outdated
        )
        (call,), expires = request.calls, request.expires or 0
        can_elicit = _can_elicit(context)
        if can_elicit and context.protocol_version in MODERN_PROTOCOL_VERSIONS:
            # An answer is about the request that the client was given, and about no other one.
            is_about_it = path == state
            response = (params.input_responses or {}).get(_INPUT_KEY) if is_about_it else None
            if isinstance(response, types.ElicitResult):
                await run_in_thread(self._record_answer, toolbox, path, response)
            elif await run_in_thread(self._requests.ended, path) is None:
                form = types.ElicitRequest(params=await run_in_thread(self._build_form, call, toolbox))
                return types.InputRequiredResult(input_requests={_INPUT_KEY: form}, request_state=path)
        answer = await self._wait_for_answer(context, toolbox, call, path, expires, can_elicit=can_elicit)
        decision = _approved_decision(answer)
        approved, checksum = arguments, call.checksum
        if decision.arguments is not None:
            approved = dict(parse_arguments(decision.arguments))
            checksum = await run_in_thread(_checksum_of_edited, toolbox, call, approved)
        by = await run_in_thread(self._answered_by, path)
        return ApprovedCall(approved, path, checksum, _notice(toolbox.texts, call, decision, by))

    def _answered_by(self, path: str) -> str:
        row = self._requests.find_end(path)
        return row.actor if row is not None else ""

    def _open_request(
        self, toolbox: Toolbox, tool: str, arguments: dict[str, Json], state: str | None, is_outdated: bool
    ) -> tuple[str, Request]:
        """The path of the request and what it asks: the one in the client's ``state``, if it is about this
        very call, else a new one."""
        arguments_json = json.dumps(arguments, ensure_ascii=False)
        checksum = toolbox.approval_checksum(tool, arguments)
        call = PendingCall(_CALL_ID, tool, arguments_json, checksum, is_outdated)
        known = (
            self._asked.get(state) if state is not None and state.startswith(f"{toolbox.actor}/") else None
        )
        is_same = known is not None and [(each.name, each.arguments) for each in known.calls] == [
            (tool, arguments_json)
        ]
        if state is not None and known is not None and is_same:
            return state, known
        path = f"{toolbox.actor}/mcp/{uuid.uuid4().hex[:12]}"
        decision = toolbox.decide_policy(tool, arguments)
        request = Request(
            "approve",
            toolbox.texts("request.changed_since", tools=tool) if is_outdated else "",
            calls=(call,),
            metadata={POLICY_RULE: decision.label} if decision.verdict == "ask" else {},
            expires=self._journal.now() + int(self._seconds * 1e9),
        )
        self._requests.ask(toolbox.actor, path, request)
        self._asked[path] = request
        if len(self._asked) > _MAX_ASKED:
            del self._asked[next(iter(self._asked))]
        return path, request

    async def _wait_for_answer(
        self,
        context: ServerRequestContext[Any, Any],
        toolbox: Toolbox,
        call: PendingCall,
        path: str,
        expires: int,
        *,
        can_elicit: bool,
    ) -> Answer | None:
        """Wait until somebody answers the request at ``path``, or it expires."""
        elicitation = None
        if can_elicit and context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            elicitation = asyncio.create_task(self._elicit(context, toolbox, call, path))
        try:
            return (await wait_for_outcome(self._requests, self._dispatcher, path, expires)).answer
        finally:
            if elicitation is not None:
                elicitation.cancel()

    async def _elicit(
        self, context: ServerRequestContext[Any, Any], toolbox: Toolbox, call: PendingCall, path: str
    ) -> None:
        form = await run_in_thread(self._build_form, call, toolbox)
        response = await context.session.elicit_form(form.message, form.requested_schema, context.request_id)
        await run_in_thread(self._record_answer, toolbox, path, response)

    def _build_form(self, call: PendingCall, toolbox: Toolbox) -> types.ElicitRequestFormParams:
        """What the client shows: the call, and what it would change."""
        texts: Catalogue = toolbox.texts
        lines = [texts("request.changed_since", tools=call.name)] if call.asked_again else []
        lines.append(
            texts("elicit.message", agent=toolbox.actor, tool=call.name, arguments=_truncate(call.arguments))
        )
        arguments = parse_arguments(call.arguments)
        decision = toolbox.decide_policy(call.name, arguments)
        if decision.verdict == "ask":
            lines.append(texts("elicit.by_policy", rule=decision.label))
        change = proposal(self._journal, toolbox.actor, call.name, arguments)
        if change is not None:
            version = f"v{change.head.version}" if change.head else "-"
            lines.append(_truncate(unified_diff(change.before, change.after, version, change.path)))
        field: dict[str, Any] = {"type": "boolean", "title": texts("elicit.field")}
        schema = {"type": "object", "properties": {_FIELD: field}, "required": [_FIELD]}
        return types.ElicitRequestFormParams(message="\n\n".join(lines), requested_schema=schema)

    def _record_answer(self, toolbox: Toolbox, path: str, response: types.ElicitResult) -> None:
        """Record an answer given in the client, as any other; closing the form is none."""
        row = self._journal.version("request", path, 1)
        if row is None or response.action == "cancel":
            return
        approves = response.action == "accept" and (response.content or {}).get(_FIELD) is True
        decision = CallDecision(_CALL_ID, approves)
        # Somebody was first, or it came too late: then that counts. In a closed workspace the word of a
        # client does not: the request waits for whoever signs.
        with suppress(RequestClosed, RequestExpired, RequestNotFound, SignatureRequired, MayNotDecide):
            person = f"{HUMAN_PREFIX}at {toolbox.actor}"
            self._requests.answer(person, row.seq, Answer(decisions=(decision,)))


def _can_elicit(context: ServerRequestContext[Any, Any]) -> bool:
    declared = context.session.client_capabilities
    return declared is not None and declared.elicitation is not None


def _truncate(text: str) -> str:
    return text[:_MAX_CHARACTERS] + "…" * (len(text) > _MAX_CHARACTERS)


def _checksum_of_edited(toolbox: Toolbox, call: PendingCall, edited: Mapping[str, Json]) -> str:
    """The checksum of a call whose arguments a person changed: approved as it is, if nothing else has changed
    since it was asked about."""
    current = toolbox.approval_checksum(call.name, edited)
    as_shown = toolbox.approval_checksum(call.name, parse_arguments(call.arguments))
    return current if as_shown == call.checksum else call.checksum


def _approved_decision(answer: Answer | None) -> CallDecision:
    """The decision by which the call may be made."""
    if answer is None or answer.expired:
        raise CallUnanswered
    (decision,) = answer.decisions
    if not decision.approved:
        raise CallRejected(reason=decision.reason or "-")
    return decision


def _notice(texts: Catalogue, call: PendingCall, decision: CallDecision, by: str) -> str:
    """What the agent has to know of how ``call`` was approved ``by`` a person: a client shows its model the
    arguments that the model wrote, and not those that were approved."""
    lines = [texts("request.changed_for_model")] if call.asked_again else []
    if decision.arguments is not None:
        given, approved = parse_arguments(call.arguments), parse_arguments(decision.arguments)
        names = sorted(
            name for name in {*given, *approved} if given.get(name, ...) != approved.get(name, ...)
        )
        if names:
            lines.append(texts("request.edited", by=by, names=", ".join(names)))
    if decision.reason:
        lines.append(texts("request.approved", by=by, reason=decision.reason))
    return "\n".join(lines)
