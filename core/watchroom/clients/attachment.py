"""What becomes of the hook events of an attached agent's client: rows, questions to people, and answers.

One `Attachment` serves a client, in the server that it has started (the attendant) or in the process of a
single hook. Who the agent is says whoever set the client up, never an event.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import Final, TypeAlias

from watchroom.clients import claude, codex
from watchroom.clients.budget_hold import hold_for_budgets
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
    UsageTold,
)
from watchroom.clients.hook_answer import (
    AFTER,
    BEFORE,
    NOTHING,
    PERMISSION,
    PROMPT,
    START,
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
from watchroom.clients.json_fields import dump, text_of, time_of
from watchroom.clients.message_deduplication import MessageDeduplicator, MessageSource
from watchroom.clients.message_pieces import MessagePieces
from watchroom.clients.open_calls import OpenCall, OpenCalls
from watchroom.clients.processes import ClientProcess
from watchroom.clients.questions import build_question
from watchroom.clients.session import ClientSession
from watchroom.clients.session_ids import fingerprint, session_id_of, subagent_id_of
from watchroom.clients.session_inbox import Controls, SessionInbox
from watchroom.git.worktrees import find_worktrees
from watchroom.model import ENDED, Json, Row
from watchroom.rules.policy import PolicyDecision
from watchroom.rules.policy_subject import policy_subject
from watchroom.rules.requests import PendingCall, parse_arguments
from watchroom.runtime.request_waiting import wait_for_outcome
from watchroom.runtime.threads import call_soon_threadsafe, run_in_thread, run_to_completion
from watchroom.texts import Catalogue, catalogue
from watchroom.workspace import Workspace
from watchroom.zones.requests import RequestOutcome

_MARGIN: Final = 30
"""So much earlier a hook answers: what a client does with a hook that is late is not for it to say."""
_MOST_SESSIONS: Final = 100
"""So many sessions are remembered; what one that is forgotten tells later goes on with its rows."""
_OURS: Final = "mcp__watchroom__"

Event: TypeAlias = Mapping[str, Json]


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
        self.calls = OpenCalls(workspace, self.agent)
        self._inbox = SessionInbox(workspace, self.agent)
        self._displayed = MessagePieces()
        self._messages = MessageDeduplicator()
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
        if name == START and await run_in_thread(lambda: session.status) in ENDED:
            # It was resumed, and waits for a prompt.
            await self.record(session, TurnEnded())
        if name == AFTER:
            return tell(AFTER, await run_in_thread(self._inbox.news, main))
        if name == STOP:
            return await self._idle(session, main, event, may_wait)
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
        return self._open(subagent_id_of(own, subagent), event, parent.path)

    def _open(self, session_id: str, event: Event, parent: str) -> ClientSession:
        known = self.sessions.get(session_id)
        if known is None:
            if len(self.sessions) >= _MOST_SESSIONS:
                self._forget_session()
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

    def _forget_session(self) -> None:
        """Forget the session that is missed least: one that has ended, else a subagent's, else the oldest."""
        known = [*self.sessions.items()]
        ended = (each for each in known if each[1].status in ENDED)
        name, session = next(ended, None) or next((each for each in known if each[1].parent), known[0])
        self.sessions.pop(name, None)
        self._turns.pop(session.path, None)
        self._inbox.forget(session.path)

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
            # What was said before the session ended was told then, perhaps by hooks.
            if isinstance(event, MessageCompleted) and (
                0 < time_of(line, "timestamp") <= session.ended_at
                or self._is_duplicate(session, event.text, "transcript")
            ):
                continue
            if isinstance(event, CallFinished):
                await self.calls.settle(session, event)
            await self.record(session, event)
        return bool(told)

    async def _record_all(self, session: ClientSession, event: Event, name: str) -> None:
        """Make rows of what ``event`` tells, and settle what was asked about calls that have ended."""
        if name == "MessageDisplay":
            await self._display(session, event)
            return
        for told in self._translator.translate_hook(event):
            if isinstance(told, CallFinished):
                await self.calls.settle(session, told)
            elif isinstance(told, TurnEnded | SessionEnded):
                await self.calls.withdraw_all(session)
            if isinstance(told, SessionEnded) and await run_in_thread(lambda: session.status) in ENDED:
                # How it ended was said already, by who stopped it.
                continue
            if isinstance(told, UsageTold) and told.key:
                # Between two requests of a turn a call has ended, so both count even if they used the same.
                calls = await run_in_thread(lambda: session.call_count)
                await self.record(session, told._replace(key=f"{told.key} {calls}"))
                continue
            await self.record(session, told)

    async def _display(self, session: ClientSession, event: Event) -> None:
        """A piece of text as it is shown; with the last one of a message, the message."""
        key, piece = text_of(event, "message_id"), text_of(event, "delta")
        self._displayed.add(key, piece)
        if event.get("final") is not True:
            await self.record(session, TextStreamed(piece))
            return
        text, count = self._displayed.take(key)
        is_whole = event.get("index") == count - 1 or self._is_owner
        if text.strip() and is_whole and not self._is_duplicate(session, text, "hook"):
            await self.record(session, MessageCompleted(text, key=f"shown {key}"))

    def _is_duplicate(self, session: ClientSession, text: str, source: MessageSource) -> bool:
        return self._messages.is_duplicate(f"{session.path} {fingerprint(text)}", source)

    async def _prompt(self, session: ClientSession, main: str, event: Event) -> HookAnswer:
        held = await run_in_thread(self._inbox.controls, session, main)
        if held.paused_by:
            return block_prompt(self._texts("hook.paused", by=held.paused_by))
        await self.calls.withdraw_all(session)
        for told in self._translator.translate_hook(event):
            row = await self.record(session, told)
            if isinstance(told, PromptSubmitted) and row is not None:
                self._inbox.prompted[main] = row.seq
        return tell(PROMPT, await run_in_thread(self._inbox.news, main))

    async def _before(self, session: ClientSession, main: str, event: Event) -> HookAnswer:
        tool = text_of(event, "tool_name")
        held = await run_in_thread(self._inbox.controls, session, main)
        if held.cancelled is not None:
            return await self._stopped(session, held.cancelled)
        reason, decision = await self._check(session, event)
        call = OpenCall(text_of(event, "tool_use_id"), tool, dump(event.get("tool_input")))
        await self._record_all(session, event, BEFORE)
        if reason:
            if call.id:
                await self.record(session, CallFinished(call.id, reason, is_error=True))
            return deny(BEFORE, reason)
        self.calls.add(call)
        if held.paused_by:
            stopped = await self._wait_for_resumption(session, main, held)
            if stopped is not None:
                return stopped
        if not tool.startswith(_OURS):
            over = await hold_for_budgets(self.workspace, self.agent, session.budgeted, self._hold_seconds)
            if over:
                return deny(BEFORE, over)
        if decision.verdict == "ask":
            return await self._ask(session, event, call, rule=decision.label)
        if decision.verdict == "allow" and decision.number:
            return allow(BEFORE)
        return NOTHING

    async def _check(self, session: ClientSession, event: Event) -> tuple[str, PolicyDecision]:
        """Why the call of ``event`` is not made, empty where it may be; what the policy says of it."""
        reason = await run_in_thread(
            denial_reason, self.workspace.root, self.agent, event, self.workspace.config.language
        )
        decision = PolicyDecision()
        if not text_of(event, "tool_name").startswith(_OURS):
            decision = await run_in_thread(self._decide, session, event)
        if decision.verdict == "deny" and not reason:
            reason = self._texts("hook.policy", rule=decision.label)
        return reason, decision

    def _decide(self, session: ClientSession, event: Event) -> PolicyDecision:
        """What the workspace's policy says of the call of ``event``. Paths are those of the folder that the
        session began in, wherever the agent has gone since."""
        given = event.get("tool_input")
        arguments = given if isinstance(given, Mapping) else {}
        cwd = text_of(event, "cwd")
        folder = session.folder or cwd
        trees = find_worktrees(folder) if folder else ()
        subject = policy_subject(arguments, folder=folder, cwd=cwd, worktrees=trees, resolve=os.path.realpath)
        tool, policy = text_of(event, "tool_name"), self.workspace.policy
        decision = policy.decide(self.agent, tool, subject)
        policy.record_test(self.agent, tool, subject, decision)
        return decision

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
                while (now := await run_in_thread(self._inbox.controls, session, main)).paused_by:
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
        call = self.calls.find(tool, arguments)
        if call is None:
            version = (await run_in_thread(lambda: session.last)).version
            call = OpenCall(f"ask-{fingerprint(tool + arguments)[:12]}-{version}", tool, arguments)
        return await self._ask(session, event, call)

    async def _ask(
        self, session: ClientSession, event: Event, call: OpenCall, *, rule: str = ""
    ) -> HookAnswer:
        """Ask people whether ``call``, which ``event`` is about, may be made, as the ``rule`` of the policy
        wants, if one does, and wait for their answer."""
        expires = self.workspace.requests.now() + int(self._hold_seconds * 1e9)
        pending = PendingCall(call.id, call.tool, call.arguments)
        request = await run_in_thread(build_question, self.client, pending, session.folder, rule, expires)
        path = session.request_path(call.id)
        self.calls.add(call._replace(request=path))
        try:
            await run_to_completion(None, session.ask, call.id, request)
            ended = await wait_for_outcome(self.workspace.requests, self.workspace.dispatcher, path, expires)
        except asyncio.CancelledError:
            await run_to_completion(None, self._take_back, session, path)
            raise
        must_answer = self._is_strict or bool(rule)
        return await self._answered(session, event, call._replace(request=path), ended, must_answer)

    def _take_back(self, session: ClientSession, path: str) -> None:
        if self.workspace.requests.ended(path) is None:
            self.workspace.requests.withdraw(path)
        session.record_withdrawal(path)

    async def _answered(
        self, session: ClientSession, event: Event, call: OpenCall, ended: RequestOutcome, must_answer: bool
    ) -> HookAnswer:
        """What to say of ``call`` at its hook, now that what was asked about it has ended."""
        name, path, answer = text_of(event, "hook_event_name"), call.request, ended.answer
        if answer is None or not (answer.expired or answer.decisions):
            await run_in_thread(session.record_withdrawal, path)
            return NOTHING
        await run_in_thread(session.record_answer, path, answer, ended.row.actor)
        if answer.expired:
            said = self._texts("hook.unanswered")
            return deny(name, said) if must_answer else warn(said)
        decision = answer.decisions[0]
        if not decision.approved:
            return deny(name, decision.reason or self._texts("hook.declined", by=ended.row.actor))
        if decision.arguments is None:
            return allow(name)
        if self.client == "codex":
            # It takes no other arguments from a hook: called again, the call is checked as every one is.
            return deny(name, self._texts("hook.changed", arguments=decision.arguments))
        changed = {**event, "tool_input": parse_arguments(decision.arguments)}
        if reason := await self._refusal_of_changed(session, changed):
            await self.record(session, CallFinished(call.id, reason, is_error=True))
            return deny(name, reason)
        return allow(name, parse_arguments(decision.arguments))

    async def _refusal_of_changed(self, session: ClientSession, event: Event) -> str:
        """Why the call of ``event``, whose arguments a person has changed, is not made; empty where it may
        be. What the policy wants a person to be asked about, this person has just seen."""
        reason, _ = await self._check(session, event)
        if reason or text_of(event, "tool_name").startswith(_OURS):
            return reason
        return await hold_for_budgets(self.workspace, self.agent, session.budgeted, self._hold_seconds)

    async def _idle(self, session: ClientSession, main: str, event: Event, may_wait: bool) -> HookAnswer:
        """Give an agent that has nothing to do what comes for it, as soon as it comes."""
        if self.client == "codex" or not may_wait:
            news = await run_in_thread(self._inbox.news, main)
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
                held = await run_in_thread(self._inbox.controls, session, main)
                if not held.paused_by and (news := await run_in_thread(self._inbox.news, main)):
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

    def _note(self, session: ClientSession, tool: str, text: str) -> None:
        self.workspace.session_zone.note(self.agent, tool, session.path, text, {})
