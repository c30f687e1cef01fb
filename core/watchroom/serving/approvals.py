"""Approvals of calls by people: in the client, if it supports elicitation, and in the dashboard.

The first answer counts. Without an answer, the call is refused.
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

from watchroom.algorithms.merge import unified_diff
from watchroom.errors import (
    CallRejected,
    CallUnanswered,
    MayNotDecide,
    RequestClosed,
    RequestExpired,
    RequestNotFound,
    SignatureRequired,
)
from watchroom.features.calls.agent_tools import writes_as
from watchroom.features.calls.proposals import proposal
from watchroom.features.calls.toolbox import Toolbox
from watchroom.features.requests.rows import (
    POLICY_RULE,
    Answer,
    CallDecision,
    PendingCall,
    Request,
    parse_arguments,
)
from watchroom.features.sessions.runtime.threads import run_in_thread, run_to_completion
from watchroom.features.sessions.runtime.waiting import (
    wait_for_budgets,
    wait_for_outcome,
    wait_until_resumed,
)
from watchroom.kernel.call_context import CallContext
from watchroom.model import HUMAN_PREFIX, Json
from watchroom.texts import Catalogue
from watchroom.workspace import Workspace

APPROVAL_SECONDS: Final = 600.0
"""Seconds that a call waits for people."""
_CALL_ID: Final = "call"
_INPUT_KEY: Final = "approve"
_FIELD: Final = "approved"
_MAX_ASKED: Final = 1000
"""Maximum number of requests that are kept. A client's answer to an older request is ignored."""
_MAX_CHARACTERS: Final = 2000
"""Maximum characters of a call that a client shows. The dashboard shows the whole call."""


class ApprovedCall(NamedTuple):
    """A call that a person approved.

    - ``arguments``: the approved arguments.
    - ``key``: the key of the call, so that it runs once.
    - ``checksum``: the checksum of the call as the person approved it.
    - ``notice``: a text for the agent about the approval, empty for none.
    """

    arguments: Mapping[str, Json]
    key: str
    checksum: str
    notice: str = ""


class CallApprovals:
    """Asks people to approve calls.

    Approvals are needed for calls of ``approval_tools``, for flushes with the same effect, and for calls for
    which the workspace's policy requires an approval.

    - ``seconds``: timeout for all waits of one call: for budgets, an approval and a resume, default 600.
    """

    def __init__(
        self, workspace: Workspace, approval_tools: Collection[str], seconds: float = APPROVAL_SECONDS
    ) -> None:
        self._journal = workspace.journal
        self._requests = workspace.requests
        self._budgets = workspace.budgets
        self._stops = workspace.stops
        self._background = workspace.background
        self._tools = frozenset(approval_tools)
        self.seconds = seconds
        self._asked: dict[str, Request] = {}
        """The requests of this process by path. A client's state can also refer to a request of another
        process."""

    def are_required(self, toolbox: Toolbox, tool: str, arguments: Mapping[str, Json]) -> bool:
        """Return whether a person must approve a call of ``tool`` with ``arguments`` by the agent of
        ``toolbox``. Return False if the policy denies the call."""
        verdict = toolbox.decide_policy(tool, arguments).verdict
        if verdict != "allow":
            return verdict == "ask"
        return bool(self._tools) and (tool in self._tools or writes_as(toolbox, tool) in self._tools)

    async def admit(self, agent: str, deadline: float) -> None:
        """Wait until no budget holds the next call of ``agent``, and the agent is not paused.

        ``deadline``: in the event loop's time. Raise `BudgetReached`, `AgentPaused`.
        """
        await wait_for_budgets(self._budgets, self._requests, self._background, agent, deadline=deadline)
        await self._recheck(agent, deadline)

    async def _recheck(self, agent: str, deadline: float) -> None:
        """Check again what people may have changed while a call of ``agent`` waited.

        The budgets are not asked about again, because an answer "once" is for this call.
        """
        await wait_until_resumed(self._stops, agent, deadline)
        await run_in_thread(self._budgets.check_stop, agent)

    async def request(
        self,
        context: ServerRequestContext[Any, Any],
        toolbox: Toolbox,
        params: types.CallToolRequestParams,
        deadline: float,
        *,
        is_outdated: bool = False,
    ) -> ApprovedCall | types.InputRequiredResult:
        """Ask people to approve the call ``params`` by the agent of ``toolbox``.

        - ``context``: the client's request.
        - ``deadline``: when a new request expires, in the event loop's time.
        - ``is_outdated``: whether the call was approved, but would now write another text.

        Return the approved call, or a form for the client's user. The client then repeats the call with the
        answer. An approved call of a paused agent waits until a person resumes the agent. Raise
        `CallRejected`, `CallUnanswered`, `TooManyRequests`, `AgentPaused`, `BudgetReached`.
        """
        path = f"{toolbox.actor}/mcp/{uuid.uuid4().hex[:12]}"
        try:
            return await self._request(context, toolbox, params, deadline, path, is_outdated=is_outdated)
        except asyncio.CancelledError:
            # The client may have cancelled its call before the wait began.
            with suppress(RequestNotFound):
                await run_to_completion(None, self._requests.withdraw, path)
            raise

    async def _request(
        self,
        context: ServerRequestContext[Any, Any],
        toolbox: Toolbox,
        params: types.CallToolRequestParams,
        deadline: float,
        new: str,
        *,
        is_outdated: bool,
    ) -> ApprovedCall | types.InputRequiredResult:
        """Do the same as `request`. ``new``: the path of a new request."""
        arguments: dict[str, Json] = params.arguments or {}
        state = None if is_outdated else params.request_state
        left = max(0.0, deadline - asyncio.get_running_loop().time())
        path, request = await run_to_completion(
            None, self._open_request, toolbox, params.name, arguments, left, state, is_outdated, new
        )
        (call,), expires = request.calls, request.expires or 0
        is_asking = can_elicit(context)
        if is_asking and context.protocol_version in MODERN_PROTOCOL_VERSIONS:
            # The client's answer counts only for the request that its user was shown.
            is_about_it = path == state
            response = (params.input_responses or {}).get(_INPUT_KEY) if is_about_it else None
            if isinstance(response, types.ElicitResult):
                await run_in_thread(self.record_answer, toolbox, path, response)
            elif await run_in_thread(self._requests.ended, path) is None:
                form = types.ElicitRequest(params=await run_in_thread(self.build_form, call, toolbox))
                return types.InputRequiredResult(input_requests={_INPUT_KEY: form}, request_state=path)
        answer = await self._wait_for_answer(context, toolbox, call, path, expires, can_elicit=is_asking)
        approved = await run_in_thread(self.read_approval, toolbox, path, call, answer)
        await self._recheck(toolbox.actor, deadline)
        return approved

    def read_approval(
        self, toolbox: Toolbox, path: str, call: PendingCall, answer: Answer | None
    ) -> ApprovedCall:
        """Return ``call`` as approved by ``answer``, the answer to the request at ``path``.

        Raise `CallRejected`, `CallUnanswered`.
        """
        decision = _approved_decision(answer)
        approved: Mapping[str, Json] = parse_arguments(call.arguments)
        checksum = call.checksum
        if decision.arguments is not None:
            approved = dict(parse_arguments(decision.arguments))
            checksum = _checksum_of_edited(toolbox, call, approved)
        row = self._requests.find_end(path)
        by = row.actor if row is not None else ""
        return ApprovedCall(approved, path, checksum, _notice(toolbox.texts, call, decision, by))

    def build_request(
        self,
        toolbox: Toolbox,
        tool: str,
        arguments: Mapping[str, Json],
        *,
        expires: int,
        is_outdated: bool = False,
        metadata: Mapping[str, Json] | None = None,
    ) -> Request:
        """Return the request to approve a call of ``tool`` with ``arguments``.

        - ``expires``: nanoseconds since the epoch.
        - ``is_outdated``: whether the call was approved, but would now write another text.
        - ``metadata``: more metadata, besides the policy rule that asks.
        """
        checksum = toolbox.approval_checksum(tool, arguments)
        call = PendingCall(_CALL_ID, tool, json.dumps(arguments, ensure_ascii=False), checksum, is_outdated)
        decision = toolbox.decide_policy(tool, arguments)
        rule = {POLICY_RULE: decision.label} if decision.verdict == "ask" else {}
        prompt = toolbox.texts("request.changed_since", tools=tool) if is_outdated else ""
        return Request(
            "approve", prompt, calls=(call,), metadata={**rule, **(metadata or {})}, expires=expires
        )

    def _open_request(
        self,
        toolbox: Toolbox,
        tool: str,
        arguments: dict[str, Json],
        seconds: float,
        state: str | None,
        is_outdated: bool,
        path: str,
    ) -> tuple[str, Request]:
        """Return a request and its path. If the request in the client's ``state`` asks about exactly this
        call, return it. Else open a new request at ``path`` that expires in ``seconds``."""
        expires = self._journal.now() + int(seconds * 1e9)
        request = self.build_request(toolbox, tool, arguments, expires=expires, is_outdated=is_outdated)
        known = (
            self._asked.get(state) if state is not None and state.startswith(f"{toolbox.actor}/") else None
        )
        is_same = known is not None and [(each.name, each.arguments) for each in known.calls] == [
            (each.name, each.arguments) for each in request.calls
        ]
        if state is not None and known is not None and is_same:
            return state, known
        self._requests.ask(CallContext(toolbox.actor), path, request)
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
        """Wait until the request at ``path`` is answered or expires, and return the answer."""
        elicitation = None
        is_open = await run_in_thread(self._requests.ended, path) is None
        if can_elicit and is_open and context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            elicitation = asyncio.create_task(self._elicit(context, toolbox, call, path))
        try:
            return (await wait_for_outcome(self._requests, self._background, path, expires)).answer
        finally:
            if elicitation is not None:
                elicitation.cancel()

    async def _elicit(
        self, context: ServerRequestContext[Any, Any], toolbox: Toolbox, call: PendingCall, path: str
    ) -> None:
        form = await run_in_thread(self.build_form, call, toolbox)
        response = await context.session.elicit_form(form.message, form.requested_schema, context.request_id)
        await run_in_thread(self.record_answer, toolbox, path, response)

    def build_form(self, call: PendingCall, toolbox: Toolbox) -> types.ElicitRequestFormParams:
        """Return the form that the client shows: the call and the change that it would make."""
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

    def record_answer(self, toolbox: Toolbox, path: str, response: types.ElicitResult) -> None:
        """Record an answer that was given in the client. Closing the form is not an answer."""
        row = self._journal.version("request", path, 1)
        if row is None or response.action == "cancel":
            return
        approves = response.action == "accept" and (response.content or {}).get(_FIELD) is True
        decision = CallDecision(_CALL_ID, approves)
        # An earlier answer or the expiry counts instead. In a closed workspace, a client's answer does not
        # count, and the request stays open for a signed answer.
        with suppress(RequestClosed, RequestExpired, RequestNotFound, SignatureRequired, MayNotDecide):
            person = f"{HUMAN_PREFIX}at {toolbox.actor}"
            self._requests.answer(CallContext(person), row.seq, Answer(decisions=(decision,)))


def can_elicit(context: ServerRequestContext[Any, Any]) -> bool:
    """Return whether the client of ``context`` can show its user a form."""
    declared = context.session.client_capabilities
    return declared is not None and declared.elicitation is not None


def _truncate(text: str) -> str:
    return text[:_MAX_CHARACTERS] + "…" * (len(text) > _MAX_CHARACTERS)


def _checksum_of_edited(toolbox: Toolbox, call: PendingCall, edited: Mapping[str, Json]) -> str:
    """Return the checksum of a call whose arguments a person edited.

    If the path has changed since people were asked, return the checksum in the request, which no longer
    matches.
    """
    current = toolbox.approval_checksum(call.name, edited)
    as_shown = toolbox.approval_checksum(call.name, parse_arguments(call.arguments))
    return current if as_shown == call.checksum else call.checksum


def _approved_decision(answer: Answer | None) -> CallDecision:
    """Return the decision in ``answer`` if it approves the call. Raise `CallUnanswered`, `CallRejected`."""
    if answer is None or answer.expired:
        raise CallUnanswered
    (decision,) = answer.decisions
    if not decision.approved:
        raise CallRejected(reason=decision.reason or "-")
    return decision


def _notice(texts: Catalogue, call: PendingCall, decision: CallDecision, by: str) -> str:
    """Return a text for the agent about the approval of ``call`` ``by`` a person.

    A client shows its model the arguments that the model wrote, not the approved arguments.
    """
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
