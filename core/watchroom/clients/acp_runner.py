"""Runs a client that speaks the Agent Client Protocol, as an agent of the workspace: what it says and does
becomes rows, what it wants to do waits for people, and what people send reaches it."""

from __future__ import annotations

import asyncio
from asyncio.subprocess import Process
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final, cast

from pydantic import ValidationError

from watchroom import validation
from watchroom.clients.acp import AcpTranslator, describe_error
from watchroom.clients.acp_clients import AcpClient, AcpOptions
from watchroom.clients.budget_hold import hold_for_budgets
from watchroom.clients.client_process import kill_process, start_process
from watchroom.clients.errors import ClientDoesNotAsk, ClientNotStarted
from watchroom.clients.events import (
    CallFinished,
    ClientEvent,
    ClientInfo,
    ClientPaused,
    PromptSubmitted,
    SessionEnded,
    TextStreamed,
    TurnEnded,
    TurnFailed,
)
from watchroom.clients.open_calls import REJECTED
from watchroom.clients.questions import format_decision
from watchroom.clients.session import ClientSession
from watchroom.clients.session_ids import session_id_of
from watchroom.errors import ExtraMissing, PolicyDenied
from watchroom.model import CANCEL, MESSAGE, PAUSE, RESUME, SYSTEM, Row
from watchroom.rules.policy import PolicyDecision
from watchroom.rules.requests import DIFFERENCE, PendingCall, Request, parse_arguments
from watchroom.rules.shown_commands import quote_command
from watchroom.runtime.errors import BudgetReached
from watchroom.runtime.request_waiting import wait_for_outcome
from watchroom.runtime.threads import call_soon_threadsafe, run_in_thread, run_to_completion
from watchroom.texts import catalogue
from watchroom.workspace import Workspace
from watchroom.zones.messages import Handover

if TYPE_CHECKING:
    from acp import Client, RequestPermissionResponse

_COALESCE_SECONDS: Final = 0.2
"""What a model says is noted so often at most."""
_CANCEL_SECONDS: Final = 1.0
"""So long a client may take to end its turn when it is told to, before it is killed."""
_START_SECONDS: Final = 60.0
_QUIET_SECONDS: Final = 0.5
"""Once a client has told nothing for so long, it has told all of a session's past."""
_CLAIMED_SECONDS: Final = 0.5
"""Seconds between two looks whether another process has handed over the messages that wait."""
_MOST_WAITING: Final = 10_000
"""So many events may wait to become rows; a client that tells more is ended."""
_MOST_REASON: Final = 500
"""Characters of the reason for which a turn failed."""
_MOST_ERRORS: Final = 2000
"""Characters of what the client says on standard error that are kept."""


async def run_acp(
    workspace: Workspace,
    agent: str,
    client: AcpClient,
    options: AcpOptions,
    *,
    prompt: str = "",
    on_event: Callable[[ClientEvent], None] = lambda event: None,
) -> None:
    """Run ``client`` as the registered ``agent`` in ``workspace``, as ``options`` say, until it ends or is
    ended by a person. It begins with ``prompt``, and then takes what is sent to the agent. ``on_event`` is
    called with each event.

    Where it can be, the client runs in a process namespace of its own, and whatever it started ends with it.
    Raises `ExtraMissing`, `ClientNotStarted`, `ClientDoesNotAsk`, `UnknownAgent`, `JournalError`."""
    try:
        import acp
    except ImportError as error:
        raise ExtraMissing(extra="acp", package="agent-client-protocol") from error
    process = await start_process(client.command, options.cwd)
    run = _AcpRun(workspace, agent, client, options, process, on_event)
    connection = acp.connect_to_agent(cast("Client", run), process.stdin, process.stdout)
    try:
        await run.begin(connection)
        await run.work(prompt)
    finally:
        await run.end()
        # Whoever has ended takes nothing any more: what was on its way then is no error of this run.
        with suppress(ConnectionError):
            await connection.close()


class _AcpRun:
    """One run: the client's side of the connection, as the protocol names it."""

    def __init__(
        self,
        workspace: Workspace,
        agent: str,
        client: AcpClient,
        options: AcpOptions,
        process: Process,
        on_event: Callable[[ClientEvent], None],
    ) -> None:
        self._workspace = workspace
        self._agent = agent
        self._client = client
        self._options = options
        self._process = process
        self._on_event = on_event
        self._translator = AcpTranslator()
        self._session: ClientSession | None = None
        self._session_id = ""
        self._is_replaying = False
        self._replayed = 0
        self._connection: Any = None
        self._turn: asyncio.Future[Any] | None = None
        self._events: asyncio.Queue[ClientEvent] = asyncio.Queue()
        self._prompts: list[PromptSubmitted] = []
        """The next prompts of Watchroom itself: messages come from the journal."""
        self._given: list[PromptSubmitted] = []
        """Of the newest prompts those of Watchroom itself."""
        self._has_prompts = asyncio.Event()
        self._has_begun = asyncio.Event()
        """Set once the client has done something with the newest prompts."""
        self._is_resumed = asyncio.Event()
        self._is_resumed.set()
        self._paused_by = ""
        self._refusals: dict[str, str] = {}
        """By the id of a call that was refused and has not ended, the code of why."""
        self._has_cut_turn = False
        self._is_ready = asyncio.Event()
        """Not set after a turn has failed, until a person resumes the agent or a message comes."""
        self._is_ready.set()
        self._must_retry = False
        """Whether a resume after a failed turn sends a prompt to try again."""
        self._open_questions = 0
        self._cancelled: Row | None = None
        self._must_end = asyncio.Event()
        self._errors = ""
        self._outcome = SessionEnded("cancelled")
        self._tasks: list[asyncio.Task[None]] = []
        self._writer: asyncio.Task[None] | None = None
        self._unsubscribe: Callable[[], None] = lambda: None

    async def begin(self, connection: Any) -> None:
        """Open the session, in the mode in which the client asks."""
        from acp import PROTOCOL_VERSION
        from acp.schema import ClientCapabilities, Implementation, McpServerStdio

        self._connection = connection
        self._tasks.append(asyncio.create_task(self._read_errors()))
        server, *arguments = self._options.server or ("",)
        servers = [McpServerStdio(name="watchroom", command=server, args=arguments, env=[])] if server else []
        settings: dict[str, Any] = {}
        if not self._options.own_tools:
            settings["claudeCode"] = {"options": {"tools": [], "settingSources": []}}
        try:
            async with asyncio.timeout(_START_SECONDS):
                said = await connection.initialize(
                    PROTOCOL_VERSION,
                    client_capabilities=ClientCapabilities(),
                    client_info=Implementation(name="watchroom", version=version("watchroom")),
                )
                self._session_id, modes = await self._open(connection, servers, settings)
                await self._set_mode(modes)
                await self._skip_replay()
        except (ClientDoesNotAsk, asyncio.CancelledError):
            raise
        except Exception as error:
            reason = validation.escape_unstorable(self._errors.strip() or str(error) or type(error).__name__)
            raise ClientNotStarted(command=" ".join(self._client.command), reason=reason) from error
        about = said.agent_info
        info = ClientInfo(
            self._client.name, about.version if about else "", self._options.cwd, attachment="run"
        )
        own_id = session_id_of(self._session_id)
        if self._options.continues:
            # The lease keeps it for readers, in case this process dies.
            command = quote_command([*self._options.continues, own_id])
            await run_in_thread(self._workspace.journal.present, command)
        self._session = await run_in_thread(ClientSession, self._workspace, self._agent, own_id, info)
        self._listen()
        self._writer = asyncio.create_task(self._write())
        # Without rows nothing goes on: the journal cannot be written.
        self._writer.add_done_callback(lambda _: self._must_end.set())
        self._tasks.append(self._writer)
        self._tasks.append(asyncio.create_task(self._watch_process()))

    @property
    def _opened_session(self) -> ClientSession:
        """The session, which `begin` has opened."""
        if self._session is None:
            raise RuntimeError("the client has asked something before its session was opened")
        return self._session

    async def _open(self, connection: Any, servers: list[Any], settings: dict[str, Any]) -> tuple[str, Any]:
        """Begin a session, or go on with one, whose past the client tells once more. Returns its id, and its
        modes."""
        given = {"cwd": self._options.cwd, "mcp_servers": servers, **settings}
        if not self._options.resume:
            opened = await connection.new_session(**given)
            return str(opened.session_id), opened.modes
        self._is_replaying = True
        loaded = await connection.load_session(session_id=self._options.resume, **given)
        return self._options.resume, loaded.modes

    async def _skip_replay(self) -> None:
        """Some clients tell the past of a session only after they have said that it is loaded."""
        known = -1
        while self._is_replaying and known != self._replayed:
            known = self._replayed
            await asyncio.sleep(_QUIET_SECONDS)
        self._is_replaying = False

    async def _set_mode(self, modes: Any) -> None:
        mode = self._client.mode
        if not mode:
            return
        known = [each.id for each in modes.available_modes] if modes else []
        if mode not in known:
            raise ClientDoesNotAsk(
                command=" ".join(self._client.command), mode=mode, modes=", ".join(known) or "-"
            )
        await self._connection.set_session_mode(session_id=self._session_id, mode_id=mode)

    def _listen(self) -> None:
        """Hear what people and agents send."""
        loop = asyncio.get_running_loop()
        session = self._opened_session
        first = session.last.seq

        def take(row: Row) -> None:
            is_said = row.seq > first and row.tool in (MESSAGE, CANCEL, PAUSE, RESUME)
            if is_said and self._workspace.session_zone.counts(row):
                call_soon_threadsafe(loop, partial(self._obey, row))

        addresses = (self._agent, session.path)
        self._unsubscribe = self._workspace.dispatcher.subscribe(addresses, take)

    def _obey(self, row: Row) -> None:
        if row.tool == MESSAGE:
            self._is_ready.set()
            self._has_prompts.set()
        elif row.tool == CANCEL:
            self._cancelled = row
            self._must_end.set()
        elif row.tool == PAUSE and self._is_resumed.is_set():
            self._is_resumed.clear()
            self._paused_by = row.actor
            self._has_cut_turn = self._turn is not None and not self._turn.done() and not self._open_questions
            if self._has_cut_turn:
                # It need not ask about its calls: only between two turns it is sure to make none.
                self._tasks.append(asyncio.create_task(self._cancel_turn()))
            else:
                self._tell(ClientPaused(row.actor))
        elif row.tool == RESUME and not self._is_ready.is_set():
            self._is_ready.set()
            self._is_resumed.set()
            if self._must_retry:
                self._must_retry = False
                self._add_prompt(PromptSubmitted(self._texts("hook.try_again"), row.actor))
        elif row.tool == RESUME and not self._is_resumed.is_set():
            self._is_resumed.set()
            self._tell(ClientPaused(row.actor, is_paused=False))
            if self._has_cut_turn:
                self._add_prompt(PromptSubmitted(self._texts("hook.go_on"), row.actor))

    async def _hold(self) -> bool:
        """Say that the agent is paused, where it is, and wait until it is resumed."""
        if not self._is_resumed.is_set():
            self._tell(ClientPaused(self._paused_by))
        return await self._is_resumed.wait()

    async def work(self, prompt: str) -> None:
        """Give the client its prompts, and the messages that wait for the agent, until it has to end."""
        if prompt:
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
        """Wait until there is something to give the client, and it may be given. False if a person stops the
        agent because of a budget."""
        await self._is_ready.wait()
        while True:
            self._has_prompts.clear()
            if await self._find_prompts():
                break
            await self._has_prompts.wait()
        await self._is_resumed.wait()
        return await self._is_within_budget()

    async def _find_prompts(self) -> bool:
        """Return whether there is something to give the client."""
        path = self._opened_session.path
        return bool(self._prompts or await run_in_thread(self._workspace.messages.find_waiting, path))

    async def _take_prompts(self, handover: Handover) -> list[PromptSubmitted]:
        """Return the next prompts, the messages that ``handover`` takes first."""
        messages = await run_to_completion(None, handover.take, self._opened_session.path)
        self._given, self._prompts = self._prompts, []
        return [*(PromptSubmitted(each.text, each.row.actor) for each in messages), *self._given]

    async def _is_within_budget(self) -> bool:
        """Wait while a budget is used up; False, and the run ends, where a person stops the agent for it."""
        # What the last turn used must be known.
        await self._all_written()
        try:
            await hold_for_budgets(self._workspace, self._agent, self._opened_session)
        except BudgetReached as error:
            self._outcome = SessionEnded("cancelled", error.message(self._workspace.config.language))
            self._must_end.set()
            return False
        return True

    async def _take_turn(self, prompts: Sequence[PromptSubmitted], handover: Handover) -> bool:
        from acp import RequestError, text_block

        await self._hold()
        for each in prompts:
            self._tell(each)
        self._has_begun.clear()
        blocks = [text_block(each.text) for each in prompts]
        asked = self._connection.prompt(session_id=self._session_id, prompt=blocks)
        self._turn = asyncio.ensure_future(asked)
        self._has_cut_turn = False
        try:
            await self._record_delivery(self._turn, handover)
            response = await asyncio.shield(self._turn)
        except ValidationError as error:
            # The protocol has no such answer.
            said = ", ".join(f"{'.'.join(map(str, each['loc']))}: {each['input']}" for each in error.errors())
            self._fail_turn(self._texts("hook.turn_failed", reason=said))
            return False
        except (RequestError, ConnectionError) as error:
            # One that has died says so itself.
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
            self._tell(event)
        reason = str(response.stop_reason)
        if reason == "end_turn" or self._has_cut_turn:
            self._tell(TurnEnded("" if reason == "end_turn" else reason))
            return await self._hold()
        self._fail_turn(self._texts("hook.turn_failed", reason=reason))
        return False

    def _fail_turn(self, reason: str, again: Sequence[PromptSubmitted] | None = None) -> None:
        """Record that the turn failed for ``reason``, and send no prompt until a resume or a message.

        ``again``: prompts to send once more then, beside waiting messages. None if the client has acted on
        them already: then it is asked to try again.
        """
        reason = validation.escape_unstorable(reason, _MOST_REASON)
        if self._must_end.is_set():
            return
        if self._options.once:
            self._end_with(reason)
            return
        # What the client has said so far came before.
        for event in (*self._translator.finish(), TurnFailed(reason)):
            self._tell(event)
        self._is_ready.clear()
        self._must_retry = again is None
        self._prompts = [*(again or ()), *self._prompts]

    def _end_with(self, error: str) -> None:
        self._outcome = SessionEnded("error", validation.escape_unstorable(error))
        self._must_end.set()

    def _texts(self, key: str, **values: str) -> str:
        return catalogue(self._workspace.config.language)(key, **values)

    async def _record_delivery(self, turn: asyncio.Future[Any], handover: Handover) -> None:
        """Record that the messages of ``handover`` are delivered, once the client has done something in
        ``turn`` or has ended it without an error. Raises as the turn does."""
        begun = asyncio.create_task(self._has_begun.wait())
        try:
            await asyncio.wait({turn, begun}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            begun.cancel()
        if not self._has_begun.is_set():
            turn.result()
        await run_to_completion(None, handover.record)

    async def _unless_ended(self, work: Any) -> Any:
        """What ``work`` gives, None where the run has to end before."""
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
        """Tell the client to stop; it is killed where it does not."""
        if self._turn is None or self._turn.done():
            return
        await self._connection.cancel(session_id=self._session_id)
        await asyncio.wait({self._turn}, timeout=_CANCEL_SECONDS)

    async def end(self) -> None:
        """End the client and all that it started, and say so by a row."""
        self._must_end.set()
        self._unsubscribe()
        if self._turn is not None:
            self._turn.cancel()
        await kill_process(self._process)
        if self._session is not None:
            for event in (*self._translator.finish(), self._outcome):
                self._tell(event)
            await self._all_written()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._writer is not None and not self._writer.cancelled() and (failed := self._writer.exception()):
            raise failed

    async def _all_written(self) -> None:
        """Wait until all events so far are rows, or none can become one any more."""
        if self._writer is None:
            return
        written = asyncio.create_task(self._events.join())
        await asyncio.wait({written, self._writer}, return_when=asyncio.FIRST_COMPLETED)
        written.cancel()

    async def _watch_process(self) -> None:
        """A client that ends by itself ends the run."""
        status = await self._process.wait()
        if not self._must_end.is_set():
            reason = self._errors.strip().rpartition("\n")[2]
            self._end_with(f"{self._client.name} ended with status {status}. {reason}".strip())

    async def _read_errors(self) -> None:
        while self._process.stderr is not None and (piece := await self._process.stderr.read(4096)):
            self._errors = (self._errors + piece.decode(errors="replace"))[-_MOST_ERRORS:]

    # -- the rows

    def _tell(self, event: ClientEvent) -> None:
        if isinstance(event, CallFinished) and (refusal := self._refusals.pop(event.id, "")):
            # The client only reports that the call failed.
            event = event._replace(refusal=refusal if event.is_error else "")
        self._on_event(event)
        self._events.put_nowait(event)

    async def _write(self) -> None:
        """Make rows of the events, in their order; what is streamed is put together for a moment."""
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

    # -- what the client asks, by the protocol's names

    async def session_update(self, session_id: str, update: Any, **more: Any) -> None:
        """``session/update``: something happened."""
        if self._is_replaying:
            # These are rows already.
            self._replayed += 1
            return
        if self._events.qsize() > _MOST_WAITING:
            self._end_with(f"{self._client.name} tells more than can be recorded")
            return
        for event in self._translator.translate(update.model_dump(mode="json", by_alias=True)):
            self._has_begun.set()
            self._tell(event)

    async def request_permission(
        self, session_id: str, tool_call: Any, options: Sequence[Any], **more: Any
    ) -> RequestPermissionResponse:
        """``session/request_permission``: a person decides."""
        from acp import RequestPermissionResponse
        from acp.schema import AllowedOutcome, DeniedOutcome

        self._has_begun.set()
        call = tool_call.model_dump(mode="json", by_alias=True)
        asked = self._translator.describe_call(call)
        for event in asked.events:
            self._tell(event)
        is_approved = await self._decide(PendingCall(asked.id, asked.tool, asked.arguments), asked.difference)
        kind = "allow_once" if is_approved else "reject_once"
        chosen = next((each.option_id for each in options if each.kind == kind), None)
        if chosen is None:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(outcome=AllowedOutcome(option_id=chosen, outcome="selected"))

    async def _decide(self, call: PendingCall, difference: str) -> bool:
        """Whether ``call`` may be made: by the rules of the policy, else a person says."""
        workspace, session = self._workspace, self._opened_session
        decision = await self._check(call)
        if decision is None:
            return False
        arguments = parse_arguments(call.arguments)
        await run_in_thread(workspace.policy.record_test, self._agent, call.name, arguments, decision)
        if decision.verdict == "allow" and decision.number:
            return True
        request = Request("approve", calls=(call,), metadata={DIFFERENCE: difference} if difference else {})
        own = await run_in_thread(session.find_request_id, call.id, request)
        path = await run_in_thread(session.ask, own, request)
        self._open_questions += 1
        try:
            outcome = await wait_for_outcome(workspace.requests, workspace.dispatcher, path)
        finally:
            self._open_questions -= 1
        if outcome.answer is None or not outcome.answer.decisions:
            await run_in_thread(session.record_withdrawal, path)
            return False
        await run_in_thread(session.record_answer, path, outcome.answer, outcome.row.actor)
        await self._hold()
        (decided,) = outcome.answer.decisions
        if told := format_decision(call, decided):
            self._add_prompt(PromptSubmitted(told, outcome.row.actor))
        if not decided.approved:
            self._refusals[call.id] = REJECTED
        if not decided.approved or decided.arguments is not None:
            return False
        # People may have changed the rules meanwhile, used up the budget or stopped the agent.
        return await self._check(call) is not None

    async def _check(self, call: PendingCall) -> PolicyDecision | None:
        """Return what the policy says of ``call``, as soon as the agent is not paused and no budget holds it;
        None if it is not to be made."""
        is_within_budget = await self._is_within_budget()
        await self._hold()
        if self._turn is None or self._turn.done() or not is_within_budget:
            return None
        workspace, arguments = self._workspace, parse_arguments(call.arguments)
        decision = await run_in_thread(workspace.policy.decide, self._agent, call.name, arguments)
        if decision.verdict != "deny":
            return decision
        await run_in_thread(workspace.policy.record_test, self._agent, call.name, arguments, decision)
        reason = catalogue(workspace.config.language)("policy.denied", rule=decision.label)
        self._add_prompt(PromptSubmitted(f"{call.name}: {reason}", SYSTEM))
        self._refusals[call.id] = PolicyDenied.code
        return None
