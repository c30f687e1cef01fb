"""Turn the hook events of an attached client into rows, questions to people, and answers.

One `Attachment` serves a client, in the server that it has started (the attendant) or in the process of a
single hook. Who the agent is says whoever set the client up, never an event.

A call is answered by one function (`Attachment._answer_call`), whatever it has to wait for: a pause, a budget
and a question share the deadline of the hook, and each is checked again after a wait for another.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Final, NamedTuple, TypeAlias, TypeVar
from uuid import uuid4

from watchroom.clients import claude, codex
from watchroom.clients.budget_hold import hold_for_budgets
from watchroom.clients.configuration import HOLDING, Client, hook_seconds
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
from watchroom.clients.hooks import denial_reason
from watchroom.clients.json_fields import dump, text_of, time_of
from watchroom.clients.message_deduplication import MessageDeduplicator, MessageSource
from watchroom.clients.message_pieces import MessagePieces
from watchroom.clients.message_usage import MessageUsage
from watchroom.clients.open_calls import REJECTED, OpenCall, OpenCalls
from watchroom.clients.processes import ClientProcess
from watchroom.clients.questions import build_question
from watchroom.clients.session import ClientSession
from watchroom.clients.session_ids import fingerprint, session_id_of, subagent_id_of
from watchroom.clients.session_inbox import SessionInbox
from watchroom.errors import PermissionDenied, PolicyDenied, WatchroomError
from watchroom.git.worktrees import find_worktrees
from watchroom.model import ENDED, Json, Row
from watchroom.rules.budgets import Budgets
from watchroom.rules.policy import PolicyDecision
from watchroom.rules.policy_subject import policy_subject
from watchroom.rules.requests import PendingCall, parse_arguments
from watchroom.runtime.errors import BudgetReached
from watchroom.runtime.request_waiting import wait_for_outcome
from watchroom.runtime.threads import call_soon_threadsafe, run_in_thread, run_to_completion
from watchroom.texts import Catalogue, catalogue
from watchroom.workspace import Workspace
from watchroom.zones.messages import Handover
from watchroom.zones.requests import RequestOutcome

T = TypeVar("T")

_MARGIN: Final = 30.0
"""Seconds by which a hook answers before the client's own timeout, because clients handle a late hook
differently. At most a quarter of that timeout."""
_SLACK: Final = 5.0
"""Seconds after the deadline of a hook at which it is answered even if a check hangs."""
_MAX_SESSIONS: Final = 100
"""Sessions that are remembered. A session that is forgotten goes on with its rows."""
_OURS: Final = "mcp__watchroom__"

Event: TypeAlias = Mapping[str, Json]


class Answered(NamedTuple):
    """How a question about a call ended: what to answer the hook, and the event of the call that a person
    approved, with the person's arguments; None where nobody approved."""

    answer: HookAnswer
    approved: Event | None = None


class _Stopped(Exception):  # a signal between two functions here, not an error
    """A person stopped the agent while its call waited. ``row`` says who."""

    def __init__(self, row: Row) -> None:
        self.row = row


class Attachment:
    """The ``client`` of ``agent`` in ``workspace``, by its hooks. May be used on one event loop.

    - ``process``: the client's, None if it is not known
    - ``is_owner``: this process goes on with the client's sessions
    - ``is_strict``: a call that nobody could look at in time is not made; else the client decides
    - ``hold_seconds``: how long a hook may take, None: as long as the client waits for it, less a margin

    Raises `UnknownAgent`.
    """

    def __init__(
        self,
        workspace: Workspace,
        agent: str,
        client: Client,
        *,
        process: ClientProcess | None = None,
        is_owner: bool = False,
        is_strict: bool = False,
        hold_seconds: float | None = None,
    ) -> None:
        self.workspace = workspace
        self.agent = workspace.registry.agent(agent).id
        self.client = client
        self.process = process
        self.sessions: dict[str, ClientSession] = {}
        """By their path, without agent: the main ones, and those of subagents."""
        # Read once: a call is denied in words even if the journal cannot be read any more.
        self._language = workspace.config.language
        self._is_owner = is_owner
        self._is_strict = is_strict
        self._hold_seconds = hold_seconds
        self._translator = claude if client == "claude" else codex
        self.calls = OpenCalls(workspace, self.agent)
        self._inbox = SessionInbox(workspace, self.agent)
        self._displayed = MessagePieces()
        self._messages = MessageDeduplicator()
        self._usage = MessageUsage()
        self._turns: dict[str, asyncio.Event] = {}

    @property
    def _texts(self) -> Catalogue:
        return catalogue(self._language)

    def deadline(self, event: Event, age: float = 0.0) -> float:
        """Return the event loop's time by which the hook of ``event``, which began ``age`` seconds ago, has
        to answer."""
        seconds = self._hold_seconds
        if seconds is None:
            timeout = hook_seconds(self.client, text_of(event, "hook_event_name"))
            seconds = timeout - min(_MARGIN, timeout / 4)
        return asyncio.get_running_loop().time() + seconds - age

    async def answer(
        self, event: Event, *, handover: Handover | None = None, may_wait: bool = False, age: float = 0.0
    ) -> HookAnswer:
        """Answer the hook of ``event``, which began ``age`` seconds ago, as `handle` does: by the same
        deadline if a check hangs."""
        deadline = self.deadline(event, age)
        try:
            async with asyncio.timeout_at(max(deadline, asyncio.get_running_loop().time()) + _SLACK):
                return await self.handle(event, handover=handover, may_wait=may_wait, deadline=deadline)
        except TimeoutError:
            if handover is not None:
                handover.release()
            name, said = text_of(event, "hook_event_name"), self._texts("hook.late")
            return deny(name, said) if self._is_strict and name in HOLDING else warn(said)

    async def handle(
        self,
        event: Event,
        *,
        handover: Handover | None = None,
        may_wait: bool = False,
        deadline: float | None = None,
    ) -> HookAnswer:
        """Make rows of what ``event`` reports, ask people where that is needed, and return the answer.

        - ``handover``: takes the messages that are in the answer. The caller gives the answer to the client
          and then records it. Default: the messages count as handed over when this returns
        - ``may_wait``: the hook of an idle client may wait until something comes
        - ``deadline``: the event loop's time by which the answer is there, whatever the hook waits for in
          turn; default: `deadline` of an event that has just begun

        A wait that is cancelled withdraws its question. Raises `WatchroomError`, but never for a call that
        the client is about to make: that is denied, or left to the client, by what can still be checked.
        """
        deadline = self.deadline(event) if deadline is None else deadline
        if handover is not None:
            return await self._handle(event, handover, may_wait=may_wait, deadline=deadline)
        with self.workspace.messages.hand_over() as own:
            answer = await self._handle(event, own, may_wait=may_wait, deadline=deadline)
            await run_in_thread(own.record)
            return answer

    async def _handle(
        self, event: Event, handover: Handover, *, may_wait: bool, deadline: float
    ) -> HookAnswer:
        name = text_of(event, "hook_event_name")
        if name in HOLDING:
            try:
                return await self._check_call(event, name, deadline)
            except WatchroomError as error:
                return await self._answer_after_error(event, name, error)
        session = await run_in_thread(self.find_session, event)
        if session is None:
            return tell(name, await self._take_news(self.agent, handover)) if name == AFTER else NOTHING
        main = self._main_path(event)
        if name in (PROMPT, "SessionEnd"):
            self._turn(main).set()
        if name == PROMPT:
            return await self._prompt(session, main, event, handover)
        await self._record_all(session, event, name)
        if name == START and await run_in_thread(lambda: session.status) in ENDED:
            # It was resumed, and waits for a prompt.
            await self.record(session, TurnEnded())
        if name == AFTER:
            return tell(AFTER, await self._take_news(main, handover))
        if name == STOP:
            with suppress(TimeoutError):
                async with asyncio.timeout_at(deadline):
                    return await self._idle(session, main, event, handover, may_wait=may_wait)
            handover.release()
        return NOTHING

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
            if len(self.sessions) >= _MAX_SESSIONS:
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
                event = await self.calls.settle(session, event)
            added = self._usage.find_increase(session.path, event) if isinstance(event, UsageTold) else event
            if added is not None:
                await self.record(session, added)
        return bool(told)

    async def _record_all(self, session: ClientSession, event: Event, name: str) -> None:
        """Make rows of what ``event`` tells, and settle what was asked about calls that have ended."""
        if name == "MessageDisplay":
            await self._display(session, event)
            return
        for told in self._translator.translate_hook(event):
            if isinstance(told, CallFinished):
                told = await self.calls.settle(session, told)
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

    async def _take_news(self, main: str, handover: Handover) -> str:
        """Return what has come for the session at ``main``. What ``handover`` takes is in it even if the
        caller is cancelled meanwhile."""
        return await run_to_completion(None, self._inbox.take_news, main, handover)

    async def _prompt(
        self, session: ClientSession, main: str, event: Event, handover: Handover
    ) -> HookAnswer:
        held = await run_in_thread(self._inbox.controls, session, main)
        if held.paused_by:
            return block_prompt(self._texts("hook.paused", by=held.paused_by))
        await self.calls.withdraw_all(session)
        for told in self._translator.translate_hook(event):
            row = await self.record(session, told)
            if isinstance(told, PromptSubmitted) and row is not None:
                self._inbox.prompted[main] = row.seq
        return tell(PROMPT, await self._take_news(main, handover))

    async def _check_call(self, event: Event, name: str, deadline: float) -> HookAnswer:
        """Answer the hook ``name``, which asks about the call of ``event``."""
        session = await run_in_thread(self.find_session, event)
        main = self._main_path(event)
        tool, arguments = text_of(event, "tool_name"), dump(event.get("tool_input"))
        if session is not None:
            held = await run_in_thread(self._inbox.controls, session, main)
            if held.cancelled is not None:
                return await self._stopped(session, name, held.cancelled)
        reason, decision = await self._check(session, event)
        if session is None:
            return await self._answer_without_session(name, reason, decision, tool, deadline)
        if name == BEFORE:
            own = text_of(event, "tool_use_id")
            call = OpenCall(own or f"call-{uuid4().hex[:12]}", tool, arguments)
            await self._record_all(session, event, BEFORE)
        else:
            call = await self._asked_call(session, tool, arguments)
        if reason:
            answer = _deny_by(name, reason, decision)
        else:
            if name == BEFORE:
                self.calls.add(session, call)
            try:
                answer = await self._answer_call(session, main, event, call, decision, deadline)
            except _Stopped as stopped:
                self.calls.forget(session, call)
                return await self._stopped(session, name, stopped.row)
        if answer.refusal:
            if name == BEFORE:
                self.calls.forget(session, call)
            await self._record_refusal(session, event, call, answer)
        return answer

    async def _record_refusal(
        self, session: ClientSession, event: Event, call: OpenCall, answer: HookAnswer
    ) -> None:
        """Record that ``call`` is not made. The client reports no end of it, or reports it later."""
        told = CallFinished(call.id, answer.reason, True, answer.refusal, call.tool, call.arguments)
        await self.record(session, told._replace(cwd=text_of(event, "cwd")))

    async def _answer_without_session(
        self, name: str, reason: str, decision: PolicyDecision, tool: str, deadline: float
    ) -> HookAnswer:
        """Answer a call whose client names no session: nobody can be asked about it."""
        if not reason and decision.verdict == "ask":
            reason = self._texts("hook.policy", rule=decision.label)
        if not reason and self._has_budgets(tool):
            try:
                await hold_for_budgets(self.workspace, self.agent, None, deadline)
            except BudgetReached as error:
                reason = error.message(self._language)
        return _deny_by(name, reason, decision) if reason else NOTHING

    async def _asked_call(self, session: ClientSession, tool: str, arguments: str) -> OpenCall:
        """Return the call that the client asks about. The event does not say which: if not exactly one fits,
        the question is one of its own."""
        fitting = self.calls.find(session, tool, arguments)
        if len(fitting) == 1:
            return fitting[0]
        version = (await run_in_thread(lambda: session.last)).version
        own = f"ask-{fingerprint(tool + arguments)[:12]}-{version}"
        return OpenCall(own, tool, arguments, candidates=frozenset(each.id for each in fitting))

    async def _answer_call(
        self,
        session: ClientSession,
        main: str,
        event: Event,
        call: OpenCall,
        decision: PolicyDecision,
        deadline: float,
    ) -> HookAnswer:
        """Answer the hook of ``event``, which asks about ``call``.

        The call proceeds only if the session is not paused, no budget holds it, and ``decision`` allows it or
        a person approves. All waits end by ``deadline``. After each wait everything is checked again, since
        people may have paused or stopped the agent meanwhile. Raises `_Stopped`, `WatchroomError`.
        """
        name = text_of(event, "hook_event_name")
        answer: HookAnswer | None = None
        warning, has_paid, has_waited = "", False, False
        while True:
            paused_by = await self._find_pause(session, main)
            if paused_by and not warning:
                has_waited = True
                warning = await self._wait_for_resumption(session, main, paused_by, deadline)
                if warning and (self._is_strict or answer is not None):
                    # Of what a person has approved the client decides nothing: it may know other arguments.
                    return deny(name, warning, "paused")
            if not has_paid and self._has_budgets(call.tool):
                waiting = hold_for_budgets(self.workspace, self.agent, session, deadline)
                try:
                    has_paid = await self._unless_stopped(session, main, waiting)
                except BudgetReached as error:
                    return deny(name, error.message(self._language), error.code)
                has_waited = has_waited or has_paid
            if has_waited:
                # The rules may be others by now, and the agent may be paused again.
                has_waited = False
                reason, decision = await self._check(session, event)
                if reason:
                    return _deny_by(name, reason, decision)
                continue
            if answer is not None:
                return answer
            if name == BEFORE and decision.verdict != "ask":
                return warn(warning) if warning else _allow_by(decision)
            rule = decision.label if decision.verdict == "ask" else ""
            asking = self._ask(session, event, call, rule, deadline)
            answered = await self._unless_stopped(session, main, asking)
            if answered.approved is None:
                return answered.answer
            # A rule that asks is satisfied: this person has just seen the call.
            answer, event, has_waited = answered.answer, answered.approved, True

    async def _answer_after_error(self, event: Event, name: str, error: WatchroomError) -> HookAnswer:
        """Answer the hook ``name``, some check of which raised ``error``, by what can still be checked: the
        rules on paths and the policy. A call that a person or a budget has to allow is denied."""
        said = self._texts("hook.no_attendant", reason=str(error))
        if self._is_strict:
            return deny(name, said)
        try:
            reason, decision = await self._check(None, event)
            if not reason and (decision.verdict == "ask" or self._has_budgets(text_of(event, "tool_name"))):
                reason = said
        except WatchroomError:
            return deny(name, said)
        return deny(name, reason) if reason else warn(said)

    def _has_budgets(self, tool: str) -> bool:
        """Return whether a budget may hold a call of ``tool``. Our own tools are held by our server."""
        return not tool.startswith(_OURS) and self.workspace.config.budgets != Budgets()

    async def _find_pause(self, session: ClientSession, main: str) -> str:
        """Return who has paused the session, empty for nobody. Raises `_Stopped`."""
        held = await run_in_thread(self._inbox.controls, session, main)
        if held.cancelled is not None:
            raise _Stopped(held.cancelled)
        return held.paused_by

    async def _unless_stopped(self, session: ClientSession, main: str, work: Awaitable[T]) -> T:
        """Return what ``work`` gives. Raises `_Stopped`, and cancels it, if a person stops the agent."""
        working = asyncio.ensure_future(work)
        changed, end = self._subscribe(main)
        # Something may have been said before the subscription.
        changed.set()
        try:
            while True:
                news = asyncio.ensure_future(changed.wait())
                try:
                    await asyncio.wait({working, news}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    news.cancel()
                if working.done():
                    return working.result()
                changed.clear()
                await self._find_pause(session, main)
        finally:
            end()
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)

    def _subscribe(self, main: str) -> tuple[asyncio.Event, Callable[[], None]]:
        """Return an event that what people say to the session at ``main`` sets, and how to unsubscribe."""
        loop, changed = asyncio.get_running_loop(), asyncio.Event()
        end = self.workspace.dispatcher.subscribe(
            (self.agent, main), lambda _: call_soon_threadsafe(loop, changed.set)
        )
        return changed, end

    async def _check(self, session: ClientSession | None, event: Event) -> tuple[str, PolicyDecision]:
        """Return why the call of ``event`` is not made, empty if it may be, and the policy's decision."""
        reason = await run_in_thread(denial_reason, self.workspace.root, self.agent, event, self._language)
        decision = PolicyDecision()
        if not text_of(event, "tool_name").startswith(_OURS):
            decision = await run_in_thread(self._decide, session, event)
        if decision.verdict == "deny" and not reason:
            reason = self._texts("hook.policy", rule=decision.label)
        return reason, decision

    def _decide(self, session: ClientSession | None, event: Event) -> PolicyDecision:
        """Return what the workspace's policy says of the call of ``event``. Paths are those of the folder
        that the session began in, wherever the agent has gone since."""
        given = event.get("tool_input")
        arguments = given if isinstance(given, Mapping) else {}
        cwd = text_of(event, "cwd")
        folder = (session.folder if session is not None else "") or cwd
        trees = find_worktrees(folder) if folder else ()
        subject = policy_subject(arguments, folder=folder, cwd=cwd, worktrees=trees, resolve=os.path.realpath)
        tool, policy = text_of(event, "tool_name"), self.workspace.policy
        decision = policy.decide(self.agent, tool, subject)
        if session is not None and text_of(event, "hook_event_name") == BEFORE:
            policy.record_test(self.agent, tool, subject, decision)
        return decision

    async def _stopped(self, session: ClientSession, name: str, cancelled: Row) -> HookAnswer:
        """Answer the hook ``name`` of a session that a person has cancelled."""
        if await run_in_thread(lambda: session.status) not in ENDED:
            await self.record(session, SessionEnded("cancelled", cancelled.actor))
        return stop(name, self._texts("hook.cancelled", by=cancelled.actor))

    async def _wait_for_resumption(
        self, session: ClientSession, main: str, paused_by: str, deadline: float
    ) -> str:
        """Wait until the session, which ``paused_by`` has paused, is resumed or stopped. Returns a warning if
        that was not before ``deadline``, empty if it was."""
        await self.record(session, ClientPaused(paused_by))
        warning = ""
        changed, end = self._subscribe(main)
        try:
            async with asyncio.timeout_at(deadline):
                while (now := await run_in_thread(self._inbox.controls, session, main)).paused_by:
                    if now.cancelled is not None:
                        break
                    await changed.wait()
                    changed.clear()
        except TimeoutError:
            warning = self._texts("hook.still_paused", by=paused_by)
            await run_in_thread(self._note, session, "hook_timeout", warning)
        finally:
            end()
        if not (warning and self._is_strict):
            await self.record(session, ClientPaused(is_paused=False))
        return warning

    async def _ask(
        self, session: ClientSession, event: Event, call: OpenCall, rule: str, deadline: float
    ) -> Answered:
        """Ask people whether ``call``, which ``event`` is about, may be made, and wait for their answer.
        ``rule`` is that of the policy which asks, empty if the client does."""
        loop, requests = asyncio.get_running_loop(), self.workspace.requests
        expires = requests.now() + int(max(0.0, deadline - loop.time()) * 1e9)
        pending = PendingCall(call.id, call.tool, call.arguments)
        request = await run_in_thread(build_question, self.client, pending, session.folder, rule, expires)
        own = await run_in_thread(session.find_request_id, call.id, request)
        is_before = text_of(event, "hook_event_name") == BEFORE
        call = call._replace(request=session.request_path(own), is_before=is_before)
        self.calls.add(session, call)
        try:
            await run_to_completion(None, session.ask, own, request)
            ended = await wait_for_outcome(
                requests, self.workspace.dispatcher, call.request, expires, deadline=deadline
            )
        except asyncio.CancelledError:
            await run_to_completion(None, self._take_back, session, call.request)
            raise
        return await self._answered(session, event, call, ended, must_answer=self._is_strict or bool(rule))

    def _is_about(self, path: str, call: OpenCall) -> bool:
        """Return whether the request at ``path`` asked about this very ``call``."""
        asked = self.workspace.journal.version("request", path, 1)
        calls = self.workspace.requests.read(asked).calls if asked is not None else ()
        return [(each.name, each.arguments) for each in calls] == [(call.tool, call.arguments)]

    def _take_back(self, session: ClientSession, path: str) -> None:
        if self.workspace.requests.ended(path) is None:
            self.workspace.requests.withdraw(path)
        session.record_withdrawal(path)

    async def _answered(
        self,
        session: ClientSession,
        event: Event,
        call: OpenCall,
        ended: RequestOutcome,
        *,
        must_answer: bool,
    ) -> Answered:
        """Return what to answer the hook of ``event``, now that the question about ``call`` has ended.
        ``must_answer``: without an answer the call is not made."""
        name, path, answer = text_of(event, "hook_event_name"), call.request, ended.answer
        if answer is None or not (answer.expired or answer.decisions):
            await run_in_thread(session.record_withdrawal, path)
            said = self._texts("hook.withdrawn")
            return Answered(deny(name, said, "withdrawn") if must_answer else NOTHING)
        await run_in_thread(session.record_answer, path, answer, ended.row.actor)
        if answer.expired:
            said = self._texts("hook.unanswered")
            return Answered(deny(name, said, "expired") if must_answer else warn(said))
        if self.calls.is_answer_at_client(ended):
            # The client has decided. No approval is sent to it: nobody approved here.
            return Answered(NOTHING)
        if not await run_in_thread(self._is_about, path, call):
            return Answered(deny(name, self._texts("hook.withdrawn"), "withdrawn"))
        decision = answer.decisions[0]
        if not decision.approved:
            said = decision.reason or self._texts("hook.declined", by=ended.row.actor)
            return Answered(deny(name, said, REJECTED))
        if decision.arguments is None:
            return Answered(allow(name), event)
        if self.client == "codex":
            # It takes no other arguments from a hook: called again, the call is checked as every one is.
            said = self._texts("hook.changed", arguments=decision.arguments)
            return Answered(deny(name, said, "edited"))
        changed = parse_arguments(decision.arguments)
        return Answered(allow(name, changed), {**event, "tool_input": changed})

    async def _idle(
        self, session: ClientSession, main: str, event: Event, handover: Handover, *, may_wait: bool
    ) -> HookAnswer:
        """Give an agent that has nothing to do what comes for it, as soon as it comes."""
        if self.client == "codex" or not may_wait:
            if event.get("stop_hook_active") is True:
                return NOTHING
            news = await self._take_news(main, handover)
            if not news:
                return NOTHING
            return block_prompt(news) if self.client == "codex" else wake(news)
        turn = self._turn(main)
        turn.clear()
        changed, end = self._subscribe(main)
        try:
            while not turn.is_set():
                held = await run_in_thread(self._inbox.controls, session, main)
                if not held.paused_by and (news := await self._take_news(main, handover)):
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


def _deny_by(name: str, reason: str, decision: PolicyDecision) -> HookAnswer:
    """The answer to a call that a rule of the policy, or of the workspace's folders, denies."""
    is_by_policy = decision.verdict == "deny"
    return deny(name, reason, PolicyDenied.code if is_by_policy else PermissionDenied.code)


def _allow_by(decision: PolicyDecision) -> HookAnswer:
    """The answer to a call that nobody has to be asked about. The client asks on its own, unless a rule of
    the policy allows the call."""
    return allow(BEFORE) if decision.verdict == "allow" and decision.number else NOTHING
