"""What becomes of the hook events of an attached agent's client: rows, questions to people, and answers.

One `Attachment` serves a client, in the server that it has started (the attendant) or in the process of a
single hook. Who the agent is says whoever set the client up, never an event.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
from collections import deque
from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias

from watchroom.clients import claude, codex
from watchroom.clients.configuration import HOOK_SECONDS, Client
from watchroom.clients.events import (
    CallFinished,
    ClientEvent,
    ClientInfo,
    ClientPaused,
    MessageCompleted,
    PromptSubmitted,
    SessionEnded,
    TextStreamed,
    TurnEnded,
)
from watchroom.clients.hook_answer import (
    AFTER,
    BEFORE,
    NOTHING,
    PERMISSION,
    PROMPT,
    STOP,
    HookAnswer,
    allow,
    block_prompt,
    deny,
    stop,
    tell,
    wake,
    warn,
)
from watchroom.clients.hooks import denial_reason, fetch_notifications
from watchroom.clients.json_fields import dump, text_of
from watchroom.clients.processes import ClientProcess
from watchroom.clients.session import ClientSession
from watchroom.errors import RequestClosed, RequestExpired, RequestWithdrawn
from watchroom.model import CANCEL, ENDED, MESSAGE, PAUSE, RESUME, Json, Row
from watchroom.rules.policy import PolicyDecision, decide
from watchroom.rules.policy_subject import policy_subject
from watchroom.rules.requests import PendingCall, Request, decide_all, parse_arguments
from watchroom.runtime.request_waiting import wait_for_outcome
from watchroom.runtime.threads import call_soon_threadsafe, run_in_thread, run_to_completion
from watchroom.texts import Catalogue, catalogue
from watchroom.workspace import Workspace
from watchroom.zones.requests import RequestOutcome

_MARGIN: Final = 30
"""So much earlier a hook answers: what a client does with a hook that is late is not for it to say."""
_MOST_CALLS: Final = 1000
"""So many calls are remembered that have not ended."""
_TELL: Final = "tell_news"
_OURS: Final = "mcp__watchroom__"

_NO_ID: Final = re.compile(r"[^A-Za-z0-9_.-]", re.ASCII)
_LONGEST_ID: Final = 64

Event: TypeAlias = Mapping[str, Json]


class Controls(NamedTuple):
    """What people have said to a session: who paused it, empty where it is not paused; the row by which it
    was cancelled and has not been prompted since."""

    paused_by: str = ""
    cancelled: Row | None = None


class OpenCall(NamedTuple):
    """A call that has not ended: its id, tool, arguments as JSON, and the request about it, if any."""

    id: str
    tool: str
    arguments: str
    request: str = ""


class Attachment:
    """The ``client`` of ``agent`` in ``workspace``, by its hooks. ``process`` is the client's, None where
    that is not known. ``is_owner``: this process goes on with the client's sessions. ``is_strict``: where
    nobody answers in ``hold_seconds`` the call is not made; else the client decides. May be used on one event
    loop. Raises `UnknownAgent`."""

    def __init__(
        self,
        workspace: Workspace,
        agent: str,
        client: Client,
        *,
        process: ClientProcess | None = None,
        is_owner: bool = False,
        is_strict: bool = False,
        hold_seconds: float = HOOK_SECONDS - _MARGIN,
    ) -> None:
        self.workspace = workspace
        self.agent = workspace.registry.agent(agent).id
        self.client = client
        self.process = process
        self.sessions: dict[str, ClientSession] = {}
        """By their path, without agent: the main ones, and those of subagents."""
        self._is_owner = is_owner
        self._is_strict = is_strict
        self._hold_seconds = hold_seconds
        self._translator = claude if client == "claude" else codex
        self._calls: dict[str, OpenCall] = {}
        self._prompted: dict[str, int] = {}
        self._displayed: dict[str, list[str]] = {}
        self._said: deque[str] = deque(maxlen=200)
        self._turns: dict[str, asyncio.Event] = {}

    @property
    def _texts(self) -> Catalogue:
        return catalogue(self.workspace.config.language)

    async def handle(self, event: Event, *, may_wait: bool = False) -> HookAnswer:
        """Make rows of what ``event`` tells, ask people where they have to be asked, and return what to
        answer. ``may_wait``: the hook of an idle client may wait until something comes.
        A wait that is cancelled withdraws what it asked. Raises `WatchroomError`."""
        name = text_of(event, "hook_event_name")
        session = await run_in_thread(self.find_session, event)
        if session is None:
            return await run_in_thread(self._answer_without_session, event)
        main = self._main_path(event)
        if name in (PROMPT, "SessionEnd"):
            self._turn(main).set()
        if name == BEFORE:
            return await self._before(session, main, event)
        if name == PERMISSION:
            return await self._ask_permission(session, event)
        if name == PROMPT:
            return await self._prompt(session, main, event)
        await self._record_all(session, event, name)
        if name == AFTER:
            return tell(AFTER, await run_in_thread(self._news, main))
        if name == STOP:
            return await self._idle(main, event, may_wait)
        return NOTHING

    def _answer_without_session(self, event: Event) -> HookAnswer:
        language = self.workspace.config.language
        name = text_of(event, "hook_event_name")
        if name == BEFORE:
            reason = denial_reason(self.workspace.root, self.agent, event, language)
            return deny(BEFORE, reason) if reason else NOTHING
        return (
            tell(name, fetch_notifications(self.workspace, self.agent, language))
            if name == AFTER
            else NOTHING
        )

    def find_session(self, event: Event) -> ClientSession | None:
        """The session that ``event`` is of, begun where it is new; None where it names none."""
        given = text_of(event, "session_id")
        if not given:
            return None
        own = session_id_of(given)
        parent = self._open(own, event, "")
        subagent = text_of(event, "agent_id")
        if not subagent:
            return parent
        return self._open(session_id_of(f"{own[:40]}.{subagent}"), event, parent.path)

    def _open(self, session_id: str, event: Event, parent: str) -> ClientSession:
        known = self.sessions.get(session_id)
        if known is None:
            process = self.process
            info = ClientInfo(
                self.client,
                cwd=text_of(event, "cwd"),
                model=text_of(event, "model"),
                pid=process.pid if process else 0,
                started=process.started if process else 0.0,
            )
            known = ClientSession(
                self.workspace, self.agent, session_id, info, parent=parent, is_owner=self._is_owner
            )
            self.sessions[session_id] = known
        return known

    def _main_path(self, event: Event) -> str:
        return f"{self.agent}/{session_id_of(text_of(event, 'session_id'))}"

    async def record(self, session: ClientSession, event: ClientEvent) -> Row | None:
        """Make a row of ``event`` in ``session``, off the event loop. Raises as `ClientSession.record`."""
        return await run_in_thread(session.record, event)

    async def record_line(self, session: ClientSession, line: Event) -> bool:
        """Make rows of what a ``line`` of the transcript of ``session`` tells and no hook has told. Returns
        whether the agent did something there."""
        told = self._translator.translate_line(line)
        for event in told:
            if isinstance(event, MessageCompleted) and _mark(event.text) in self._said:
                continue
            if isinstance(event, CallFinished):
                await self._settle(session, event)
            await self.record(session, event)
        return bool(told)

    async def _record_all(self, session: ClientSession, event: Event, name: str) -> None:
        """Make rows of what ``event`` tells, and settle what was asked about calls that have ended."""
        if name == "MessageDisplay":
            await self._display(session, event)
            return
        for told in self._translator.translate_hook(event):
            if isinstance(told, CallFinished):
                await self._settle(session, told)
            elif isinstance(told, TurnEnded | SessionEnded):
                await self.withdraw_all(session)
            if isinstance(told, SessionEnded) and await run_in_thread(lambda: session.status) in ENDED:
                # How it ended was said already, by who stopped it.
                continue
            await self.record(session, told)

    async def _display(self, session: ClientSession, event: Event) -> None:
        """A piece of text as it is shown; with the last one of a message, the message."""
        key, piece = text_of(event, "message_id"), text_of(event, "delta")
        pieces = self._displayed.setdefault(key, [])
        pieces.append(piece)
        if event.get("final") is not True:
            await self.record(session, TextStreamed(piece))
            return
        text = "".join(self._displayed.pop(key))
        if text.strip() and (event.get("index") == len(pieces) - 1 or self._is_owner):
            self._said.append(_mark(text))
            await self.record(session, MessageCompleted(text, key=f"shown {key}"))

    async def _prompt(self, session: ClientSession, main: str, event: Event) -> HookAnswer:
        held = await run_in_thread(self._controls, session, main)
        if held.paused_by:
            return block_prompt(self._texts("hook.paused", by=held.paused_by))
        await self.withdraw_all(session)
        for told in self._translator.translate_hook(event):
            row = await self.record(session, told)
            if isinstance(told, PromptSubmitted) and row is not None:
                self._prompted[main] = row.seq
        return tell(PROMPT, await run_in_thread(self._news, main))

    async def _before(self, session: ClientSession, main: str, event: Event) -> HookAnswer:
        tool = text_of(event, "tool_name")
        held = await run_in_thread(self._controls, session, main)
        if held.cancelled is not None:
            return await self._stopped(session, held.cancelled)
        reason = await run_in_thread(
            denial_reason, self.workspace.root, self.agent, event, self.workspace.config.language
        )
        decision = PolicyDecision() if tool.startswith(_OURS) else self._decide(event)
        if decision.verdict == "deny" and not reason:
            reason = self._texts("hook.policy", rule=decision.name or decision.number)
        call = OpenCall(text_of(event, "tool_use_id"), tool, dump(event.get("tool_input")))
        await self._record_all(session, event, BEFORE)
        if reason:
            if call.id:
                await self.record(session, CallFinished(call.id, reason, is_error=True))
            return deny(BEFORE, reason)
        self._remember(call)
        if held.paused_by:
            stopped = await self._wait_for_resumption(session, main, held)
            if stopped is not None:
                return stopped
        if decision.verdict == "ask":
            return await self._ask(session, BEFORE, call)
        if decision.verdict == "allow" and decision.number:
            return allow(BEFORE)
        return NOTHING

    def _decide(self, event: Event) -> PolicyDecision:
        given = event.get("tool_input")
        arguments = given if isinstance(given, Mapping) else {}
        subject = policy_subject(arguments, folder=text_of(event, "cwd"), resolve=os.path.realpath)
        rules = self.workspace.config.policy
        tool, now = text_of(event, "tool_name"), self.workspace.requests.now()
        return decide(rules, self.agent, tool, subject, now)

    async def _stopped(self, session: ClientSession, cancelled: Row) -> HookAnswer:
        """The answer to a call of a session that a person has cancelled."""
        if session.status not in ENDED:
            await self.record(session, SessionEnded("cancelled", cancelled.actor))
        return stop(BEFORE, self._texts("hook.cancelled", by=cancelled.actor))

    async def _wait_for_resumption(
        self, session: ClientSession, main: str, held: Controls
    ) -> HookAnswer | None:
        """Hold a call until its session is resumed; the answer where it is not."""
        await self.record(session, ClientPaused(held.paused_by))
        loop, changed = asyncio.get_running_loop(), asyncio.Event()
        end = self.workspace.dispatcher.subscribe(
            (self.agent, main), lambda _: call_soon_threadsafe(loop, changed.set)
        )
        try:
            async with asyncio.timeout(self._hold_seconds):
                while (now := await run_in_thread(self._controls, session, main)).paused_by:
                    if now.cancelled is not None:
                        break
                    await changed.wait()
                    changed.clear()
        except TimeoutError:
            said = self._texts("hook.still_paused", by=held.paused_by)
            if self._is_strict:
                return deny(BEFORE, said)
            await self.record(session, ClientPaused(is_paused=False))
            await run_in_thread(self._note, session, "hook_timeout", said)
            return warn(said)
        finally:
            end()
        if now.cancelled is not None:
            return await self._stopped(session, now.cancelled)
        await self.record(session, ClientPaused(is_paused=False))
        return None

    async def _ask_permission(self, session: ClientSession, event: Event) -> HookAnswer:
        tool, arguments = text_of(event, "tool_name"), dump(event.get("tool_input"))
        # The event does not say which call it is about.
        found = [each for each in self._calls.values() if (each.tool, each.arguments) == (tool, arguments)]
        if found:
            call = found[-1]
        else:
            version = (await run_in_thread(lambda: session.last)).version
            call = OpenCall(f"ask-{_mark(tool + arguments)[:12]}-{version}", tool, arguments)
        return await self._ask(session, PERMISSION, call)

    async def _ask(self, session: ClientSession, event: str, call: OpenCall) -> HookAnswer:
        """Ask people whether ``call`` may be made, and wait for their answer."""
        expires = self.workspace.requests.now() + int(self._hold_seconds * 1e9)
        pending = PendingCall(call.id, call.tool, call.arguments)
        request = Request("approve", calls=(pending,), metadata={"client": self.client}, expires=expires)
        path = session.request_path(call.id)
        self._remember(call._replace(request=path))
        try:
            await run_to_completion(None, session.ask, call.id, request)
            ended = await wait_for_outcome(self.workspace.requests, self.workspace.dispatcher, path, expires)
        except asyncio.CancelledError:
            await run_to_completion(None, self._take_back, session, path)
            raise
        return await self._answered(session, event, path, ended)

    def _take_back(self, session: ClientSession, path: str) -> None:
        if self.workspace.requests.ended(path) is None:
            self.workspace.requests.withdraw(path)
        session.record_withdrawal(path)

    async def _answered(
        self, session: ClientSession, event: str, path: str, ended: RequestOutcome
    ) -> HookAnswer:
        answer = ended.answer
        if answer is None or not (answer.expired or answer.decisions):
            await run_in_thread(session.record_withdrawal, path)
            return NOTHING
        await run_in_thread(session.record_answer, path, answer, ended.row.actor)
        if answer.expired:
            said = self._texts("hook.unanswered")
            return deny(event, said) if self._is_strict else warn(said)
        decision = answer.decisions[0]
        if not decision.approved:
            return deny(event, decision.reason or self._texts("hook.declined", by=ended.row.actor))
        if decision.arguments is None:
            return allow(event)
        if self.client == "codex":
            # It takes no other arguments from a hook.
            return deny(event, self._texts("hook.changed", arguments=decision.arguments))
        return allow(event, parse_arguments(decision.arguments))

    async def _settle(self, session: ClientSession, told: CallFinished) -> None:
        """A call has ended: what was asked about it was answered at the client, if nobody else has."""
        call = self._calls.pop(told.id, None)
        if call is None or not call.request:
            return
        if await run_in_thread(self.workspace.requests.ended, call.request) is None:
            await run_in_thread(self._answer_at_client, call.request, not told.is_error)

    def _answer_at_client(self, path: str, approved: bool) -> None:
        asked = self.workspace.journal.version("request", path, 1)
        if asked is None:
            return
        requests = self.workspace.requests
        answer = decide_all(requests.read(asked), approved)
        try:
            requests.answer(f"human:at-{self.agent}", asked.seq, answer)
        except (RequestClosed, RequestExpired, RequestWithdrawn) as error:
            # Somebody was quicker, which is what counts.
            self._note(self.sessions[path.split("/")[1]], "answered_before", str(error))

    async def withdraw_all(self, session: ClientSession) -> None:
        """Nobody needs to answer what is still open of ``session``: its turn has ended otherwise."""
        prefix = f"{session.path}/"
        for call in [each for each in self._calls.values() if each.request.startswith(prefix)]:
            del self._calls[call.id]
            if await run_in_thread(self.workspace.requests.ended, call.request) is None:
                await run_in_thread(self.workspace.requests.withdraw, call.request)

    async def _idle(self, main: str, event: Event, may_wait: bool) -> HookAnswer:
        """Give an agent that has nothing to do what comes for it, as soon as it comes."""
        if self.client == "codex" or not may_wait:
            news = await run_in_thread(self._news, main)
            is_again = event.get("stop_hook_active") is True
            if not news or is_again:
                return NOTHING
            return block_prompt(news) if self.client == "codex" else wake(news)
        turn = self._turn(main)
        turn.clear()
        loop, changed = asyncio.get_running_loop(), asyncio.Event()
        end = self.workspace.dispatcher.subscribe(
            (self.agent, main), lambda _: call_soon_threadsafe(loop, changed.set)
        )
        try:
            while not turn.is_set():
                held = await run_in_thread(self._controls, self.sessions[main.partition("/")[2]], main)
                if not held.paused_by and (news := await run_in_thread(self._news, main)):
                    return wake(news)
                waits = [asyncio.ensure_future(each.wait()) for each in (changed, turn)]
                try:
                    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for each in waits:
                        each.cancel()
                changed.clear()
            return NOTHING
        finally:
            end()

    def _turn(self, main: str) -> asyncio.Event:
        return self._turns.setdefault(main, asyncio.Event())

    def _controls(self, session: ClientSession, main: str) -> Controls:
        paused_by, cancelled = "", None
        for record in self.workspace.session_zone.controls(main, 0):
            if record.row.tool in (PAUSE, RESUME):
                paused_by = record.row.actor if record.row.tool == PAUSE else ""
            elif record.row.tool == CANCEL:
                cancelled, paused_by = record.row, ""
        begun = self.workspace.journal.version("session", main, 1)
        if cancelled is not None and not self._is_cancelled(cancelled, session, main, begun):
            cancelled = None
        return Controls(paused_by, cancelled)

    def _is_cancelled(self, cancelled: Row, session: ClientSession, main: str, begun: Row | None) -> bool:
        """Whether a person's word still holds: until the next prompt."""
        if begun is not None and cancelled.seq < begun.seq:
            return False
        prompted = self._prompted.get(main)
        if prompted is not None:
            return cancelled.seq > prompted
        last = session.last
        return cancelled.seq > last.seq or session.status == "cancelled"

    def _news(self, main: str) -> str:
        """What has come for the agent since it was last told, also what people wrote to its session."""
        language = self.workspace.config.language
        told = [fetch_notifications(self.workspace, self.agent, language)]
        journal, zone = self.workspace.journal, self.workspace.session_zone
        begun, last = (
            journal.version("session", main, 1),
            journal.last_note("session", main, self.agent, _TELL),
        )
        after = (last.base or 0) if last else (begun.seq if begun else 0)
        written = [
            each
            for each in zone.controls(main, after)
            if each.row.tool == MESSAGE and each.row.zone == "session"
        ]
        if written:
            key = f"{_TELL} {main} {written[-1].row.seq}"
            detail: dict[str, Json] = {"rows": len(written)}
            noted = zone.note(self.agent, _TELL, main, "", detail, base=written[-1].row.seq, key=key)
            if noted.base == written[-1].row.seq:
                texts = catalogue(language)
                told.extend(
                    texts("hook.message", sender=each.row.actor, text="\n  ".join(each.text.splitlines()))
                    for each in written
                )
        return "\n".join(each for each in told if each)

    def _note(self, session: ClientSession, tool: str, text: str) -> None:
        self.workspace.session_zone.note(self.agent, tool, session.path, text, {})

    def _remember(self, call: OpenCall) -> None:
        self._calls.pop(call.id, None)
        self._calls[call.id] = call
        if len(self._calls) > _MOST_CALLS:
            del self._calls[next(iter(self._calls))]


def session_id_of(given: str) -> str:
    """The id of the session that a client calls ``given``: the same where a session's id can be that."""
    kept = _NO_ID.sub("-", given).lstrip("_.-")[:_LONGEST_ID]
    return kept if kept == given else f"{kept[: _LONGEST_ID - 9] or 'session'}-{_mark(given)[:8]}"


def _mark(text: str) -> str:
    return hashlib.sha256(json.dumps(text.strip()).encode()).hexdigest()
