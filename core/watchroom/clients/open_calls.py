"""The calls of an attached client that have not ended, and the questions about them."""

from __future__ import annotations

from typing import Final, NamedTuple

from watchroom.clients.events import CallFinished
from watchroom.clients.session import ClientSession
from watchroom.errors import RequestClosed, RequestExpired, RequestWithdrawn
from watchroom.rules.decision_errors import MayNotDecide, SignatureRequired
from watchroom.rules.requests import decide_all
from watchroom.runtime.threads import run_in_thread
from watchroom.workspace import Workspace
from watchroom.zones.requests import RequestOutcome

_MAX_CALLS: Final = 1000
"""Calls that are remembered until they end."""
REJECTED: Final = "rejected"
"""The code of a call that a person has rejected."""
_AT_CLIENT: Final = "human:at-"


class OpenCall(NamedTuple):
    """A call that has not ended.

    - ``id``: the client's, or one of ours for a question that fits no single call
    - ``tool``, ``arguments``: the call, its arguments as JSON
    - ``request``: the path of the question about it, empty for none
    - ``is_before``: the question was asked before the client made its own decision
    - ``candidates``: the ids of the calls that the question may be about, if several fit
    """

    id: str
    tool: str
    arguments: str
    request: str = ""
    is_before: bool = False
    candidates: frozenset[str] = frozenset()


class OpenCalls:
    """The open calls of the client of ``agent`` in ``workspace``. May be used on one event loop."""

    def __init__(self, workspace: Workspace, agent: str) -> None:
        self._workspace = workspace
        self._agent = agent
        self._calls: dict[tuple[str, str], OpenCall] = {}
        """By the path of the session and the id of the call."""

    def add(self, session: ClientSession, call: OpenCall) -> None:
        """Remember ``call`` of ``session``, in place of what is known of it."""
        # It keeps its place: questions are matched to calls in their order.
        self._calls[session.path, call.id] = call
        if len(self._calls) > _MAX_CALLS:
            del self._calls[next(iter(self._calls))]

    def forget(self, session: ClientSession, call: OpenCall) -> None:
        """Forget ``call`` of ``session``, which is not made."""
        self._calls.pop((session.path, call.id), None)

    def find(self, session: ClientSession, tool: str, arguments: str) -> list[OpenCall]:
        """Return the calls of ``session`` that a question of its client about ``tool`` with ``arguments`` may
        be about: those nobody was asked about yet, in their order. Calls of other sessions and of its
        subagents never fit."""
        return [
            call
            for (path, _), call in self._calls.items()
            if path == session.path and not call.request and (call.tool, call.arguments) == (tool, arguments)
        ]

    def is_answer_at_client(self, ended: RequestOutcome) -> bool:
        """Return whether a request ended because its call ended at the client."""
        return ended.row.actor == f"{_AT_CLIENT}{self._agent}"

    async def settle(self, session: ClientSession, told: CallFinished) -> CallFinished:
        """Close the questions that the end of a call of ``session`` closes. Return ``told``, as refused if a
        person has rejected the call at the client.

        The question about this very call was answered at the client, if nobody else has. A question that
        several calls fit is withdrawn once all of them have ended: which one it was about is not known.
        """
        call = self._calls.pop((session.path, told.id), None)
        if call is not None and call.request:
            if call.is_before:
                # The client does not make a call while its hook waits: nobody has approved of this one.
                await self._withdraw(call)
            elif await run_in_thread(self._workspace.requests.ended, call.request) is None:
                await run_in_thread(self._answer_at_client, session, call.request, not told.is_error)
                if told.is_error:
                    told = told._replace(refusal=REJECTED)
        for key, each in [*self._calls.items()]:
            if key[0] == session.path and told.id in each.candidates:
                left = each.candidates - {told.id}
                self._calls[key] = each._replace(candidates=left)
                if not left:
                    del self._calls[key]
                    await self._withdraw(each)
        return told

    def _answer_at_client(self, session: ClientSession, path: str, approved: bool) -> None:
        asked = self._workspace.journal.version("request", path, 1)
        if asked is None:
            return
        requests = self._workspace.requests
        answer = decide_all(requests.read(asked), approved)
        try:
            requests.answer(f"{_AT_CLIENT}{self._agent}", asked.seq, answer)
        except (RequestClosed, RequestExpired, RequestWithdrawn) as error:
            # Somebody was quicker, which is what counts.
            self._workspace.session_zone.note(self._agent, "answered_before", session.path, str(error), {})
        except (SignatureRequired, MayNotDecide) as error:
            # The client says that a person did, and went on: nobody need answer any more, nor has anybody.
            requests.withdraw(path)
            self._workspace.session_zone.note(self._agent, "answered_unsigned", session.path, str(error), {})

    async def withdraw_all(self, session: ClientSession) -> None:
        """Forget the calls of ``session``, whose turn has ended, and withdraw the questions about them."""
        for key, call in [*self._calls.items()]:
            if key[0] == session.path:
                del self._calls[key]
                if call.request:
                    await self._withdraw(call)

    async def _withdraw(self, call: OpenCall) -> None:
        if await run_in_thread(self._workspace.requests.ended, call.request) is None:
            await run_in_thread(self._workspace.requests.withdraw, call.request)
