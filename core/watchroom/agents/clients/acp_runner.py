"""Runs a client with the Agent Client Protocol as an agent of the workspace.

The client's reports become rows. Its questions wait for people. Messages to the agent become its prompts.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import signal
import subprocess
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from threading import Event
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias, cast

from pydantic import ValidationError

from watchroom import validation
from watchroom.agents.clients.acp import AcpTranslator, ReplayFilter, describe_error
from watchroom.agents.clients.adapter import PLUGIN_OFF, PLUGIN_SWITCH, AcpSupport
from watchroom.agents.clients.calls import REJECTED, format_decision
from watchroom.agents.clients.events import (
    CallFinished,
    ClientEvent,
    ClientInfo,
    ClientPaused,
    PromptSubmitted,
    SessionEnded,
    TextStreamed,
    TurnEnded,
    TurnFailed,
    TurnLimited,
)
from watchroom.agents.clients.session import ClientSession, hold_for_budgets, session_id_of
from watchroom.errors import (
    BudgetReached,
    ClientDoesNotAsk,
    ClientNotStarted,
    ExtraMissing,
    PolicyDenied,
    TooManyRequests,
    WatchroomError,
)
from watchroom.features.checks.rows import DoneClaim
from watchroom.features.policy.rules import PolicyDecision
from watchroom.features.policy.shown_commands import quote_command
from watchroom.features.requests.rows import DIFFERENCE, PendingCall, Request, parse_arguments
from watchroom.features.sessions.limits import RateLimit, find_limit
from watchroom.features.sessions.messages import Handover
from watchroom.features.sessions.rows import is_leave, parking_of
from watchroom.features.sessions.runtime.threads import call_soon_threadsafe, run_in_thread, run_to_completion
from watchroom.features.sessions.runtime.waiting import expiry, wait_for_outcome
from watchroom.kernel.call_context import CallContext
from watchroom.model import CANCEL, MESSAGE, PAUSE, RESUME, SYSTEM, Row
from watchroom.texts import catalogue
from watchroom.workspace import Workspace

if TYPE_CHECKING:
    from acp import Client, RequestPermissionResponse

_log = logging.getLogger("watchroom")
_COALESCE_SECONDS: Final = 0.2
"""Seconds between records of streamed text."""
_CANCEL_SECONDS: Final = 1.0
"""Timeout for the end of a cancelled turn in seconds. After it, the client is killed."""
_START_SECONDS: Final = 60.0
"""Timeout for the start of a client, and for the test of namespaces, in seconds."""
_CHECK_SECONDS: Final = 20.0
"""Seconds that a check has to end with the run."""
_TERM_SECONDS: Final = 1.0
"""Seconds between SIGTERM and SIGKILL."""
_QUIET_SECONDS: Final = 0.5
"""Seconds without an update after which a resumed session gets its first prompt."""
_CLAIMED_SECONDS: Final = 0.5
"""Seconds between checks whether another process has delivered the waiting messages."""
_MAX_EVENTS: Final = 10_000
"""Maximum number of events that wait to become rows. A client that exceeds it is ended."""
_MAX_REASON: Final = 500
"""Maximum characters of the reason for a failed turn."""
_MAX_ERRORS: Final = 2000
"""Maximum characters that are kept of the client's standard error."""
_MAX_LINE_BYTES: Final = 32 * 1024 * 1024
"""Maximum bytes of a protocol message."""
_Passage: TypeAlias = Literal["free", "paid", "refused"]
"""How a call or a prompt passes the budgets.

- ``free``: nobody was asked.
- ``paid``: people allowed it over a budget. They are not asked again, because an answer "once" is for it.
- ``refused``: it must not be made: a person has stopped the agent, or the turn has ended.
"""
_NAMESPACE: Final = ("--bind", "/", "/", "--dev-bind", "/dev", "/dev", "--proc", "/proc", "--unshare-pid")


class AcpOptions(NamedTuple):
    """Options for running a client.

    - ``cwd``: its working folder
    - ``server``: the command of its MCP server, empty for none
    - ``own_tools``: whether it keeps its own tools
    - ``once``: whether it ends after its first turn
    - ``resume``: the id of the session to continue, empty for a new one
    - ``continues``: the command that continues the session if this process dies, without the session's id at
      its end
    """

    cwd: str
    server: tuple[str, ...] = ()
    own_tools: bool = True
    once: bool = False
    resume: str = ""
    continues: tuple[str, ...] = ()


def require_acp() -> None:
    """Raise `ExtraMissing` if the extra ``acp`` is not installed."""
    if find_spec("acp") is None:
        raise ExtraMissing(extra="acp", package="agent-client-protocol")


async def run_acp(
    workspace: Workspace,
    agent: str,
    client: str,
    support: AcpSupport,
    options: AcpOptions,
    *,
    prompt: str = "",
    on_event: Callable[[ClientEvent], None] = lambda event: None,
) -> None:
    """Run the client with the name ``client`` as the registered ``agent`` in ``workspace``.

    The run lasts until the client ends or a person ends it. The client runs in its own process namespace if
    the system has them, and its child processes end with it.

    - ``support``, ``options``: the options for starting and running it
    - ``prompt``: its first prompt, default none. Later messages to the agent become its prompts
    - ``on_event``: called with each event

    Raise `ExtraMissing`, `ClientNotStarted`, `ClientDoesNotAsk`, `UnknownAgent`, `JournalError`.
    """
    require_acp()
    import acp

    process = await _start_process(support.command, options.cwd)
    run = _AcpRun(workspace, agent, client, support, options, process, on_event)
    connection = acp.connect_to_agent(cast("Client", run), process.stdin, process.stdout)
    try:
        await run.begin(connection)
        await run.work(prompt)
    finally:
        await run.end()
        # An ended client reads nothing, which is not an error of this run.
        with suppress(ConnectionError):
            await connection.close()


class _AcpRun:
    """One run. It handles the client's requests, in methods with the protocol's names."""

    def __init__(
        self,
        workspace: Workspace,
        agent: str,
        client: str,
        support: AcpSupport,
        options: AcpOptions,
        process: Process,
        on_event: Callable[[ClientEvent], None],
    ) -> None:
        self._workspace = workspace
        self._agent = agent
        self._client = client
        self._support = support
        self._options = options
        self._process = process
        self._on_event = on_event
        self._translator = AcpTranslator(tool_name=support.tool_name)
        self._session: ClientSession | None = None
        self._session_id = ""
        self._replay: ReplayFilter | None = None
        """Recognizes the past of a resumed session, until its second turn begins."""
        self._connection: Any = None
        self._turn: asyncio.Future[Any] | None = None
        self._events: asyncio.Queue[ClientEvent] = asyncio.Queue()
        self._prompts: list[PromptSubmitted] = []
        """The next prompts, except messages from the journal."""
        self._given: list[PromptSubmitted] = []
        """The newest prompts that were given to the client, except messages."""
        self._has_prompts = asyncio.Event()
        self._has_begun = asyncio.Event()
        """Set once the client has responded to the newest prompts."""
        self._is_resumed = asyncio.Event()
        self._is_resumed.set()
        self._paused_by = ""
        self._steered = 0
        """The newest row that paused or resumed the agent."""
        self._refusals: dict[str, str] = {}
        """The refusal codes of refused calls that have not ended, by the id of the call."""
        self._has_cut_turn = False
        self._is_ready = asyncio.Event()
        """Cleared after a failed turn, until a person resumes the agent or a message arrives."""
        self._is_ready.set()
        self._must_retry = False
        """Whether a resume after a failed turn sends a prompt to try again."""
        self._resets: int | None = None
        """The reset time of the limit that parks the session, None if it is unknown or there is no limit."""
        self._is_parked = False
        self._resuming: asyncio.Task[None] | None = None
        """Waits for the reset, with a person's leave."""
        self._open_questions = 0
        self._cancelled: Row | None = None
        self._must_end = asyncio.Event()
        self._errors = ""
        self._outcome: SessionEnded | None = SessionEnded("cancelled")
        """How the session ends; None if it stays open, because a limit ended the only turn."""
        self._tasks: list[asyncio.Task[None]] = []
        self._prompted = 0
        """The newest row before the newest prompt of a person."""
        self._checking: asyncio.Task[None] | None = None
        """Runs the checks after the newest turn."""
        self._ends_check = Event()
        self._writer: asyncio.Task[None] | None = None
        self._unsubscribe: Callable[[], None] = lambda: None

    async def begin(self, connection: Any) -> None:
        """Open the session, in the mode in which the client asks before it acts."""
        from acp import PROTOCOL_VERSION
        from acp.schema import ClientCapabilities, Implementation, McpServerStdio

        self._connection = connection
        self._tasks.append(asyncio.create_task(self._read_errors()))
        if self._options.resume:
            await run_in_thread(self._read_past)
        server, *arguments = self._options.server or ("",)
        servers = [McpServerStdio(name="watchroom", command=server, args=arguments, env=[])] if server else []
        settings: dict[str, Any] = {}
        if not self._options.own_tools:
            settings.update(self._support.no_tools or {})
        try:
            async with asyncio.timeout(_START_SECONDS):
                said = await connection.initialize(
                    PROTOCOL_VERSION,
                    client_capabilities=ClientCapabilities(),
                    client_info=Implementation(name="watchroom", version=version("watchroom")),
                )
                self._session_id, modes = await self._open(connection, servers, settings)
                await self._set_mode(modes)
                await self._wait_for_replay()
        except (ClientDoesNotAsk, asyncio.CancelledError):
            raise
        except Exception as error:
            reason = validation.escape_unstorable(self._errors.strip() or str(error) or type(error).__name__)
            raise ClientNotStarted(command=" ".join(self._support.command), reason=reason) from error
        about = said.agent_info
        pid = self._process.pid
        info = ClientInfo(
            self._client,
            about.version if about else "",
            self._options.cwd,
            attachment="run",
            pid=pid,
            started=self._workspace.platform.process_start(pid),
        )
        own_id = session_id_of(self._session_id)
        if self._options.continues:
            # If this process dies, readers find the command in the lease.
            command = quote_command([*self._options.continues, own_id])
            await run_in_thread(self._workspace.journal.presence.hold, command)
        self._session = await run_in_thread(ClientSession, self._workspace, self._agent, own_id, info)
        self._listen()
        await self._restore_parking()
        await self._restore_pause()
        self._writer = asyncio.create_task(self._write())
        # The run ends if the journal cannot be written.
        self._writer.add_done_callback(lambda _: self._must_end.set())
        self._tasks.append(self._writer)
        self._tasks.append(asyncio.create_task(self._watch_process()))

    @property
    def _opened_session(self) -> ClientSession:
        """The session opened by `begin`."""
        if self._session is None:
            raise RuntimeError("the client has sent a request before its session was opened")
        return self._session

    async def _open(self, connection: Any, servers: list[Any], settings: dict[str, Any]) -> tuple[str, Any]:
        """Begin or continue a session. Return its id and modes. The client reports the past of a continued
        session again."""
        given = {"cwd": self._options.cwd, "mcp_servers": servers, **settings}
        if not self._options.resume:
            opened = await connection.new_session(**given)
            return str(opened.session_id), opened.modes
        loaded = await connection.load_session(session_id=self._options.resume, **given)
        return self._options.resume, loaded.modes

    def _read_past(self) -> None:
        """Read the past of the session to continue from its rows."""
        self._replay = ReplayFilter()
        try:
            state = self._workspace.sessions.state(self._agent, session_id_of(self._options.resume))
        except WatchroomError:
            # The session is unknown, or its rows are damaged.
            return
        said = [each for each in state.messages if each.role == "assistant"]
        calls = (call.id for each in said for call in each.tool_calls)
        self._replay = ReplayFilter([each.content for each in said if each.content], calls)
        self._translator = AcpTranslator(tool_name=self._support.tool_name, cost=state.spent.cost)

    async def _wait_for_replay(self) -> None:
        """Wait until the client pauses while it reports the past of a session. Some clients report it only
        after loading the session, and a slow client continues after the pause."""
        known = -1
        while self._replay is not None and known != self._replay.count:
            known = self._replay.count
            await asyncio.sleep(_QUIET_SECONDS)

    async def _set_mode(self, modes: Any) -> None:
        mode = self._support.mode
        if not mode:
            return
        known = [each.id for each in modes.available_modes] if modes else []
        if mode not in known:
            raise ClientDoesNotAsk(
                command=" ".join(self._support.command), mode=mode, modes=", ".join(known) or "-"
            )
        await self._connection.set_session_mode(session_id=self._session_id, mode_id=mode)

    def _listen(self) -> None:
        """Subscribe to messages and controls for the session."""
        loop = asyncio.get_running_loop()
        session = self._opened_session
        first = session.last.seq

        def take(row: Row) -> None:
            is_said = row.seq > first and row.tool in (MESSAGE, CANCEL, PAUSE, RESUME)
            if is_said and self._workspace.session_zone.counts(row):
                call_soon_threadsafe(loop, partial(self._obey, row))

        addresses = (self._agent, session.path)
        self._unsubscribe = self._workspace.background.subscribe(addresses, take)

    async def _restore_parking(self) -> None:
        """Continue to wait if a limit parked the session in another process."""
        parking = parking_of(await run_in_thread(lambda: self._opened_session.last))
        if parking is None:
            return
        self._park(parking.resets)
        self._on_event(TurnLimited(RateLimit(parking.resets, parking.text)))
        self._must_retry = True
        path = self._opened_session.path
        row = await run_in_thread(self._workspace.session_zone.find_resume, path)
        if row is not None and is_leave(row):
            self._obey_leave(row)
        elif row is not None:
            self._resume(row.actor)
        waiting = await run_in_thread(self._workspace.messages.find_waiting, path)
        if any(each.row.kind == "human" for each in waiting):
            self._unpark()
            self._is_ready.set()

    async def _restore_pause(self) -> None:
        """Obey a pause from before this run."""
        zone, path = self._workspace.session_zone, self._opened_session.path
        pause = (await run_in_thread(zone.find_steering, path)).pause
        # A newer instruction may have been delivered in the meantime.
        if pause is not None and pause.seq > self._steered:
            self._pause(pause)

    def _park(self, resets: int | None) -> None:
        """Send no prompt until a person resumes the agent or writes to it. ``resets``: the reset time."""
        self._unpark()
        self._is_parked, self._resets = True, resets
        self._is_ready.clear()

    def _unpark(self) -> None:
        self._is_parked, self._resets = False, None
        if self._resuming is not None:
            self._resuming.cancel()
            self._resuming = None

    def _obey_leave(self, row: Row) -> None:
        """Resume once at the reset, as ``row`` permits."""
        if self._is_parked and self._resets is not None and self._resuming is None:
            self._resuming = asyncio.create_task(self._resume_at(self._resets, row.actor))
            self._tasks.append(self._resuming)

    async def _resume_at(self, resets: int, by: str) -> None:
        with suppress(TimeoutError):
            async with expiry(resets, self._workspace.session_zone.now):
                await self._must_end.wait()
        if not self._must_end.is_set():
            self._resuming = None
            self._resume(by)

    def _obey(self, row: Row) -> None:
        if is_leave(row):
            self._obey_leave(row)
        elif row.tool == MESSAGE:
            # Each request to a model before the reset fails, so a parked agent only continues for a person.
            if not self._is_parked or row.kind == "human":
                self._unpark()
                self._is_ready.set()
            self._has_prompts.set()
        elif row.tool == CANCEL:
            self._cancelled = row
            self._must_end.set()
        elif row.tool == PAUSE:
            self._pause(row)
        elif row.tool == RESUME:
            self._steered = row.seq
            self._resume(row.actor)

    def _pause(self, row: Row) -> None:
        """Pause because of ``row``, until a person resumes the agent."""
        self._steered = row.seq
        if not self._is_resumed.is_set():
            return
        # A pause replaces the parking, so that no leave ends it.
        self._unpark()
        self._is_resumed.clear()
        self._paused_by = row.actor
        self._has_cut_turn = self._turn is not None and not self._turn.done() and not self._open_questions
        if self._has_cut_turn:
            # The client may make calls without asking. It certainly makes none between turns.
            self._tasks.append(asyncio.create_task(self._cancel_turn()))
        else:
            self._record(ClientPaused(row.actor))

    def _resume(self, by: str) -> None:
        """Continue after a pause, a failed turn, or both. ``by``: the person who resumed the agent."""
        has_failed, was_paused = not self._is_ready.is_set(), not self._is_resumed.is_set()
        text = "hook.limit_reset" if self._is_parked else "hook.try_again"
        self._unpark()
        self._is_ready.set()
        self._is_resumed.set()
        if was_paused:
            self._record(ClientPaused(by, is_paused=False))
        if has_failed and self._must_retry:
            self._must_retry = False
            self._add_prompt(PromptSubmitted(self._texts(text), by))
        elif not has_failed and was_paused and self._has_cut_turn:
            self._add_prompt(PromptSubmitted(self._texts("hook.go_on"), by))

    async def _hold(self) -> bool:
        """Wait while the agent is paused, and record the pause."""
        if not self._is_resumed.is_set():
            self._record(ClientPaused(self._paused_by))
        return await self._is_resumed.wait()

    async def work(self, prompt: str) -> None:
        """Give the client prompts and waiting messages until the run must end."""
        if prompt:
            self._unpark()
            self._is_ready.set()
            self._must_retry = False
            self._add_prompt(PromptSubmitted(prompt))
        while not self._must_end.is_set():
            if not await self._unless_ended(self._wait_for_prompts()):
                break
            with self._workspace.messages.hand_over() as handover:
                prompts = await self._take_prompts(handover)
                if prompts and await self._unless_ended(self._take_turn(prompts, handover)) is None:
                    break
            if self._must_end.is_set():
                break
            if not prompts:
                await asyncio.sleep(_CLAIMED_SECONDS)
                continue
            if self._options.once and self._checking is not None:
                await self._unless_ended(asyncio.wait({self._checking}))
            if self._options.once and not await self._find_prompts():
                self._outcome = SessionEnded("done")
                break
        if self._cancelled is not None:
            self._outcome = SessionEnded("cancelled", self._cancelled.message or self._cancelled.actor)
            await self._cancel_turn()

    def _add_prompt(self, prompt: PromptSubmitted) -> None:
        self._prompts.append(prompt)
        self._has_prompts.set()

    async def _wait_for_prompts(self) -> bool:
        """Wait until there is a prompt and the client can receive it. Return False if a person stops the
        agent because of a budget."""
        await self._is_ready.wait()
        while True:
            self._has_prompts.clear()
            if await self._find_prompts():
                break
            await self._has_prompts.wait()
        await self._is_resumed.wait()
        return await self._pass_budgets() != "refused"

    async def _find_prompts(self) -> bool:
        """Return whether a prompt or a message waits for the client."""
        path = self._opened_session.path
        return bool(self._prompts or await run_in_thread(self._workspace.messages.find_waiting, path))

    async def _take_prompts(self, handover: Handover) -> list[PromptSubmitted]:
        """Return the next prompts: first the messages that ``handover`` takes."""
        messages = await run_to_completion(None, handover.take, self._opened_session.path)
        self._given, self._prompts = self._prompts, []
        return [*(PromptSubmitted(each.text, each.row.actor) for each in messages), *self._given]

    async def _pass_budgets(self, passage: _Passage = "free") -> _Passage:
        """Wait while a budget is used up. Return the new passage. If a person stops the agent, end the run.

        ``passage``: the passage so far. ``paid`` only checks whether a person has stopped the agent.
        """
        # The usage of the last turn must be recorded first.
        await self._all_written()
        workspace, session = self._workspace, self._opened_session
        try:
            if passage == "paid":
                await run_in_thread(workspace.budgets.check_stop, self._agent, session.budgeted)
            elif await hold_for_budgets(workspace, self._agent, session):
                passage = "paid"
        except BudgetReached as error:
            self._outcome = SessionEnded("cancelled", error.message(workspace.config.language))
            self._must_end.set()
            return "refused"
        return passage

    async def _take_turn(self, prompts: Sequence[PromptSubmitted], handover: Handover) -> bool:
        from acp import RequestError, text_block

        if self._turn is not None:
            self._replay = None
        await self._hold()
        if any(each.author != SYSTEM for each in prompts):
            self._prompted = await run_in_thread(self._workspace.journal.last_seq)
        for each in prompts:
            self._record(each)
        # If this process dies now, a leave that was used must not be used again.
        await self._all_written()
        self._has_begun.clear()
        blocks = [text_block(each.text) for each in prompts]
        asked = self._connection.prompt(session_id=self._session_id, prompt=blocks)
        self._turn = asyncio.ensure_future(asked)
        self._has_cut_turn = False
        try:
            await self._record_delivery(self._turn, handover)
            response = await asyncio.shield(self._turn)
        except ValidationError as error:
            # The answer does not conform to the protocol.
            said = ", ".join(f"{'.'.join(map(str, each['loc']))}: {each['input']}" for each in error.errors())
            self._fail_turn(self._texts("hook.turn_failed", reason=said))
            return False
        except (RequestError, ConnectionError) as error:
            # If the client has died, the watch of its process reports that.
            with suppress(TimeoutError):
                async with asyncio.timeout(_CANCEL_SECONDS):
                    await self._must_end.wait()
            if isinstance(error, RequestError):
                has_begun = self._has_begun.is_set()
                self._fail_turn(describe_error(str(error), error.data), None if has_begun else self._given)
            elif not self._must_end.is_set():
                self._end_with(str(error))
            return False
        for event in self._translator.end_turn(response.model_dump(mode="json", by_alias=True)):
            self._record(event)
        reason = str(response.stop_reason)
        if reason == "end_turn" or self._has_cut_turn:
            self._record(TurnEnded("" if reason == "end_turn" else reason))
            if reason == "end_turn" and self._workspace.config.checks:
                self._checking = asyncio.create_task(self._check_work(self._checking))
            return await self._hold()
        self._fail_turn(self._texts("hook.turn_failed", reason=reason))
        return False

    async def _check_work(self, before: asyncio.Task[None] | None) -> None:
        """Check the agent's work. A failure becomes the agent's next prompt, as a message from Watchroom.

        ``before``: the checks after an earlier turn. They must end first.
        """
        if before is not None:
            await asyncio.wait({before})
        await self._all_written()
        session = self._opened_session
        step = await run_in_thread(lambda: session.last)
        claim = DoneClaim(self._agent, session.path, step.seq, self._prompted)
        try:
            await run_in_thread(self._workspace.checks.run, claim, self._ends_check)
        except (WatchroomError, OSError):
            # The run continues without the result.
            _log.warning("the work of %s was not checked", self._agent, exc_info=True)

    def _fail_turn(self, reason: str, again: Sequence[PromptSubmitted] | None = None) -> None:
        """Record that the turn failed for ``reason``. Send no prompt until a resume or a message.

        ``again``: the prompts to send first at that time. None if the client has already responded to them;
        it is then asked to try again.
        """
        reason = validation.escape_unstorable(reason, _MAX_REASON)
        if self._must_end.is_set():
            return
        # A pause is stronger than a limit: only a person ends it.
        is_paused = not self._is_resumed.is_set()
        limit = None if is_paused else find_limit(reason, self._workspace.session_zone.now())
        if self._options.once and limit is None:
            self._end_with(reason)
            return
        # The client's text so far must come before the failure.
        failure = TurnFailed(reason) if limit is None else TurnLimited(limit)
        for event in (*self._translator.finish(), failure):
            self._record(event)
        self._is_ready.clear()
        if limit is not None:
            self._park(limit.resets)
        if self._options.once:
            self._outcome = None
            self._must_end.set()
        self._must_retry = again is None
        self._prompts = [*(again or ()), *self._prompts]

    def _end_with(self, error: str) -> None:
        self._outcome = SessionEnded("error", validation.escape_unstorable(error))
        self._must_end.set()

    def _texts(self, key: str, **values: str) -> str:
        return catalogue(self._workspace.config.language)(key, **values)

    async def _record_delivery(self, turn: asyncio.Future[Any], handover: Handover) -> None:
        """Record that the messages of ``handover`` are delivered, once the client has responded in ``turn``
        or ended it without an error. Raise the errors of the turn."""
        begun = asyncio.create_task(self._has_begun.wait())
        try:
            await asyncio.wait({turn, begun}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            begun.cancel()
        if not self._has_begun.is_set():
            turn.result()
        await run_to_completion(None, handover.record)

    async def _unless_ended(self, work: Any) -> Any:
        """Return the result of ``work``, None if the run must end first."""
        working, ending = asyncio.ensure_future(work), asyncio.create_task(self._must_end.wait())
        try:
            await asyncio.wait({working, ending}, return_when=asyncio.FIRST_COMPLETED)
            return await working if working.done() else None
        finally:
            ending.cancel()
            if not working.done():
                working.cancel()
                with suppress(asyncio.CancelledError):
                    await working

    async def _cancel_turn(self) -> None:
        """Ask the client to end its turn. It is killed later if it does not respond."""
        if self._turn is None or self._turn.done():
            return
        await self._connection.cancel(session_id=self._session_id)
        await asyncio.wait({self._turn}, timeout=_CANCEL_SECONDS)

    async def end(self) -> None:
        """End the client and its child processes, and record the end."""
        self._must_end.set()
        self._unsubscribe()
        if self._turn is not None:
            self._turn.cancel()
        await _kill_process(self._process)
        if self._checking is not None:
            self._ends_check.set()
            await asyncio.wait({self._checking}, timeout=_CHECK_SECONDS)
        if self._session is not None:
            for event in self._translator.finish():
                self._record(event)
            if self._outcome is not None:
                self._record(self._outcome)
            await self._all_written()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._writer is not None and not self._writer.cancelled() and (failed := self._writer.exception()):
            raise failed

    async def _all_written(self) -> None:
        """Wait until all events so far are rows, or until the writer has ended."""
        if self._writer is None:
            return
        written = asyncio.create_task(self._events.join())
        await asyncio.wait({written, self._writer}, return_when=asyncio.FIRST_COMPLETED)
        written.cancel()

    async def _watch_process(self) -> None:
        """End the run when the client's process ends."""
        status = await self._process.wait()
        if not self._must_end.is_set():
            reason = self._errors.strip().rpartition("\n")[2]
            self._end_with(f"{self._client} ended with status {status}. {reason}".strip())

    async def _read_errors(self) -> None:
        while self._process.stderr is not None and (piece := await self._process.stderr.read(4096)):
            self._errors = (self._errors + piece.decode(errors="replace"))[-_MAX_ERRORS:]

    def _record(self, event: ClientEvent) -> bool:
        """Record ``event``. Return False if it reports the past of a resumed session, which is in rows, or if
        a later event decides that."""
        if isinstance(event, CallFinished) and (refusal := self._refusals.pop(event.id, "")):
            # The client only reports that the call failed.
            event = event._replace(refusal=refusal if event.is_error else "")
        events = [event] if self._replay is None else self._replay.remove_past(event)
        for each in events:
            self._on_event(each)
            self._events.put_nowait(each)
        return bool(events)

    async def _write(self) -> None:
        """Record the events as rows, in order. Streamed text is collected for a moment."""
        session = self._opened_session
        while True:
            events = [await self._events.get()]
            with suppress(TimeoutError):
                async with asyncio.timeout(_COALESCE_SECONDS):
                    while isinstance(events[-1], TextStreamed):
                        events.append(await self._events.get())
            said = "".join(each.text for each in events if isinstance(each, TextStreamed))
            if said:
                await run_in_thread(session.record, TextStreamed(said))
            if not isinstance(events[-1], TextStreamed):
                await run_in_thread(session.record, events[-1])
            for _ in events:
                self._events.task_done()

    async def session_update(self, session_id: str, update: Any, **more: Any) -> None:
        """Handle ``session/update``, the report of an event."""
        fields = update.model_dump(mode="json", by_alias=True)
        if self._replay is not None and self._turn is None:
            # Nobody has prompted the client yet.
            self._replay.skip(fields)
            return
        if self._events.qsize() > _MAX_EVENTS:
            self._end_with(f"{self._client} reports more than can be recorded")
            return
        for event in self._translator.translate(fields):
            if self._record(event):
                self._has_begun.set()

    async def request_permission(
        self, session_id: str, tool_call: Any, options: Sequence[Any], **more: Any
    ) -> RequestPermissionResponse:
        """Handle ``session/request_permission``. The policy or a person decides."""
        from acp import RequestPermissionResponse
        from acp.schema import AllowedOutcome, DeniedOutcome

        self._has_begun.set()
        call = tool_call.model_dump(mode="json", by_alias=True)
        asked = self._translator.describe_call(call)
        for event in asked.events:
            self._record(event)
        try:
            is_approved = await self._decide(
                PendingCall(asked.id, asked.tool, asked.arguments), asked.difference
            )
        except WatchroomError:
            # An error of the protocol would leave the decision to the client.
            _log.warning("a call of %s could not be checked", self._agent, exc_info=True)
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        kind = "allow_once" if is_approved else "reject_once"
        chosen = next((each.option_id for each in options if each.kind == kind), None)
        if chosen is None:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(outcome=AllowedOutcome(option_id=chosen, outcome="selected"))

    async def _decide(self, call: PendingCall, difference: str) -> bool:
        """Return whether the policy or a person allows ``call``."""
        workspace, session = self._workspace, self._opened_session
        passage = await self._admit()
        decision = None if passage == "refused" else await self._check(call)
        if decision is None:
            return False
        arguments = parse_arguments(call.arguments)
        await run_in_thread(
            workspace.policy.record_test, CallContext(self._agent), call.name, arguments, decision
        )
        if decision.verdict == "allow" and decision.number:
            return True
        request = Request("approve", calls=(call,), metadata={DIFFERENCE: difference} if difference else {})
        own = await run_in_thread(session.find_request_id, call.id, request)
        try:
            path = await run_in_thread(session.ask, own, request)
        except TooManyRequests as error:
            said = error.report(workspace.config.language)
            self._add_prompt(PromptSubmitted(f"{call.name}: {said}", SYSTEM))
            self._refusals[call.id] = error.code
            return False
        self._open_questions += 1
        try:
            outcome = await wait_for_outcome(workspace.requests, workspace.background, path)
        finally:
            self._open_questions -= 1
        if outcome.answer is None or not outcome.answer.decisions:
            await run_in_thread(session.record_withdrawal, path)
            return False
        await run_in_thread(session.record_answer, path, outcome.answer, outcome.row.actor)
        await self._hold()
        (decided,) = outcome.answer.decisions
        if feedback := format_decision(call, decided):
            self._add_prompt(PromptSubmitted(feedback, outcome.row.actor))
        if not decided.approved:
            self._refusals[call.id] = REJECTED
        if not decided.approved or decided.arguments is not None:
            return False
        # Rules, budgets and pauses may have changed during the wait.
        return await self._admit(passage) != "refused" and await self._check(call) is not None

    async def _admit(self, passage: _Passage = "free") -> _Passage:
        """Wait until no budget holds a call and the agent is not paused. Return the new passage.

        ``passage``: the passage of the call so far.
        """
        passage = await self._pass_budgets(passage)
        if passage == "refused":
            return "refused"
        await self._hold()
        if self._turn is None or self._turn.done():
            return "refused"
        # During the pause, a person may have stopped the agent. People are not asked about a budget again.
        is_stopped = await self._pass_budgets("paid") == "refused"
        return "refused" if is_stopped else passage

    async def _check(self, call: PendingCall) -> PolicyDecision | None:
        """Return the policy's decision on ``call``, None if the policy denies it."""
        workspace, arguments = self._workspace, parse_arguments(call.arguments)
        decision = await run_in_thread(workspace.policy.decide, self._agent, call.name, arguments)
        if decision.verdict != "deny":
            return decision
        await run_in_thread(
            workspace.policy.record_test, CallContext(self._agent), call.name, arguments, decision
        )
        reason = catalogue(workspace.config.language)("policy.denied", rule=decision.label)
        self._add_prompt(PromptSubmitted(f"{call.name}: {reason}", SYSTEM))
        self._refusals[call.id] = PolicyDenied.code
        return None


async def _start_process(given: Sequence[str], folder: str) -> Process:
    """Start the client with the command ``given`` in ``folder``, in its own process namespace if possible.
    Raise `ClientNotStarted`."""
    command = [*await run_in_thread(namespace_command), *given]
    try:
        return await asyncio.create_subprocess_exec(
            *command,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            cwd=folder,
            # The plugin would report what the client reports over ACP.
            env={**os.environ, PLUGIN_SWITCH: PLUGIN_OFF},
            limit=_MAX_LINE_BYTES,
            start_new_session=True,
        )
    except OSError as error:
        raise ClientNotStarted(command=" ".join(given), reason=str(error)) from error


def namespace_command() -> list[str]:
    """Return the words to put before a command to run it in its own process namespace. Empty if the system
    does not support that.

    The namespace ends with the command and with this process.
    """
    program = shutil.which("bwrap")
    if program is None:
        return []
    command = [program, *_NAMESPACE, "--die-with-parent", "--"]
    tried = subprocess.run([*command, "true"], capture_output=True, check=False, timeout=_START_SECONDS)
    return command if tried.returncode == 0 else []


async def _kill_process(process: Process) -> None:
    """End ``process`` and its process group with SIGTERM, then SIGKILL. A namespace ends with all its
    processes."""
    for number, seconds in ((signal.SIGTERM, _TERM_SECONDS), (signal.SIGKILL, None)):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await process.wait()
                if number is signal.SIGTERM:
                    continue
                return
