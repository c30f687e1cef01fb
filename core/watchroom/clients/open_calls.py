"""The calls of an attached agent's client that have not ended, and what people were asked about them."""

from __future__ import annotations

from typing import Final, NamedTuple

from watchroom.clients.events import CallFinished
from watchroom.clients.session import ClientSession
from watchroom.errors import RequestClosed, RequestExpired, RequestWithdrawn
from watchroom.rules.decision_errors import MayNotDecide, SignatureRequired
from watchroom.rules.requests import decide_all
from watchroom.runtime.threads import run_in_thread
from watchroom.workspace import Workspace

_MOST_CALLS: Final = 1000
"""So many calls are remembered that have not ended."""


class OpenCall(NamedTuple):
    """A call that has not ended: its id, tool, arguments as JSON, and the request about it, if any."""

    id: str
    tool: str
    arguments: str
    request: str = ""


class OpenCalls:
    """The open calls of the client of ``agent`` in ``workspace``. May be used on one event loop."""

    def __init__(self, workspace: Workspace, agent: str) -> None:
        self._workspace = workspace
        self._agent = agent
        self._calls: dict[str, OpenCall] = {}

    def add(self, call: OpenCall) -> None:
        """Remember ``call``, in place of what is known of it."""
        self._calls.pop(call.id, None)
        self._calls[call.id] = call
        if len(self._calls) > _MOST_CALLS:
            del self._calls[next(iter(self._calls))]

    def find(self, tool: str, arguments: str) -> OpenCall | None:
        """The newest call of ``tool`` with these ``arguments``, None where there is none."""
        calls = reversed(self._calls.values())
        return next((each for each in calls if (each.tool, each.arguments) == (tool, arguments)), None)

    async def settle(self, session: ClientSession, told: CallFinished) -> None:
        """A call has ended: what was asked about it was answered at the client, if nobody else has."""
        call = self._calls.pop(told.id, None)
        if call is None or not call.request:
            return
        if await run_in_thread(self._workspace.requests.ended, call.request) is None:
            await run_in_thread(self._answer_at_client, session, call.request, not told.is_error)

    def _answer_at_client(self, session: ClientSession, path: str, approved: bool) -> None:
        asked = self._workspace.journal.version("request", path, 1)
        if asked is None:
            return
        requests = self._workspace.requests
        answer = decide_all(requests.read(asked), approved)
        try:
            requests.answer(f"human:at-{self._agent}", asked.seq, answer)
        except (RequestClosed, RequestExpired, RequestWithdrawn) as error:
            # Somebody was quicker, which is what counts.
            self._workspace.session_zone.note(self._agent, "answered_before", session.path, str(error), {})
        except (SignatureRequired, MayNotDecide) as error:
            # The client says that a person did, and went on: nobody need answer any more, nor has anybody.
            requests.withdraw(path)
            self._workspace.session_zone.note(self._agent, "answered_unsigned", session.path, str(error), {})

    async def withdraw_all(self, session: ClientSession) -> None:
        """Nobody needs to answer what is still open of ``session``: its turn has ended otherwise."""
        prefix = f"{session.path}/"
        for call in [each for each in self._calls.values() if each.request.startswith(prefix)]:
            del self._calls[call.id]
            if await run_in_thread(self._workspace.requests.ended, call.request) is None:
                await run_in_thread(self._workspace.requests.withdraw, call.request)
