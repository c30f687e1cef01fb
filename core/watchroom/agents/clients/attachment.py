"""Turns the hook events of an attached client into rows, questions to people, and answers.

One `Attachment` serves a client, in the service (see the attendant) or in the process of a single hook. The
agent comes from the client's configuration, never from an event.

`Attachment._answer_call` answers a call, after all waits. A pause, a budget and a question share the deadline
of the hook, which only `hook_deadline` computes. After each wait, all three are checked again.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar
from uuid import uuid4

from watchroom.agents.clients.adapter import Event
from watchroom.agents.clients.calls import (
    PATH_ARGUMENTS,
    REJECTED,
    OpenCall,
    OpenCalls,
    build_question,
    denial_reason,
)
from watchroom.agents.clients.events import (
    CallFinished,
    CallMade,
    CallReturned,
    CallStarted,
    ClientEvent,
    ClientInfo,
    ClientPaused,
    MessageCompleted,
    PromptSubmitted,
    ResetReported,
    SessionEnded,
    TextStreamed,
    TurnBegan,
    TurnEnded,
    TurnFailed,
    TurnLimited,
    UsageAdded,
)
from watchroom.agents.clients.hook_answers import (
    AFTER,
    BATCH,
    BEFORE,
    END,
    FAILURE,
    HOLDING,
    NOTHING,
    PROMPT,
    START,
    STOP,
    STOP_FAILURE,
    SUBAGENT_END,
    HookAnswer,
    allow,
    block,
    changed_arguments,
    deny,
    is_allowed,
    replace_arguments,
    stop,
    tell,
    warn,
)
from watchroom.agents.clients.json_fields import dump, text_of, time_of
from watchroom.agents.clients.processes import ClientProcess
from watchroom.agents.clients.registry import hooks_of
from watchroom.agents.clients.session import (
    ClientSession,
    fingerprint,
    hold_for_budgets,
    session_id_of,
    subagent_id_of,
)
from watchroom.agents.clients.session_inbox import SessionInbox
from watchroom.agents.clients.transcripts import (
    MessageDeduplicator,
    MessagePieces,
    MessageSource,
    MessageUsage,
)
from watchroom.errors import (
    AgentPaused,
    BudgetReached,
    JournalError,
    PermissionDenied,
    PolicyDenied,
    TooManyRequests,
    WatchroomError,
)
from watchroom.features.budgets.rules import Budgets
from watchroom.features.checks.rows import DoneClaim, is_prompt_of_check
from watchroom.features.policy.rules import PolicyDecision, policy_subject
from watchroom.features.requests.rows import CLOCK_SECONDS, PendingCall, parse_arguments
from watchroom.features.requests.service import RequestOutcome
from watchroom.features.sessions.limits import MAX_WORDS, RateLimit, check_reset, find_limit
from watchroom.features.sessions.messages import Handover
from watchroom.features.sessions.rows import OWN_TOOLS, is_leave, parking_of
from watchroom.features.sessions.runtime.threads import call_soon_threadsafe, run_in_thread, run_to_completion
from watchroom.features.sessions.runtime.waiting import (
    wait_for_budgets,
    wait_for_outcome,
    wait_until_resumed,
)
from watchroom.features.trees.service import Holder
from watchroom.features.trees.worktrees import find_worktrees
from watchroom.kernel.call_context import CallContext
from watchroom.kernel.rules.details import session_status
from watchroom.model import ENDED, Json, Row
from watchroom.texts import Catalogue, catalogue
from watchroom.validation import extract_first_line
from watchroom.workspace import Workspace

if TYPE_CHECKING:
    from watchroom.features.trees.calls import TreeCalls

T = TypeVar("T")

_MARGIN: Final = 30.0
"""Seconds by which a hook answers before the client's own timeout, because clients handle a late hook
differently. Limited to a quarter of that timeout."""
SLACK_SECONDS: Final = 5.0
"""Seconds after the deadline of a hook at which it is answered, even if a check hangs."""
_MAX_CALLS: Final = 1000
"""Maximum number of calls that are remembered, of each kind."""
_BACKGROUND_ENDED: Final = "<task-notification>"
"""The beginning of the prompt with which Claude Code reports the end of a background command."""
_MAX_BATCH: Final = 100
"""Maximum number of calls in a batch whose refusals are recorded."""
_TOOL_ERROR: Final = "<tool_use_error>"
"""The beginning of the result of a call that Claude Code itself refuses."""
_MAX_SESSIONS: Final = 100
"""Maximum number of sessions in memory. Other sessions are continued from their rows."""


class Answered(NamedTuple):
    """The end of a question about a call.

    - ``answer``: the answer of the hook
    - ``approved``: the event of the approved call, with the person's arguments; None if nobody approved it
    """

    answer: HookAnswer
    approved: Event | None = None


def hook_deadline(client: str, event: Event, age: float = 0.0, seconds: float | None = None) -> float:
    """Return the deadline of the hook of ``event``, as a time of the event loop.

    All waits of the hook share this deadline. Compute it once, when the event arrives.

    - ``client``: the name of the client
    - ``age``: seconds since the hook started
    - ``seconds``: the timeout of the hook, default the client's own timeout minus a margin
    """
    if seconds is None:
        timeout = hooks_of(client).timeout(text_of(event, "hook_event_name"))
        seconds = timeout - min(_MARGIN, timeout / 4)
    return asyncio.get_running_loop().time() + seconds - age


class _Wake(NamedTuple):
    """Whether a parked session continues. The default is for a session that is not parked.

    - ``must_wait``: whether nothing can wake it now.
    - ``by``, ``row``: the person who permitted to resume it, and the row of that; empty and 0 for nobody.
    """

    must_wait: bool = False
    by: str = ""
    row: int = 0


class _Stopped(Exception):  # a signal between two functions here, not an error
    """A person stopped the agent while its call waited. ``row``: the person's instruction."""

    def __init__(self, row: Row) -> None:
        self.row = row


class Attachment:
    """Answers the hooks of ``client``, which works as ``agent`` in ``workspace``. For use on one event loop.

    - ``client``: the name of a client with hooks
    - ``process``: the process of the client, None if unknown
    - ``is_owner``: whether this process continues the client's sessions
    - ``is_strict``: whether a call that could not be checked in time is refused; else the client decides
    - ``hold_seconds``: the timeout of a hook, default the client's own timeout minus a margin
    - ``on_claim``: called when the agent ends its answer and so claims to be done. Must not wait

    Raises `UnknownAgent`, ValueError.
    """

    def __init__(
        self,
        workspace: Workspace,
        agent: str,
        client: str,
        *,
        process: ClientProcess | None = None,
        is_owner: bool = False,
        is_strict: bool = False,
        hold_seconds: float | None = None,
        on_claim: Callable[[DoneClaim], object] = lambda claim: None,
    ) -> None:
        self.workspace = workspace
        self._on_claim = on_claim
        self._prompted: dict[str, int] = {}
        """The row of the newest prompt of a person, by session path."""
        self._woken: dict[str, str] = {}
        """The text that began the newest turn without a person, by session path."""
        self.agent = workspace.registry.agent(agent).id
        self.client = client
        self.process = process
        self.sessions: dict[str, ClientSession] = {}
        """The main sessions and the sessions of subagents, by id."""
        # Read once, so that a denial has the right language even if the journal cannot be read.
        self._language = workspace.config.language
        self._is_owner = is_owner
        self._is_strict = is_strict
        self._hold_seconds = hold_seconds
        self._hooks = hooks_of(client)
        self.calls = OpenCalls(workspace, self.agent)
        self._tree_calls = workspace.tree_calls if workspace.trees.common else None
        self._unkept: dict[str, None] = {}
        """The calls that read or write a file ignored by git."""
        self._reported: dict[str, None] = {}
        """The calls whose beginning a hook has reported."""
        self._made: dict[str, None] = {}
        """The calls that hooks must report, according to transcripts."""
        self._inbox = SessionInbox(workspace, self.agent)
        self._displayed = MessagePieces()
        self._messages = MessageDeduplicator()
        self._usage = MessageUsage()
        self._resets: dict[str, int] = {}
        """When the used-up limits of the account reset (`ResetReported`), by session path."""
        self._turns: dict[str, asyncio.Event] = {}
        self._wakeable: set[str] = set()
        """The paths of the sessions whose client is idle, with a hook that can start a turn."""

    @property
    def _texts(self) -> Catalogue:
        return catalogue(self._language)

    def deadline(self, event: Event, age: float = 0.0) -> float:
        """Return the deadline of the hook of ``event`` (see `hook_deadline`)."""
        return hook_deadline(self.client, event, age, self._hold_seconds)

    async def answer(
        self, event: Event, deadline: float, *, handover: Handover | None = None, may_wait: bool = False
    ) -> HookAnswer:
        """Answer the hook of ``event`` as `handle` does, but keep to ``deadline`` even if a check hangs."""
        try:
            async with asyncio.timeout_at(max(deadline, asyncio.get_running_loop().time()) + SLACK_SECONDS):
                return await self.handle(event, handover=handover, may_wait=may_wait, deadline=deadline)
        except TimeoutError:
            if handover is not None:
                handover.release()
            # It may have waited for an answer that must not be left out.
            name, said = text_of(event, "hook_event_name"), self._texts("hook.late")
            return deny(name, said) if name in HOLDING else warn(said)

    async def handle(
        self,
        event: Event,
        *,
        handover: Handover | None = None,
        may_wait: bool = False,
        deadline: float | None = None,
    ) -> HookAnswer:
        """Record ``event``, ask people if necessary, and return the answer.

        - ``handover``: takes the messages for the answer. The caller passes the answer to the client, and
          then records the hand-over. By default, the messages count as handed over when this method returns
        - ``may_wait``: the hook of an idle client may wait until something arrives
        - ``deadline``: the end of all waits, in the event loop's time. Default: the deadline of a hook that
          starts now

        A cancelled wait withdraws its question. Raise `WatchroomError`, but never for a call that the client
        is about to make. Such a call is decided by the checks that are still possible.
        """
        deadline = self.deadline(event) if deadline is None else deadline
        if text_of(event, "hook_event_name") == BEFORE:
            _remember(self._reported, text_of(event, "tool_use_id"))
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
        if session is not None and name in (AFTER, FAILURE):
            event = self._with_open_call(session, event)
        if session is None:
            return tell(name, await self._take_news(self.agent, handover)) if name == AFTER else NOTHING
        main = self._main_path(event)
        if name == END:
            self._turn(main).set()
        if name == PROMPT:
            return await self._prompt(session, main, event, handover)
        await self._record_all(session, event, name)
        if name == START and await run_in_thread(lambda: session.status) in ENDED:
            # The resumed session waits for a prompt.
            await self.record(session, TurnEnded())
        told = await self._end_files(session, event, name)
        if name == AFTER:
            news = await self._take_news(main, handover)
            return tell(AFTER, "\n".join(each for each in (told, news) if each))
        if told:
            return tell(name, told)
        wakes = self._hooks.waits_when_idle and may_wait
        if name == STOP and not session.parent and not event.get("background_tasks"):
            step = await run_in_thread(lambda: session.last)
            claim = DoneClaim(self.agent, main, step.seq, self._prompted.get(main, 0), wakes=wakes)
            self._on_claim(claim)
        if name == STOP or (name == STOP_FAILURE and wakes and not session.parent):
            with suppress(TimeoutError):
                async with asyncio.timeout_at(deadline):
                    return await self._idle(session, main, event, handover, may_wait=may_wait)
            handover.release()
        return NOTHING

    def _with_open_call(self, session: ClientSession, event: Event) -> Event:
        """Return ``event``, the end of a call of ``session``, with the id of that call."""
        if text_of(event, "tool_use_id"):
            return event
        tool, arguments = text_of(event, "tool_name"), dump(event.get("tool_input"))
        call = self.calls.find_ended(session, tool, arguments)
        return _with_id(event, call.id if call is not None else "")

    async def _end_files(self, session: ClientSession, event: Event, name: str) -> str:
        """Record the effects on files at the end of the call of ``event``, or at the end of a turn. Return a
        text for the agent about them."""
        trees = self._tree_calls
        refused = _list_refused(event) if name == BATCH else []
        told = [await self._end_refused(trees, session, event, each) for each in refused]
        if trees is None:
            return ""
        if name in (AFTER, FAILURE):
            holder = Holder(self.agent, session.path, text_of(event, "tool_use_id"))
            use, result = self._hooks.describe_use(event), self._hooks.describe_result(event)
            return await run_to_completion(None, trees.end, holder, use, result)
        if name == BATCH:
            await run_in_thread(trees.end_turn, session.path, is_over=False)
            return "\n".join(each for each in told if each)
        if name in (STOP, STOP_FAILURE, END, SUBAGENT_END):
            is_over = name in (END, SUBAGENT_END)
            await run_in_thread(trees.end_turn, session.path, is_over=is_over)
        return ""

    async def _end_refused(
        self, trees: TreeCalls | None, session: ClientSession, event: Event, refused: Mapping[str, Json]
    ) -> str:
        """Record a call that the client itself refused, as reported by ``event``. Its start may be
        recorded already. Return a text for the agent about it."""
        call, tool = text_of(refused, "tool_use_id"), text_of(refused, "tool_name")
        arguments, reason, code = dump(refused.get("tool_input")), "", ""
        if trees is not None:
            holder = Holder(self.agent, session.path, call)
            use = self._hooks.describe_use({**event, **refused})
            reason, code, _ = await run_to_completion(None, trees.end_refused, holder, use)
        said = reason or text_of(refused, "tool_response")
        await self.record(session, CallStarted(call, tool, arguments))
        ended = CallFinished(call, said, True, code, tool, arguments, text_of(event, "cwd"))
        await self.record(session, ended)
        return reason

    async def end_session(self, session: ClientSession) -> None:
        """Withdraw the questions of ``session``, whose client has ended, and release its leases."""
        await self.calls.withdraw_all(session)
        if self._tree_calls is not None:
            await run_in_thread(self._tree_calls.end_turn, session.path, is_over=True)

    def find_session(self, event: Event) -> ClientSession | None:
        """Return the session of ``event``. Begin it if it is new. None if the event has no session."""
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
        """Forget one session: an ended session, else a subagent's session, else the oldest."""
        known = [*self.sessions.items()]
        ended = (each for each in known if each[1].status in ENDED)
        name, session = next(ended, None) or next((each for each in known if each[1].parent), known[0])
        self.sessions.pop(name, None)
        self._turns.pop(session.path, None)
        self._prompted.pop(session.path, None)
        self._woken.pop(session.path, None)
        self._resets.pop(session.path, None)
        self._inbox.forget(session.path)

    def _main_path(self, event: Event) -> str:
        return f"{self.agent}/{session_id_of(text_of(event, 'session_id'))}"

    async def record(self, session: ClientSession, event: ClientEvent) -> Row | None:
        """Record ``event`` in ``session``, in a thread. Raise the errors of `ClientSession.record`."""
        if isinstance(event, CallStarted | CallFinished) and self._tree_calls is not None:
            event = await run_in_thread(self._without_ignored, self._tree_calls, session, event)
        return await run_in_thread(session.record, event)

    def _without_ignored(
        self, trees: TreeCalls, session: ClientSession, event: CallStarted | CallFinished
    ) -> CallStarted | CallFinished:
        """Return ``event`` without the text of a file ignored by git, which may contain secrets."""
        given = parse_arguments(event.arguments)
        if event.tool:
            cwd = event.cwd if isinstance(event, CallFinished) else ""
            asked: Event = {"tool_name": event.tool, "tool_input": given, "cwd": cwd or session.folder}
            if trees.names_ignored(self._hooks.describe_use(asked)):
                _remember(self._unkept, event.id)
        if event.id not in self._unkept:
            return event
        hidden = self._texts("tree.not_kept")
        if event.arguments:
            named: dict[str, Json] = {each: given[each] for each in PATH_ARGUMENTS if each in given}
            event = event._replace(arguments=dump({**named, "content": hidden}))
        return event._replace(result=hidden) if isinstance(event, CallFinished) else event

    def shows_activity(self, line: Event) -> bool:
        """Return whether ``line``, a line of a transcript, shows that a turn began or that the agent
        acted."""
        reported = self._hooks.translate_line(line)
        return any(not isinstance(event, TurnFailed | ResetReported) for event in reported)

    async def lacks_hook(self, session: ClientSession, lines: Sequence[Event]) -> bool:
        """Return whether ``lines``, recorded lines of the transcript of ``session``, report the end of a call
        whose beginning no hook has reported. False if the session is known to be unsupervised. Raise
        `JournalError`."""
        if not session.is_supervised:
            return False
        events = [event for line in lines for event in self._hooks.translate_line(line)]
        # A client reports no call that it refuses itself.
        ended = {each.id for each in events if isinstance(each, CallFinished) and not each.is_error}
        ended |= {each.id for each in events if isinstance(each, CallReturned)} & self._made.keys()
        for call in ended - self._reported.keys():
            # Another process may have recorded the hook.
            if not await run_in_thread(session.is_call_reported, call):
                return True
        return False

    async def record_line(self, session: ClientSession, line: Event, *, is_past: bool = False) -> None:
        """Record the content of ``line``, a line of the transcript of ``session``, that no hook has reported.

        ``is_past``: a later line shows activity. So a limit in this line is over.
        """
        for event in self._hooks.translate_line(line):
            if isinstance(event, CallMade):
                _remember(self._made, event.id)
            if isinstance(event, TurnBegan | CallMade | CallReturned):
                continue
            if isinstance(event, ResetReported):
                self._resets[session.path] = event.seconds
                continue
            # Messages from before the session's end were already recorded, perhaps by hooks.
            if isinstance(event, MessageCompleted) and (
                0 < time_of(line, "timestamp") <= session.ended_at
                or self._is_duplicate(session, event.text, "transcript")
            ):
                continue
            if isinstance(event, TurnFailed):
                if not is_past:
                    await self._record_failure(session, event, time_of(line, "timestamp"))
                continue
            if isinstance(event, CallFinished):
                event = await self.calls.settle(session, event)
            added = self._usage.find_increase(session.path, event) if isinstance(event, UsageAdded) else event
            if isinstance(event, MessageCompleted):
                await self._record_message(session, event, "transcript")
            elif added is not None:
                await self.record(session, added)
            if isinstance(event, UsageAdded):
                self._usage.count(session.path, event)

    async def _record_failure(self, session: ClientSession, event: TurnFailed, said_at: int) -> None:
        """Record the end of the newest turn in a transcript, unless the session has ended since ``said_at``
        (nanoseconds since the epoch)."""
        if said_at <= session.ended_at:
            return
        last = await run_in_thread(lambda: session.last)
        now = self.workspace.session_zone.now()
        limit = find_limit(event.reason, now, said_at=said_at)
        if limit is None:
            if session_status(last) == "running":
                await self.record(session, TurnEnded(extract_first_line(event.reason, MAX_WORDS)))
            return
        if limit.resets is None and (seconds := self._resets.get(session.path)):
            limit = limit._replace(resets=check_reset(seconds, now))
        await self.record(session, TurnLimited(limit, event.key))

    async def _record_all(self, session: ClientSession, event: Event, name: str) -> None:
        """Record ``event``, and close the questions about ended calls."""
        if name == "MessageDisplay":
            await self._display(session, event)
            return
        for reported in self._hooks.translate_hook(event):
            if isinstance(reported, CallFinished):
                reported = await self.calls.settle(session, reported)
            elif isinstance(reported, TurnEnded | SessionEnded):
                await self.calls.withdraw_all(session)
            if isinstance(reported, TurnFailed):
                await self.calls.withdraw_all(session)
                limit = find_limit(reported.reason, self.workspace.session_zone.now())
                words = extract_first_line(reported.reason, MAX_WORDS)
                reported = TurnEnded(words) if limit is None else TurnLimited(limit)
            if isinstance(reported, SessionEnded) and await run_in_thread(lambda: session.status) in ENDED:
                # The process that stopped the client has already recorded the end.
                continue
            if isinstance(reported, UsageAdded) and reported.key:
                # A call ends between two requests of a turn. If both have equal usage, it is counted twice.
                calls = await run_in_thread(lambda: session.call_count)
                await self.record(session, reported._replace(key=f"{reported.key} {calls}"))
                continue
            await self.record(session, reported)

    async def _display(self, session: ClientSession, event: Event) -> None:
        """Record a piece of displayed text. With the last piece, record the message."""
        key, piece = text_of(event, "message_id"), text_of(event, "delta")
        self._displayed.add(key, piece)
        if event.get("final") is not True:
            await self.record(session, TextStreamed(piece))
            return
        text, count = self._displayed.take(key)
        is_whole = event.get("index") == count - 1 or self._is_owner
        if text.strip() and is_whole and not self._is_duplicate(session, text, "hook"):
            await self._record_message(session, MessageCompleted(text, key=f"shown {key}"), "hook")

    async def _record_message(
        self, session: ClientSession, event: MessageCompleted, source: MessageSource
    ) -> None:
        """Record a message that is no duplicate. If that fails, the other source can still report it."""
        try:
            await self.record(session, event)
        except JournalError:
            self._messages.withdraw(_name_message(session, event.text), source)
            raise

    def _is_duplicate(self, session: ClientSession, text: str, source: MessageSource) -> bool:
        return self._messages.is_duplicate(_name_message(session, text), source)

    async def _take_news(self, main: str, handover: Handover) -> str:
        """Return a text with everything that has arrived for the session at ``main``.

        A cancelled caller does not interrupt this, so that no message taken by ``handover`` is lost.
        """
        return await run_to_completion(None, self._inbox.take_news, main, handover)

    async def _prompt(
        self, session: ClientSession, main: str, event: Event, handover: Handover
    ) -> HookAnswer:
        held = await run_in_thread(self._inbox.controls, main)
        if held.paused_by:
            return block(self._texts("hook.paused", by=held.paused_by))
        if self._hooks.continues_after_limit(event):
            wake = await self._find_wake(session)
            if not wake.by or wake.must_wait:
                return block(self._texts("hook.limit_continued"))
        # A blocked prompt leaves the client idle, so a hook that can start a turn still waits.
        self._turn(main).set()
        running = _list_running(event)
        await self.calls.withdraw_all(session, running)
        for reported in self._hooks.translate_hook(event):
            row = await self.record(session, reported)
            if isinstance(reported, PromptSubmitted) and row is not None:
                self._inbox.prompted[main] = row.seq
                if self._is_of_person(main, text_of(event, "prompt")):
                    self._prompted[main] = row.seq
        told = ""
        if self._tree_calls is not None:
            # A person has interrupted any other remaining calls of the last turn.
            await run_in_thread(self._tree_calls.end_turn, session.path, is_over=False, running=running)
            given = text_of(event, "prompt")
            told = await run_to_completion(None, self._tree_calls.end_background, self.agent, given)
        news = await self._take_news(main, handover)
        return tell(PROMPT, "\n".join(each for each in (told, news) if each))

    def _is_of_person(self, main: str, text: str) -> bool:
        """Return whether a person wrote the prompt ``text``.

        Clients also report the text that wakes an agent, and the end of a background command. An agent can
        cause both.
        """
        is_wake = text.strip() == self._woken.pop(main, "").strip()
        return not (is_wake or text.lstrip().startswith(_BACKGROUND_ENDED) or is_prompt_of_check(text))

    async def _check_call(self, event: Event, name: str, deadline: float) -> HookAnswer:
        """Answer the hook ``name`` about the call of ``event``."""
        session = await run_in_thread(self.find_session, event)
        main = self._main_path(event)
        tool, arguments = text_of(event, "tool_name"), dump(event.get("tool_input"))
        if session is not None:
            held = await run_in_thread(self._inbox.controls, main)
            if held.cancelled is not None:
                return await self._stopped(session, name, held.cancelled)
        reason, decision = await self._check(session, event)
        if session is None:
            denied = _deny_by(name, reason, decision) if reason else None
            return denied or await self._answer_without_session(event, name, deadline)
        if name == BEFORE:
            event = _with_id(event)
            call = OpenCall(text_of(event, "tool_use_id"), tool, arguments)
            await self._record_all(session, event, BEFORE)
        else:
            call = self._asked_call(session, tool, arguments)
        if self._tree_calls is not None and name != BEFORE:
            # A dialog of the client may take minutes.
            await run_in_thread(self._tree_calls.suspend, Holder(self.agent, session.path, call.id))
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
        if self._tree_calls is not None and not answer.refusal:
            answer = await self._check_files(self._tree_calls, session, event, call, answer)
        if answer.refusal:
            if name == BEFORE:
                self.calls.forget(session, call)
            await self._record_refusal(session, event, call, answer)
        return answer

    async def _check_files(
        self, trees: TreeCalls, session: ClientSession, event: Event, call: OpenCall, answer: HookAnswer
    ) -> HookAnswer:
        """Return ``answer``, which allows ``call``, or a refusal if others have changed its files."""
        name, cwd = text_of(event, "hook_event_name"), text_of(event, "cwd")
        if name != BEFORE and not is_allowed(answer):
            # The client now asks its person. The effects of the call are checked afterwards.
            return answer
        event = {**event, "tool_input": changed_arguments(answer) or event.get("tool_input")}
        holder = Holder(self.agent, session.path, call.id)
        use = self._hooks.describe_use(event)
        if name != BEFORE and self._hooks.allows_changes:
            # Such a client only takes replaced arguments before it asks its person.
            use = use._replace(takes_texts=False)
        verdict = await run_to_completion(None, trees.begin, holder, use, cwd, session.folder)
        if verdict.reason:
            return deny(name, verdict.reason, verdict.code)
        if not verdict.texts:
            return answer
        changed = self._hooks.replace_texts(event, verdict.texts)
        return replace_arguments(answer, name, changed, allows=self._hooks.allows_changes)

    async def _record_refusal(
        self, session: ClientSession, event: Event, call: OpenCall, answer: HookAnswer
    ) -> None:
        """Record that ``call`` is not made. The client does not report its end, or reports it later."""
        refused = CallFinished(call.id, answer.reason, True, answer.refusal, call.tool, call.arguments)
        await self.record(session, refused._replace(cwd=text_of(event, "cwd")))

    async def _answer_without_session(self, event: Event, name: str, deadline: float) -> HookAnswer:
        """Answer a call of a client without a session. No person can be asked about it."""
        try:
            if self._has_budgets(text_of(event, "tool_name")):
                await hold_for_budgets(self.workspace, self.agent, None, deadline)
            await wait_until_resumed(self.workspace.stops, self.agent, deadline)
            # During the pause, a person may have stopped the agent.
            await run_in_thread(self.workspace.budgets.check_stop, self.agent)
        except (AgentPaused, BudgetReached) as error:
            return deny(name, error.message(self._language), error.code)
        # During the wait, the rules may have changed.
        reason, decision = await self._check(None, event)
        if not reason and decision.verdict == "ask":
            reason = self._texts("hook.policy", rule=decision.label)
        return _deny_by(name, reason, decision) if reason else NOTHING

    def _asked_call(self, session: ClientSession, tool: str, arguments: str) -> OpenCall:
        """Return the call that the client asks about. The event does not identify the call. If not exactly
        one call fits, the question gets its own id: one answer must not allow two equal calls."""
        fitting = self.calls.find(session, tool, arguments)
        if len(fitting) == 1:
            return fitting[0]
        candidates = frozenset(each.id for each in fitting)
        return OpenCall(f"ask-{uuid4().hex[:12]}", tool, arguments, candidates=candidates)

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
        a person approves. All waits end at ``deadline``. After each wait all conditions are checked again,
        because people may have paused or stopped the agent in the meantime. Raise `_Stopped`,
        `WatchroomError`.
        """
        name = text_of(event, "hook_event_name")
        answer: HookAnswer | None = None
        warning, has_paid, has_waited = "", False, False
        while True:
            paused_by = await self._find_pause(main)
            if paused_by and not warning:
                has_waited = True
                warning = await self._wait_for_resumption(session, main, paused_by, deadline)
                if warning and (self._is_strict or answer is not None):
                    # The client must not decide about a call that a person approved, because its arguments
                    # may differ.
                    return deny(name, warning, "paused")
            if self._has_budgets(call.tool):
                try:
                    if has_paid:
                        await run_in_thread(self.workspace.budgets.check_stop, self.agent, session.budgeted)
                    else:
                        waiting = hold_for_budgets(self.workspace, self.agent, session, deadline)
                        has_paid = await self._unless_stopped(main, waiting)
                        has_waited = has_waited or has_paid
                except BudgetReached as error:
                    return deny(name, error.message(self._language), error.code)
            if has_waited:
                # During the wait, the rules may have changed, or the agent may have been paused again.
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
            answered = await self._unless_stopped(main, asking)
            if answered.approved is None:
                return answered.answer
            # The answer also satisfies a policy rule that requires an approval.
            answer, event, has_waited = answered.answer, answered.approved, True

    async def _answer_after_error(self, event: Event, name: str, error: WatchroomError) -> HookAnswer:
        """Answer the hook ``name`` after a check raised ``error``, using the rules on paths and the policy.

        A call that needs a person or a budget is denied.
        """
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
        """Return whether a budget can hold a call of ``tool``. Calls of Watchroom's own tools are held by its
        server."""
        return not tool.startswith(OWN_TOOLS) and self.workspace.config.budgets != Budgets()

    async def _find_pause(self, main: str) -> str:
        """Return the actor who has paused the session, empty if it is not paused. Raise `_Stopped`."""
        held = await run_in_thread(self._inbox.controls, main)
        if held.cancelled is not None:
            raise _Stopped(held.cancelled)
        return held.paused_by

    async def _unless_stopped(self, main: str, work: Awaitable[T]) -> T:
        """Return the result of ``work``. If a person stops the agent, cancel it and raise `_Stopped`."""
        working = asyncio.ensure_future(work)
        changed, end = self._subscribe(main)
        # A control may have arrived before the subscription.
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
                await self._find_pause(main)
        finally:
            end()
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)

    def _subscribe(self, main: str) -> tuple[asyncio.Event, Callable[[], None]]:
        """Subscribe to rows for the session at ``main``. Return the event that they set, and an unsubscribe
        function."""
        loop, changed = asyncio.get_running_loop(), asyncio.Event()
        end = self.workspace.background.subscribe(
            (self.agent, main), lambda _: call_soon_threadsafe(loop, changed.set)
        )
        return changed, end

    async def _check(self, session: ClientSession | None, event: Event) -> tuple[str, PolicyDecision]:
        """Return the reason for refusing the call of ``event`` (empty if it is not refused), and the policy's
        decision."""
        reason = await run_in_thread(denial_reason, self.workspace.root, self.agent, event, self._language)
        decision = PolicyDecision()
        if not text_of(event, "tool_name").startswith(OWN_TOOLS):
            decision = await run_in_thread(self._decide, session, event)
        if decision.verdict == "deny" and not reason:
            reason = self._texts("hook.policy", rule=decision.label)
        return reason, decision

    def _decide(self, session: ClientSession | None, event: Event) -> PolicyDecision:
        """Return the policy's decision on the call of ``event``. Paths are relative to the folder in which
        the session began."""
        given = event.get("tool_input")
        arguments = given if isinstance(given, Mapping) else {}
        cwd = text_of(event, "cwd")
        folder = (session.folder if session is not None else "") or cwd
        trees = find_worktrees(folder) if folder else ()
        subject = policy_subject(arguments, folder=folder, cwd=cwd, worktrees=trees, resolve=os.path.realpath)
        tool, policy = text_of(event, "tool_name"), self.workspace.policy
        decision = policy.decide(self.agent, tool, subject)
        if session is not None and text_of(event, "hook_event_name") == BEFORE:
            policy.record_test(CallContext(self.agent), tool, subject, decision)
        return decision

    async def _stopped(self, session: ClientSession, name: str, cancelled: Row) -> HookAnswer:
        """Answer the hook ``name`` of a session that a person has cancelled."""
        if await run_in_thread(lambda: session.status) not in ENDED:
            await self.record(session, SessionEnded("cancelled", cancelled.actor))
        return stop(name, self._texts("hook.cancelled", by=cancelled.actor))

    async def _wait_for_resumption(
        self, session: ClientSession, main: str, paused_by: str, deadline: float
    ) -> str:
        """Wait until the session, paused by ``paused_by``, is resumed or stopped. Return a warning if
        ``deadline`` comes first, else an empty text."""
        await self.record(session, ClientPaused(paused_by))
        warning = ""
        changed, end = self._subscribe(main)
        try:
            async with asyncio.timeout_at(deadline):
                while (now := await run_in_thread(self._inbox.controls, main)).paused_by:
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
        """Ask people to approve ``call`` of ``event``, and wait for their answer. ``rule``: the policy rule
        that requires the approval, empty if the client asks."""
        loop, requests = asyncio.get_running_loop(), self.workspace.requests
        expires = requests.now() + int(max(0.0, deadline - loop.time()) * 1e9)
        pending = PendingCall(call.id, call.tool, call.arguments)
        cwd = text_of(event, "cwd")
        request = await run_in_thread(
            build_question, self.client, pending, session.folder, cwd, rule, expires
        )
        own = await run_in_thread(session.find_request_id, call.id, request)
        is_before = text_of(event, "hook_event_name") == BEFORE
        call = call._replace(request=session.request_path(own), is_before=is_before)
        self.calls.add(session, call)
        try:
            await run_to_completion(None, session.ask, own, request)
            ended = await wait_for_outcome(
                requests, self.workspace.background, call.request, expires, deadline=deadline
            )
        except TooManyRequests as error:
            # The client must not decide either, or many questions would end the supervision.
            self.calls.forget(session, call)
            return Answered(deny(text_of(event, "hook_event_name"), error.report(self._language), error.code))
        except asyncio.CancelledError:
            await run_to_completion(None, self._take_back, session, call.request)
            raise
        return await self._answered(session, event, call, ended, must_answer=self._is_strict or bool(rule))

    def _is_about(self, path: str, call: OpenCall) -> bool:
        """Return whether the request at ``path`` asks about ``call`` with these arguments."""
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
        """Return the answer of the hook of ``event`` after the question about ``call`` has ended.
        ``must_answer``: the call is refused if nobody has answered."""
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
            # The client has decided. No approval is returned, because nobody approved the call here.
            return Answered(NOTHING)
        if not await run_in_thread(self._is_about, path, call):
            return Answered(deny(name, self._texts("hook.withdrawn"), "withdrawn"))
        decision = answer.decisions[0]
        if not decision.approved:
            said = decision.reason or self._texts("hook.declined", by=ended.row.actor)
            return Answered(deny(name, said, REJECTED))
        if decision.arguments is None:
            return Answered(allow(name), event)
        if not self._hooks.takes_arguments:
            # The model is asked to repeat the call with these arguments. That call is checked like any other.
            said = self._texts("hook.changed", arguments=decision.arguments)
            return Answered(deny(name, said, "edited"))
        changed = parse_arguments(decision.arguments)
        return Answered(allow(name, changed), {**event, "tool_input": changed})

    async def _idle(
        self, session: ClientSession, main: str, event: Event, handover: Handover, *, may_wait: bool
    ) -> HookAnswer:
        """Give an idle agent everything that arrives for it. If the hook can wait, do so as soon as it
        arrives."""
        if not (self._hooks.waits_when_idle and may_wait):
            held = await run_in_thread(self._inbox.controls, main)
            if held.paused_by or event.get("stop_hook_active") is True:
                return NOTHING
            wake = await self._find_wake(session)
            news = "" if wake.must_wait else await self._take_news(main, handover)
            self._woken[main] = news
            return self._hooks.resume_turn(news) if news else NOTHING
        turn = self._turn(main)
        turn.clear()
        changed, end = self._subscribe(main)
        self._wakeable.add(main)
        try:
            while not turn.is_set():
                held = await run_in_thread(self._inbox.controls, main)
                wake = await self._find_wake(session)
                is_quiet = bool(held.paused_by) or wake.must_wait
                if not is_quiet and (text := await self._wake(session, wake, handover)):
                    self._woken[main] = text
                    return self._hooks.resume_turn(text)
                waits = [asyncio.ensure_future(each.wait()) for each in (changed, turn)]
                # The reset comes without a row.
                timeout = CLOCK_SECONDS if wake.by else None
                try:
                    await asyncio.wait(waits, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for each in waits:
                        each.cancel()
                changed.clear()
            return NOTHING
        finally:
            self._wakeable.discard(main)
            end()

    async def _find_wake(self, session: ClientSession) -> _Wake:
        """Return whether the parked ``session`` must wait, and who permitted to resume it."""
        parking = await run_in_thread(lambda: parking_of(session.last))
        if parking is None:
            return _Wake()
        row = await run_in_thread(self.workspace.session_zone.find_resume, session.path)
        if row is not None:
            is_due = not is_leave(row) or (parking.resets or 0) <= self.workspace.session_zone.now()
            return _Wake(must_wait=not is_due, by=row.actor, row=row.seq)
        waiting = await run_in_thread(self.workspace.messages.find_waiting, session.path)
        return _Wake(must_wait=not any(each.row.kind == "human" for each in waiting))

    async def _wake(self, session: ClientSession, wake: _Wake, handover: Handover) -> str:
        """Return the text that starts the next turn of ``session``, empty if there is none. A parked session
        continues once, within its budgets."""
        if not wake.by:
            return await self._take_news(session.path, handover)
        try:
            await wait_for_budgets(
                self.workspace.budgets,
                self.workspace.requests,
                self.workspace.background,
                self.agent,
                session.budgeted,
            )
        except BudgetReached:
            await self._record_hold(session, "budget")
            return ""
        # While it waited for a budget, a person may have paused or stopped it.
        if not (await self._find_wake(session)).by:
            return ""
        text = self._texts("hook.limit_reset")
        await self.record(session, PromptSubmitted(text, wake.by, f"resume {wake.row}"))
        news = await self._take_news(session.path, handover)
        return "\n".join(each for each in (text, news) if each)

    async def check_reset(self, session: ClientSession) -> None:
        """Report to people if ``session`` should continue after its limit, but its client waits for input and
        cannot be woken."""
        wake = await self._find_wake(session)
        if wake.must_wait or not wake.by or session.path in self._wakeable:
            return
        if not (await run_in_thread(self._inbox.controls, session.path)).paused_by:
            await self._record_hold(session, "client")

    async def _record_hold(self, session: ClientSession, held: str) -> None:
        """Record why the parked ``session`` is not resumed (`Parking.held`). The leave is used up."""
        parking = await run_in_thread(lambda: parking_of(session.last))
        if parking is not None:
            await self.record(session, TurnLimited(RateLimit(None, parking.text), held=held))

    def _turn(self, main: str) -> asyncio.Event:
        return self._turns.setdefault(main, asyncio.Event())

    def _note(self, session: ClientSession, tool: str, text: str) -> None:
        self.workspace.session_zone.note(self.agent, tool, session.path, text, {})


def _remember(calls: dict[str, None], call: str) -> None:
    """Add ``call`` to ``calls``. If they are too many, forget the oldest."""
    calls[call] = None
    if len(calls) > _MAX_CALLS:
        del calls[next(iter(calls))]


def _name_message(session: ClientSession, text: str) -> str:
    return f"{session.path} {fingerprint(text)}"


def _with_id(event: Event, call: str = "") -> Event:
    """Return ``event`` with the id of its call: the client's id, else ``call``, by default a new id."""
    own = text_of(event, "tool_use_id") or call or f"call-{uuid4().hex[:12]}"
    return {**event, "tool_use_id": own}


def _list_refused(event: Event) -> list[Mapping[str, Json]]:
    """Return the calls of the batch in ``event`` that the client itself refused."""
    calls = event.get("tool_calls")
    known = [each for each in calls if isinstance(each, Mapping)] if isinstance(calls, list) else []
    refused = (each for each in known if text_of(each, "tool_response").startswith(_TOOL_ERROR))
    return [each for each in refused if text_of(each, "tool_use_id")][:_MAX_BATCH]


def _list_running(event: Event) -> frozenset[str]:
    """Return the ids of the calls that are still running while a prompt arrives, according to ``event``."""
    calls = event.get("open_calls")
    return (
        frozenset(each for each in calls if isinstance(each, str)) if isinstance(calls, list) else frozenset()
    )


def _deny_by(name: str, reason: str, decision: PolicyDecision) -> HookAnswer:
    """Return the answer to a call denied by the policy or by a rule on paths."""
    is_by_policy = decision.verdict == "deny"
    return deny(name, reason, PolicyDenied.code if is_by_policy else PermissionDenied.code)


def _allow_by(decision: PolicyDecision) -> HookAnswer:
    """Return the answer to a call that needs no approval. The client decides itself, unless a policy rule
    allows the call."""
    return allow(BEFORE) if decision.verdict == "allow" and decision.number else NOTHING
