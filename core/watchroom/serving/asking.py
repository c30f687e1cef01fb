"""Calls that a person has to approve of first: asked in the client, where that can be, and in the dashboard.

Whoever answers first, counts. Without an answer the call is not made.
"""

from __future__ import annotations

import asyncio
import json
import time
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
from watchroom.rules.requests import Answer, CallDecision, PendingCall, Request, parse_arguments
from watchroom.runtime.threads import run_in_thread, run_to_completion
from watchroom.serving.errors import CallRejected, CallUnanswered
from watchroom.serving.place import Place
from watchroom.texts import Catalogue
from watchroom.toolbox import Toolbox
from watchroom.toolbox.agent_tools import writes_as

SECONDS: Final = 600.0
"""So long people may take."""
_CALL: Final = "call"
_KEY: Final = "approve"
_FIELD: Final = "approved"
_LONGEST: Final = 2000
"""Characters of a call that are shown in a client; the dashboard has all of it."""


class Approved(NamedTuple):
    """A call that may be made, with these arguments; ``key`` is its own, so that it is made once.
    ``checksum`` is that of the call as a person approved of it; ``notice`` is what its agent has to know of
    the approval, empty for nothing."""

    arguments: Mapping[str, Json]
    key: str
    checksum: str
    notice: str = ""


class Asking:
    """Asks people about the calls of the tools ``asks``, and of flushes that write as these do."""

    def __init__(self, place: Place, asks: Collection[str], seconds: float = SECONDS) -> None:
        self._place = place
        self._asks = frozenset(asks)
        self._seconds = seconds

    def wants(self, toolbox: Toolbox, tool: str) -> bool:
        """Whether a person has to approve of the tool's calls."""
        return bool(self._asks) and (tool in self._asks or writes_as(toolbox, tool) in self._asks)

    async def ask(
        self,
        context: ServerRequestContext[Any, Any],
        toolbox: Toolbox,
        params: types.CallToolRequestParams,
        *,
        again: bool = False,
    ) -> Approved | types.InputRequiredResult:
        """Wait for a person's word; or have the client ask, which then makes the call once more. ``again``:
        it was approved, and would write something else by now. Raises `CallRejected`, `CallUnanswered`."""
        arguments: dict[str, Json] = params.arguments or {}
        state = None if again else params.request_state
        path, request = await run_in_thread(self._opened, toolbox, params.name, arguments, state, again)
        (asked,), expires = request.calls, request.expires or 0
        can_elicit = _can_elicit(context)
        if can_elicit and context.protocol_version in MODERN_PROTOCOL_VERSIONS:
            said = None if again else (params.input_responses or {}).get(_KEY)
            if not isinstance(said, types.ElicitResult):
                ended = await run_in_thread(self._place.requests.ended, path)
                if ended is None:
                    form = types.ElicitRequest(params=await run_in_thread(self._form, asked, toolbox))
                    return types.InputRequiredResult(input_requests={_KEY: form}, request_state=path)
            else:
                await run_in_thread(self._take, toolbox, path, said)
        answer = await self._answered(context, toolbox, asked, path, expires, elicits=can_elicit)
        approved = _arguments(answer, arguments)
        checksum = asked.checksum
        if approved is not arguments:
            checksum = await run_in_thread(_checksum_of_edited, toolbox, asked, approved)
        notice = toolbox.texts("request.changed_for_model") if asked.asked_again else ""
        return Approved(approved, path, checksum, notice)

    def _opened(
        self, toolbox: Toolbox, tool: str, arguments: dict[str, Json], state: str | None, again: bool
    ) -> tuple[str, Request]:
        """Where the request stands, and what it asks: the one that the client goes on with, if it is about
        this very call."""
        given = json.dumps(arguments, ensure_ascii=False)
        mine = f"{toolbox.actor}/mcp/"
        if state is not None and state.startswith(mine):
            row = self._place.journal.version("request", state, 1)
            known = self._place.requests.read(row) if row is not None else None
            if known is not None and [(each.name, each.arguments) for each in known.calls] == [(tool, given)]:
                return state, known
        path = mine + uuid.uuid4().hex[:12]
        asked = PendingCall(_CALL, tool, given, toolbox.approval_checksum(tool, arguments), again)
        request = Request(
            "approve",
            toolbox.texts("request.changed_since", tools=tool) if again else "",
            calls=(asked,),
            expires=time.time_ns() + int(self._seconds * 1e9),
        )
        self._place.requests.ask(toolbox.actor, path, request)
        return path, request

    async def _answered(
        self,
        context: ServerRequestContext[Any, Any],
        toolbox: Toolbox,
        asked: PendingCall,
        path: str,
        expires: int,
        *,
        elicits: bool,
    ) -> Answer | None:
        """Until somebody answers, or the time is over."""
        requests = self._place.requests
        loop, called = asyncio.get_running_loop(), asyncio.Event()

        def wake(_: object) -> None:
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(called.set)

        end = self._place.dispatcher.subscribe((path.rpartition("/")[0],), wake)
        asking = None
        if elicits and context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            asking = asyncio.create_task(self._elicit(context, toolbox, asked, path))
        try:
            async with asyncio.timeout((expires - time.time_ns()) / 1e9):
                while (ended := await run_in_thread(requests.ended, path)) is None:
                    await called.wait()
                    called.clear()
                return ended.answer
        except TimeoutError:
            return (await run_in_thread(requests.expire, path)).answer
        except asyncio.CancelledError:
            await run_to_completion(None, requests.withdraw, path)
            raise
        finally:
            end()
            if asking is not None:
                asking.cancel()

    async def _elicit(
        self, context: ServerRequestContext[Any, Any], toolbox: Toolbox, asked: PendingCall, path: str
    ) -> None:
        form = await run_in_thread(self._form, asked, toolbox)
        said = await context.session.elicit_form(form.message, form.requested_schema, context.request_id)
        await run_in_thread(self._take, toolbox, path, said)

    def _form(self, asked: PendingCall, toolbox: Toolbox) -> types.ElicitRequestFormParams:
        """What the client shows: the call, and what it would change."""
        texts: Catalogue = toolbox.texts
        lines = [texts("request.changed_since", tools=asked.name)] if asked.asked_again else []
        lines.append(
            texts("elicit.message", agent=toolbox.actor, tool=asked.name, arguments=_cut(asked.arguments))
        )
        would = proposal(self._place.journal, toolbox.actor, asked.name, parse_arguments(asked.arguments))
        if would is not None:
            version = f"v{would.head.version}" if would.head else "-"
            lines.append(_cut(unified_diff(would.before, would.after, version, would.path)))
        field: dict[str, Any] = {"type": "boolean", "title": texts("elicit.field")}
        schema = {"type": "object", "properties": {_FIELD: field}, "required": [_FIELD]}
        return types.ElicitRequestFormParams(message="\n\n".join(lines), requested_schema=schema)

    def _take(self, toolbox: Toolbox, path: str, said: types.ElicitResult) -> None:
        """What was said in the client is an answer as any other; one that puts the form away is none."""
        row = self._place.journal.version("request", path, 1)
        if row is None or said.action == "cancel":
            return
        approves = said.action == "accept" and (said.content or {}).get(_FIELD) is True
        decision = CallDecision(_CALL, approves)
        # Somebody was first, or it came too late: then that counts.
        with suppress(RequestClosed, RequestExpired, RequestNotFound):
            person = f"{HUMAN_PREFIX}at {toolbox.actor}"
            self._place.requests.answer(person, row.seq, Answer(decisions=(decision,)))


def _can_elicit(context: ServerRequestContext[Any, Any]) -> bool:
    declared = context.session.client_capabilities
    return declared is not None and declared.elicitation is not None


def _cut(text: str) -> str:
    return text[:_LONGEST] + "…" * (len(text) > _LONGEST)


def _checksum_of_edited(toolbox: Toolbox, asked: PendingCall, edited: Mapping[str, Json]) -> str:
    """The checksum of a call whose arguments a person changed: approved as it is, if nothing else has changed
    since it was asked about."""
    current = toolbox.approval_checksum(asked.name, edited)
    as_shown = toolbox.approval_checksum(asked.name, parse_arguments(asked.arguments))
    return current if as_shown == asked.checksum else asked.checksum


def _arguments(answer: Answer | None, given: Mapping[str, Json]) -> Mapping[str, Json]:
    """With what arguments the call may be made."""
    if answer is None or answer.expired:
        raise CallUnanswered
    (decision,) = answer.decisions
    if not decision.approved:
        raise CallRejected(reason=decision.reason or "-")
    return parse_arguments(decision.arguments) if decision.arguments else given
