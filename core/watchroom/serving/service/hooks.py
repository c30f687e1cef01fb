"""Answers the hooks of attached clients that reach the service."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import Final

from watchroom.agents.clients.adapter import Event
from watchroom.agents.clients.attendant import Attendant
from watchroom.agents.clients.client_program import BEAT_SECONDS
from watchroom.agents.clients.hook_answers import END, NOTHING, HookAnswer
from watchroom.agents.clients.json_fields import text_of
from watchroom.agents.clients.processes import ancestors_of, seconds_since_start
from watchroom.agents.clients.registry import DEFAULT_CLIENT, HOOKED_CLIENTS, hooks_of
from watchroom.agents.clients.session import session_id_of
from watchroom.features.sessions.messages import Handover
from watchroom.features.sessions.runtime.threads import run_in_thread
from watchroom.serving.service.http import BadRequest, Connection, ServiceRequest
from watchroom.serving.service.workspaces import ServedWorkspace

MAX_AGENTS: Final = 100
_MAX_AGE: Final = 86_400.0
"""Maximum seconds that are accepted as a hook's age."""
_IDLE_ENTRY: Final = "cli"
"""Claude Code's kind for a client in a terminal. Only there, a hook can stay open while the client is
idle."""


async def answer_hook(served: ServedWorkspace, request: ServiceRequest, connection: Connection) -> None:
    """Answer ``request``, a hook of a client. If the hook ends before its answer, withdraw its question.

    Raise `BadRequest`, OSError, `WatchroomError`.
    """
    client = request.get("client", DEFAULT_CLIENT)
    if client not in HOOKED_CLIENTS:
        raise BadRequest(409, "no client")
    hooks = hooks_of(client)
    event = hooks.read_event(_parse_event(request.body))
    attendant = await _find_attendant(served, request, event)
    if attendant is None:
        await connection.answer(_dump(NOTHING, request))
        return
    age = await _age(served, request)
    with served.workspace.messages.hand_over() as handover:
        may_wait = request.get("entry") == _IDLE_ENTRY

        async def answer() -> HookAnswer | None:
            said = await attendant.answer(
                event, handover, age=age, may_wait=may_wait, agents=request.all("agent")
            )
            return None if said is None else hooks.write_answer(event, said)

        answering = asyncio.ensure_future(answer())
        closing = asyncio.ensure_future(_until_ended(attendant, request.peer.pid, connection))
        await _send_answer(request, connection, answering, closing, handover)


async def _until_ended(attendant: Attendant, pid: int, connection: Connection) -> None:
    """Wait until the hook with the process id ``pid`` has ended. A client may kill the shell of a hook, and
    leave the waiting program to another parent."""
    platform = attendant.process.platform
    reading = asyncio.ensure_future(connection.reader.read(1))
    try:
        while not (await asyncio.wait([reading], timeout=BEAT_SECONDS))[0]:
            # A system under load may not answer.
            with suppress(OSError):
                if attendant.process.pid not in await run_in_thread(ancestors_of, platform, pid):
                    return
    finally:
        reading.cancel()


async def _send_answer(
    request: ServiceRequest,
    connection: Connection,
    answering: asyncio.Future[HookAnswer | None],
    closing: asyncio.Future[None],
    handover: Handover,
) -> None:
    try:
        await connection.wait_with_beats(answering, closing)
        if answering.done():
            answer = answering.result()
            if answer is None:
                raise BadRequest(409, "another agent")
            await connection.answer(_dump(answer, request))
            if not closing.done():
                await run_in_thread(handover.record)
    finally:
        for each in (answering, closing):
            each.cancel()
        await asyncio.gather(answering, closing, return_exceptions=True)


def _parse_event(body: bytes) -> Event:
    try:
        event = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadRequest(400, str(error)) from error
    if not isinstance(event, dict):
        raise BadRequest(400, type(event).__name__)
    return event


async def _find_attendant(served: ServedWorkspace, request: ServiceRequest, event: Event) -> Attendant | None:
    """Return the attendant of the client that runs the hook. None if no answer is needed. Raise `BadRequest`
    if the service cannot identify the client, `UnknownAgent`, OSError."""
    client, agents = request.get("client", DEFAULT_CLIENT), request.all("agent")
    if len(agents) > MAX_AGENTS:
        raise BadRequest(409, "too many agents")
    is_end = text_of(event, "hook_event_name") == END
    if is_end and served.has_ended(session_id_of(text_of(event, "session_id"))):
        return None
    is_strict = "1" in request.all("strict")
    attendant = await served.attend(request.peer.pid, client, agents, is_strict=is_strict)
    if attendant is None:
        raise BadRequest(409, "the client is not known")
    return attendant


async def _age(served: ServedWorkspace, request: ServiceRequest) -> float:
    """Return the seconds since the hook started."""
    given = request.get("age")
    try:
        age = (
            float(given)
            if given
            else await run_in_thread(seconds_since_start, served.workspace.platform, request.peer.pid)
        )
    except (ValueError, OSError):
        return 0.0
    return age if 0 <= age <= _MAX_AGE else 0.0


def _dump(answer: HookAnswer, request: ServiceRequest) -> str:
    """Return ``answer`` in the form requested by ``request``: the hook's output, or JSON with its output,
    error output and exit status.

    Raise `BadRequest` if the first form cannot express the answer.
    """
    if request.get("form") == "status":
        return json.dumps({"said": answer.dump(), "error": answer.error, "status": answer.status})
    if answer.error:
        raise BadRequest(409, answer.error)
    return answer.dump()
