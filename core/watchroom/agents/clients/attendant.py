"""The attendant of an attached client: answers its hooks, and follows its process and its transcripts.

The resident service has one attendant for each process of a client. The attendant holds the lease of the
client's sessions, and reads the client's transcripts as they grow. It records if the client acts without
hooks, and ends the sessions when the client has ended.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from watchroom.agents.clients.adapter import Event
from watchroom.agents.clients.agent_claims import AgentClaims, refuse_client
from watchroom.agents.clients.attachment import SLACK_SECONDS, Attachment, hook_deadline
from watchroom.agents.clients.client_traces import ClientTrace, SeenDescendants, find_process, record_gone
from watchroom.agents.clients.events import ClientInfo, SessionEnded
from watchroom.agents.clients.hook_answers import (
    END,
    NOTHING,
    PROMPT,
    START,
    HookAnswer,
    add_context,
    refuse,
    warn,
)
from watchroom.agents.clients.json_fields import text_of
from watchroom.agents.clients.processes import ClientProcess
from watchroom.agents.clients.registry import hooks_of
from watchroom.agents.clients.session import ClientSession, session_id_of
from watchroom.agents.clients.stopping import stop_process
from watchroom.agents.clients.transcripts import TranscriptFile
from watchroom.errors import AgentNotFree, DraftRefused, JournalDamaged, JournalError, WatchroomError
from watchroom.features.budgets.rows import is_subagent_step
from watchroom.features.checks.rows import DoneClaim
from watchroom.features.sessions.messages import Handover
from watchroom.features.sessions.rows import OWN_TOOLS, is_unfinished
from watchroom.features.sessions.runtime.threads import call_soon_threadsafe, run_in_thread
from watchroom.kernel.journal.topics import steps_of
from watchroom.model import CANCEL, ENDED, Row
from watchroom.texts import catalogue
from watchroom.workspace import Workspace

_LOOK_SECONDS: Final = (0.5, 2.0)
"""Seconds between checks of the client's process and transcripts: while working, and while idle."""
_RESET_SECONDS: Final = 5.0
"""Seconds between checks whether the limit of a parked session has reset."""
_IDLE_SECONDS: Final = 30.0
"""Seconds without a hook or a new line of a transcript after which a client is idle."""
_log = logging.getLogger("watchroom")
_NAMING_SECONDS: Final = 2.0
"""Seconds that the server of a client without a named agent waits for the client's first hook."""
_MAX_STEPS: Final = 1000
"""Maximum number of an agent's newest steps that are searched for sessions begun by hooks."""
_ROWS_SECONDS: Final = 0.1
"""Seconds between reads of new rows. A person's pause or stop takes effect after at most this time."""


class Attendant:
    """Answers the hooks of a client on an event loop, between `begin` and `close`.

    - ``agents``: the client works as one of these agents. When it begins to work, it gets an agent that has
      no other client. Empty: it gets its own agent
    - ``client``, ``process``: the name and the process of the client
    - ``is_strict``, ``on_claim``: see `Attachment`

    Raises `UnknownAgent`, ValueError.
    """

    def __init__(
        self,
        workspace: Workspace,
        agents: Sequence[str],
        client: str,
        process: ClientProcess,
        *,
        is_strict: bool = False,
        on_claim: Callable[[DoneClaim], object] = lambda claim: None,
    ) -> None:
        self._workspace = workspace
        self._process = process
        self._client = client
        self._agents = tuple(workspace.registry.agent(each).id for each in agents)
        self._claims = AgentClaims(workspace, self._agents, client, process)
        self._is_strict = is_strict
        self._on_claim = on_claim
        sole = self._agents[0] if len(self._agents) == 1 else ""
        self._attachment = self._attach(sole) if sole else None
        self._is_bound = asyncio.Event()
        """Set once the client has an agent."""
        self._named_agent = ""
        """The agent id in the model's instructions, empty if they name none."""
        self._unsubscribe: Callable[[], None] | None = None
        self._transcripts: dict[str, TranscriptFile] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._seen = SeenDescendants(process)
        self._trace = ClientTrace(process.pid, process.started)
        self._looked = 0
        """The row up to which steps were searched for sessions of the client."""
        self._next_reset_check = 0.0
        self._acted = asyncio.Event()
        self._last_act = asyncio.get_running_loop().time()
        self._heard = 0
        """The number of hooks that were heard."""
        self._suspected = -1
        """The number of hooks that were heard before the newest call that no hook has reported."""
        self._reading = asyncio.Lock()
        self._ending = asyncio.Lock()
        self._gone = asyncio.Event()
        self._unhooked: ClientSession | None = None
        self._stops: list[asyncio.Task[None]] = []

    @property
    def process(self) -> ClientProcess:
        """The process of the client."""
        return self._process

    @property
    def client(self) -> str:
        """The name of the client."""
        return self._client

    @property
    def is_named(self) -> bool:
        """Whether the client's configuration names its agents."""
        return bool(self._agents)

    @property
    def agents(self) -> tuple[str, ...]:
        """The agent that the client works as, or the agents that it can get."""
        return self._agents if self._attachment is None else (self._attachment.agent,)

    @property
    def session_ids(self) -> tuple[str, ...]:
        """The ids of the client's sessions in rows."""
        return tuple(self._sessions)

    def begin(self) -> None:
        """Follow the client from now on."""
        self._workspace.background.interval = _ROWS_SECONDS
        if self._attachment is not None:
            self._subscribe(self._attachment.agent)
        self._start_task(self._follow())

    async def close(self) -> None:
        """Stop following the client. Sessions of a running client stay open, and another attendant continues
        them."""
        if self._unsubscribe is not None:
            self._unsubscribe()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for session in self._sessions.values():
            if self._attachment is not None:
                await self._attachment.calls.withdraw_all(session)

    def _attach(self, agent: str) -> Attachment:
        return Attachment(
            self._workspace,
            agent,
            self._client,
            process=self._process,
            is_owner=True,
            is_strict=self._is_strict,
            on_claim=self._on_claim,
        )

    def _subscribe(self, agent: str) -> None:
        loop = asyncio.get_running_loop()
        self._unsubscribe = self._workspace.background.subscribe(
            (agent,), lambda row: call_soon_threadsafe(loop, partial(self._heed, row))
        )

    @property
    def _sessions(self) -> Mapping[str, ClientSession]:
        return {} if self._attachment is None else {**self._attachment.sessions}

    async def reserve_agent(self) -> str:
        """Return the agent that the client gets, unless it first continues a session of another agent. Raise
        the errors of `AgentClaims.claim`."""
        reserved = ""
        if not self._agents:
            # The first hook may report a resumed session, which has an agent.
            with suppress(TimeoutError):
                async with asyncio.timeout(_NAMING_SECONDS):
                    await self._is_bound.wait()
        if self._attachment is None:
            reserved = await run_in_thread(partial(self._claims.claim, is_used=False))
        self._named_agent = reserved if self._attachment is None else self._attachment.agent
        return self._named_agent

    async def claim_agent(self) -> str:
        """Return the agent that the client works as from now on. Raise the errors of `AgentClaims.claim`."""
        return (await self._claim()).agent

    async def _claim(self, given: str = "") -> Attachment:
        """Return the attachment of the client's agent. Raise the errors of `AgentClaims.claim`.

        ``given``: the session that the client continues.
        """
        bound = self._attachment
        is_known = not given or session_id_of(given) in self._sessions
        if bound is not None and (is_known or len(self._agents) < 2):
            return bound
        agent = await run_in_thread(self._claims.claim, given)
        if self._attachment is None:
            self._attachment = self._attach(agent)
            self._subscribe(agent)
            self._is_bound.set()
        if self._attachment.agent != agent:
            raise AgentNotFree(agent=agent, client=self._client)
        return self._attachment

    async def wait_gone(self) -> None:
        """Wait until the client and its sessions have ended."""
        await self._gone.wait()

    def notice_activity(self) -> None:
        """Record that the client calls a tool of its server. A hook should have reported the call before."""
        self._note_activity()
        if self._attachment is None or not self._attachment.calls.has_tool(OWN_TOOLS):
            self._note_missing_hook(self._heard)

    def _note_activity(self) -> None:
        self._last_act = asyncio.get_running_loop().time()
        self._acted.set()

    def _note_missing_hook(self, heard: int) -> None:
        """Record that the client works without hooks, if this is its second call in a row that no hook has
        reported. ``heard``: the number of hooks that were heard before it.

        A single call proves nothing: its hook may have run without the service.
        """
        if self._suspected == heard:
            self._start_task(self._record_unsupervised(heard))
        self._suspected = heard

    def _start_task(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def answer(
        self,
        event: Event,
        handover: Handover,
        *,
        age: float = 0.0,
        may_wait: bool = False,
        agents: Sequence[str] = (),
    ) -> HookAnswer | None:
        """Answer the hook of ``event``. Return None if it is for agents of other clients.

        - ``handover``: takes the messages for the answer; they are released if they are not delivered
        - ``age``: seconds since the hook began
        - ``may_wait``: the hook can stay open while the client is idle
        - ``agents``: the agents that the hook is for, empty for any
        """
        texts = catalogue(self._workspace.config.language)
        if not self.serves(agents):
            return None
        loop = asyncio.get_running_loop()
        self._note_activity()
        self._heard += 1
        deadline = hook_deadline(self._client, event, age)
        await run_in_thread(self._seen.look)
        name = text_of(event, "hook_event_name")
        if name == END and await self._is_unknown():
            return NOTHING
        try:
            async with asyncio.timeout_at(max(deadline, loop.time()) + SLACK_SECONDS):
                attachment = await self._claim(text_of(event, "session_id"))
        except TimeoutError:
            return refuse(name, texts("hook.late"))
        except (WatchroomError, OSError) as error:
            return refuse_client(name, error, self._workspace.config.language)
        if not self.serves(agents):
            return None
        answer = await self._answer_as(attachment, event, deadline, handover, may_wait=may_wait)
        if name not in (START, PROMPT) or self._named_agent in ("", attachment.agent):
            return answer
        self._named_agent = attachment.agent
        return add_context(answer, name, texts("hook.agent", agent=attachment.agent))

    async def _is_unknown(self) -> bool:
        """Return whether no agent is named for the client, and the client has not done anything yet."""
        is_open = not self._agents and self._attachment is None
        return is_open and not await run_in_thread(self._claims.find)

    def serves(self, agents: Sequence[str]) -> bool:
        """Return whether this client works, or may work, as one of ``agents``."""
        return not agents or any(each in agents for each in self.agents)

    async def _answer_as(
        self, attachment: Attachment, event: Event, deadline: float, handover: Handover, *, may_wait: bool
    ) -> HookAnswer:
        """Answer the hook of ``event`` as the agent of ``attachment``."""
        texts = catalogue(self._workspace.config.language)
        failed: WatchroomError | None = None
        # The end of a hook does not interrupt this, because lines that were read would be lost.
        preparing = asyncio.ensure_future(self._prepare(attachment, event))
        self._tasks.add(preparing)
        preparing.add_done_callback(self._tasks.discard)
        left = max(0.0, deadline - asyncio.get_running_loop().time())
        if (await asyncio.wait({preparing}, timeout=left + SLACK_SECONDS))[0]:
            try:
                preparing.result()
            except WatchroomError as error:
                # The checks of a call do not depend on earlier records.
                failed = error
        try:
            answer = await attachment.answer(event, deadline, handover=handover, may_wait=may_wait)
        except WatchroomError as error:
            handover.release()
            # Exit status 2 blocks a prompt.
            is_kept = self._is_strict and text_of(event, "hook_event_name") == PROMPT
            return HookAnswer(error=texts("hook.no_attendant", reason=str(error)), status=2 if is_kept else 1)
        if failed is not None and answer == NOTHING:
            return warn(texts("hook.no_attendant", reason=str(failed)))
        return answer

    async def _prepare(self, attachment: Attachment, event: Event) -> None:
        """Record the events before ``event``."""
        await self._note_supervision()
        await self._watch(attachment, event)
        await self._read_transcripts()

    async def _note_supervision(self) -> None:
        for session in self._sessions.values():
            session.is_supervised = True
        if self._unhooked is not None:
            ended, self._unhooked = self._unhooked, None
            try:
                await run_in_thread(ended.record, SessionEnded())
            except JournalError:
                self._unhooked = ended
                raise

    async def _watch(self, attachment: Attachment, event: Event) -> None:
        """Start reading the transcript of the session of ``event``."""
        session = await run_in_thread(attachment.find_session, event)
        path = hooks_of(self._client).find_transcript(event)
        if session is None or not path or session.path in self._transcripts:
            return
        remembered = {each.path for each in self._sessions.values()}
        for forgotten in self._transcripts.keys() - remembered:
            del self._transcripts[forgotten]
        now = await run_in_thread(self._workspace.session_zone.now)
        self._transcripts[session.path] = TranscriptFile(path, session, now)

    async def _follow(self) -> None:
        """Read transcripts as they grow, and adopt sessions that hooks began without the service, until the
        client has ended."""
        while self._process.is_alive:
            try:
                await self._look()
            except (WatchroomError, OSError):
                _log.warning("the client of %s could not be followed", self.agents, exc_info=True)
            await self._wait_to_look()
        try:
            await self.end()
        finally:
            self._gone.set()

    async def _wait_to_look(self) -> None:
        at_work, idle = _LOOK_SECONDS
        await asyncio.sleep(at_work)
        if asyncio.get_running_loop().time() - self._last_act > _IDLE_SECONDS:
            self._acted.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(idle - at_work):
                    await self._acted.wait()

    async def _look(self) -> None:
        # Descendants of the client may lose their parent when the client ends.
        await run_in_thread(self._seen.look)
        if self._attachment is None and await run_in_thread(self._claims.find) != "":
            # Some hooks ran without the service.
            await self._claim()
        if self._attachment is not None and not self._attachment.sessions:
            self._looked = await self._adopt_sessions(self._attachment, self._looked)
        if await self._read_transcripts():
            self._note_activity()
        if self._attachment is not None and asyncio.get_running_loop().time() >= self._next_reset_check:
            self._next_reset_check = asyncio.get_running_loop().time() + _RESET_SECONDS
            for session in [*self._sessions.values()]:
                if not session.parent:
                    await self._attachment.check_reset(session)

    async def _adopt_sessions(self, attachment: Attachment, after: int) -> int:
        """Adopt the sessions that hooks of this client began without a server, according to the steps after
        row ``after``. Return the row of the newest step."""
        steps = partial(
            self._workspace.journal.topic, steps_of(attachment.agent), after=after, limit=_MAX_STEPS
        )
        found = await run_in_thread(steps)
        newest = {step.path: step for step in reversed(found)}
        for step in newest.values():
            if not is_unfinished(step) or is_subagent_step(step):
                continue
            process = await run_in_thread(find_process, self._workspace, step.path)
            if process is not None and process[:2] == self._process[:2]:
                own: Event = {"session_id": step.path.partition("/")[2]}
                await run_in_thread(attachment.find_session, own)
        return found[0].seq if found else after

    async def _read_transcripts(self) -> bool:
        """Record the new lines of the transcripts. Return whether they show that the agent acted."""
        has_acted, lacks_hook, attachment = False, False, self._attachment
        if attachment is None:
            return False
        async with self._reading:
            heard = self._heard
            for transcript in [*self._transcripts.values()]:
                lines = await run_in_thread(transcript.read)
                active = [number for number, line in enumerate(lines) if attachment.shows_activity(line)]
                has_acted = has_acted or bool(active)
                newest = max(active, default=0)
                for number, line in enumerate(lines):
                    try:
                        # After a restart of the service, a transcript is read from its start.
                        await attachment.record_line(transcript.session, line, is_past=number < newest)
                    except JournalError as error:
                        # This line would be refused again, and hold up the next ones.
                        is_lost = isinstance(error, DraftRefused | JournalDamaged)
                        transcript.give_back(lines[number + is_lost :])
                        raise
                new = [line for line in lines if transcript.is_new(line)]
                lacks_hook = await attachment.lacks_hook(transcript.session, new) or lacks_hook
        if lacks_hook:
            self._note_missing_hook(heard)
        return has_acted

    async def _record_unsupervised(self, heard: int) -> None:
        if self._attachment is None or self._heard != heard:
            return
        agent = self._attachment.agent
        sessions = [each for each in self._sessions.values() if each.status not in ENDED]
        if not sessions:
            info = ClientInfo(self._client, pid=self._process.pid, started=self._process.started)
            own = session_id_of(f"unhooked-{self._process.pid}-{int(self._process.started)}")
            self._unhooked = await run_in_thread(ClientSession, self._workspace, agent, own, info)
            sessions = [self._unhooked]
        for session in sessions:
            await run_in_thread(session.record_unsupervised)

    def _heed(self, row: Row) -> None:
        """If ``row`` is a person's stop, end the client. A hook may come too late for that."""
        if row.tool == CANCEL:
            for session in self._sessions.values():
                if not session.parent:
                    self._stops.append(asyncio.ensure_future(self._stop(session, row)))

    async def _stop(self, session: ClientSession, row: Row) -> None:
        if await run_in_thread(lambda: session.status) not in ENDED:
            await run_in_thread(stop_process, self._workspace, session.path, self._process, row)

    async def end(self) -> None:
        """End the sessions after the client has ended."""
        if self._stops:
            await asyncio.wait(self._stops)
        texts = catalogue(self._workspace.config.language)
        await self._read_transcripts()
        unhooked = [] if self._unhooked is None else [self._unhooked]
        # An ending client also closes its server, so both can call this at the same time.
        async with self._ending:
            if not self._process.is_alive:
                left = await run_in_thread(self._seen.left)
                for session in self._sessions.values():
                    if not session.parent:
                        await run_in_thread(record_gone, self._workspace, session.path, self._trace, left)
            for session in [*self._sessions.values(), *unhooked]:
                if self._attachment is not None:
                    await self._attachment.end_session(session)
                await run_in_thread(_end_session, session, texts("hook.gone"))


def _end_session(session: ClientSession, reason: str) -> None:
    status = session.status
    if status not in ENDED:
        session.record(SessionEnded("done" if status in ("idle", "parked") else "cancelled", reason))
