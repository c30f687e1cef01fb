"""The attendant: the part of an agent's MCP server that hooks of its client talk to.

The client starts a server for each of its processes, and ends with it: so the server knows the client, and
holds the lease of its sessions. Hooks reach it by a socket in the control folder, and need no start of a
whole Python program of ours. It reads the client's transcripts as they grow, and says by a row if the client
does something while no hook comes.
"""

from __future__ import annotations

import asyncio
import json
import os
import stat
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import Final, NamedTuple

from watchroom.checkout.layout import CONTROL
from watchroom.clients.agent_claims import AgentClaims, refuse_client
from watchroom.clients.attachment import Attachment, Event
from watchroom.clients.client_traces import ClientTrace, SeenDescendants, record_gone
from watchroom.clients.configuration import Client
from watchroom.clients.errors import AgentNotFree
from watchroom.clients.events import ClientInfo, SessionEnded
from watchroom.clients.hook_answer import NOTHING, PROMPT, START, HookAnswer, add_context, warn
from watchroom.clients.hook_client import BEAT_SECONDS, MAX_EVENT_BYTES
from watchroom.clients.json_fields import text_of
from watchroom.clients.processes import ClientProcess
from watchroom.clients.session import ClientSession
from watchroom.clients.session_ids import session_id_of
from watchroom.clients.stopping import find_process, stop_process
from watchroom.errors import WatchroomError
from watchroom.journal.topics import steps_of
from watchroom.model import CANCEL, ENDED, Json, Row
from watchroom.platforms import Platform
from watchroom.rules.presence import is_unfinished
from watchroom.rules.usage import is_subagent_step
from watchroom.runtime.threads import call_soon_threadsafe, run_in_thread
from watchroom.texts import catalogue
from watchroom.workspace import Workspace
from watchroom.zones.messages import Handover

FOLDER: Final = "attendants"
UNSUPERVISED_SECONDS: Final = 30.0
"""So long after the last hook something that the client does is a sign that hooks are left out."""
_GRACE_SECONDS: Final = 5.0
_LOOK_SECONDS: Final = 0.5
_MOST_STEPS: Final = 1000
"""So many of an agent's newest steps are looked through for sessions that hooks began."""
_LEAVE_SECONDS: Final = 0.1
"""So long a server that its client closes waits until the client, which a person has stopped, is gone."""
_ROWS_SECONDS: Final = 0.1
"""So often at most the rows of all agents are looked at: what people say to this one may wait as long."""
_READ_SECONDS: Final = 10.0
"""Seconds in which a hook has to send its event."""
_MAX_AGE: Final = 86_400.0
_MOST_READ_BYTES: Final = 4_000_000
"""So much of a transcript is read at a time."""
_MOST_LINE_BYTES: Final = 1_000_000


class _Head(NamedTuple):
    """What a hook says of itself before its event: whether it may wait beside an idle client, how many
    seconds ago it began, whether it understands empty lines while it waits, and the agents that it is for."""

    may_wait: bool = False
    age: float = 0.0
    has_beats: bool = False
    agents: Sequence[Json] = ()


class TranscriptFile:
    """The transcript at ``path`` of ``session``, which grows."""

    def __init__(self, path: str, session: ClientSession) -> None:
        self.path = path
        self.session = session
        self._offset = 0

    def read(self) -> list[Event]:
        """The lines that are new and whole; nothing where it cannot be read."""
        try:
            with open(self.path, "rb") as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    return []
                file.seek(self._offset)
                read = file.read(_MOST_READ_BYTES)
        except OSError:
            return []
        end = read.rfind(b"\n") + 1
        if not end and len(read) == _MOST_READ_BYTES:
            # A line that is longer than all that is read is none of ours.
            end = len(read)
        self._offset += end
        return [event for line in read[:end].splitlines() if (event := _parse(line)) is not None]


class Attendant:
    """Serves the hooks of the ``client`` whose ``process`` has started this one, in ``workspace``.

    The client works as one of ``agents``: of several, it is given one that no other client has, when it
    begins to work. ``is_strict`` as for `Attachment`. Runs on an event loop, within `serve`. Raises
    `UnknownAgent`.
    """

    def __init__(
        self,
        workspace: Workspace,
        agents: Sequence[str],
        client: Client,
        process: ClientProcess,
        *,
        is_strict: bool = False,
        unsupervised_seconds: float = UNSUPERVISED_SECONDS,
    ) -> None:
        self._workspace = workspace
        self._process = process
        self._client: Client = client
        self._agents = tuple(workspace.registry.agent(each).id for each in agents)
        self._claims = AgentClaims(workspace, self._agents, client, process)
        self._is_strict = is_strict
        sole = self._agents[0] if len(self._agents) == 1 else ""
        self._attachment = self._attach(sole) if sole else None
        self._told_agent = ""
        """The agent id in the model's instructions, empty if they name none."""
        self._path = os.path.join(workspace.root, CONTROL, FOLDER, f"{sole}-{process.pid}.sock")
        self._unsubscribe: Callable[[], None] | None = None
        self._transcripts: dict[str, TranscriptFile] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._heard = asyncio.get_running_loop().time()
        self._unsupervised_seconds = unsupervised_seconds
        self._seen = SeenDescendants(process)
        self._trace = ClientTrace(process.pid, process.started)
        self._reading = asyncio.Lock()
        self._ending = asyncio.Lock()
        self._gone = asyncio.Event()
        self._unhooked: ClientSession | None = None
        self._stops: list[asyncio.Task[None]] = []

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[None]:
        """Answer hooks within the context; at its end, or once the client is gone, its sessions have
        ended. Raises OSError where the socket cannot be made."""
        folder = os.path.dirname(self._path)
        await run_in_thread(partial(os.makedirs, folder, mode=0o700, exist_ok=True))
        name, path = os.path.basename(self._path), self._path
        await run_in_thread(_remove_left_sockets, folder, name, self._workspace.platform)
        with _short_path(folder) as short:
            server = await asyncio.start_unix_server(self._serve_hook, os.path.join(short, name))
        os.chmod(path, 0o600)
        self._workspace.dispatcher.interval = _ROWS_SECONDS
        if self._attachment is not None:
            self._subscribe(self._attachment.agent)
        self._begin(self._follow())
        try:
            yield
        finally:
            if self._unsubscribe is not None:
                self._unsubscribe()
            server.close()
            with suppress(FileNotFoundError):
                os.unlink(path)
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await self.end()

    def _attach(self, agent: str) -> Attachment:
        return Attachment(
            self._workspace,
            agent,
            self._client,
            process=self._process,
            is_owner=True,
            is_strict=self._is_strict,
        )

    def _subscribe(self, agent: str) -> None:
        loop = asyncio.get_running_loop()
        self._unsubscribe = self._workspace.dispatcher.subscribe(
            (agent,), lambda row: call_soon_threadsafe(loop, partial(self._heed, row))
        )

    @property
    def _sessions(self) -> Mapping[str, ClientSession]:
        return {} if self._attachment is None else {**self._attachment.sessions}

    async def reserve_agent(self) -> str:
        """Return the agent that the client is given, unless the first session that it goes on with is another
        agent's. Raises as `AgentClaims.claim`."""
        reserved = ""
        if self._attachment is None:
            reserved = await run_in_thread(partial(self._claims.claim, is_used=False))
        self._told_agent = reserved if self._attachment is None else self._attachment.agent
        return self._told_agent

    async def claim_agent(self) -> str:
        """Return the agent that the client works as from now on. Raises as `AgentClaims.claim`."""
        return (await self._claim()).agent

    async def _claim(self, given: str = "") -> Attachment:
        """Return the attachment of the agent that the client works as, now that it goes on with the session
        ``given``. Raises as `AgentClaims.claim`."""
        bound = self._attachment
        is_known = not given or session_id_of(given) in self._sessions
        if bound is not None and (is_known or len(self._agents) == 1):
            return bound
        agent = await run_in_thread(self._claims.claim, given)
        if self._attachment is None:
            self._attachment = self._attach(agent)
            self._subscribe(agent)
        if self._attachment.agent != agent:
            raise AgentNotFree(agent=agent, client=self._client)
        return self._attachment

    async def wait_gone(self) -> None:
        """Wait until the client is gone, and its sessions have ended."""
        await self._gone.wait()

    def notice_activity(self) -> None:
        """The client has done something of which a hook should have told."""
        loop = asyncio.get_running_loop()
        if loop.time() - self._heard > self._unsupervised_seconds:
            self._begin(self._check_supervision(self._heard))

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve_hook(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one hook; what was asked for one that is gone before its answer is withdrawn."""
        event, head = await self._read_event(reader)
        with self._workspace.messages.hand_over() as handover:
            answering = asyncio.ensure_future(self._answer(event, head, handover))
            closing = asyncio.ensure_future(reader.read(1))
            try:
                with suppress(ConnectionError):
                    while not answering.done() and not closing.done():
                        if head.has_beats:
                            # So it knows that this process is not stopped.
                            writer.write(b"\n")
                            await writer.drain()
                        await asyncio.wait(
                            (answering, closing), timeout=BEAT_SECONDS, return_when=asyncio.FIRST_COMPLETED
                        )
                    if answering.done():
                        writer.write(_dump_answer(answering.result(), handover) + b"\n")
                        await writer.drain()
                        if not closing.done():
                            await run_in_thread(handover.record)
            finally:
                for each in (answering, closing):
                    each.cancel()
                await asyncio.gather(answering, closing, return_exceptions=True)
                writer.close()

    async def _read_event(self, reader: asyncio.StreamReader) -> tuple[Event | str, _Head]:
        """Return the event of a hook, or what is wrong with it, and what the hook says of itself."""
        head = _Head()
        try:
            async with asyncio.timeout(_READ_SECONDS):
                fields = json.loads(await reader.readline())
                size, age = int(fields["bytes"]), float(fields.get("age", 0))
                head = _Head(
                    fields.get("may_wait") is True,
                    age if 0 <= age <= _MAX_AGE else 0.0,
                    fields.get("beats") is True,
                    agents if isinstance(agents := fields.get("agents"), list) else (),
                )
                if not 0 <= size <= MAX_EVENT_BYTES:
                    return f"{size} bytes", head
                event = json.loads(await reader.readexactly(size))
        except TimeoutError:
            return "timeout", head
        except (
            *(ValueError, ArithmeticError, LookupError, TypeError, AttributeError),
            *(RecursionError, EOFError, ConnectionError),
        ) as error:
            return str(error), head
        return event if isinstance(event, dict) else type(event).__name__, head

    async def _answer(self, event: Event | str, head: _Head, handover: Handover) -> HookAnswer | None:
        """Answer the hook of ``event``; None if it is for other agents than this server."""
        texts = catalogue(self._workspace.config.language)
        if isinstance(event, str):
            # As ``watchroom hook`` does: status 2 keeps a call that nobody could read from being made.
            return HookAnswer(error=texts("hook.no_attendant", reason=event), status=2)
        if not self._serves(head.agents):
            return None
        self._heard = asyncio.get_running_loop().time()
        await run_in_thread(self._seen.look)
        name = text_of(event, "hook_event_name")
        try:
            attachment = await self._claim(text_of(event, "session_id"))
        except (WatchroomError, OSError) as error:
            return refuse_client(name, error, self._workspace.config.language)
        if not self._serves(head.agents):
            return None
        answer = await self._answer_as(attachment, event, head, handover)
        if name not in (START, PROMPT) or self._told_agent in ("", attachment.agent):
            return answer
        self._told_agent = attachment.agent
        return add_context(answer, name, texts("hook.agent", agent=attachment.agent))

    def _serves(self, agents: Sequence[Json]) -> bool:
        """Return whether this client works as one of ``agents``, for which a hook is, or may come to."""
        own = self._agents if self._attachment is None else (self._attachment.agent,)
        return not agents or any(each in agents for each in own)

    async def _answer_as(
        self, attachment: Attachment, event: Event, head: _Head, handover: Handover
    ) -> HookAnswer:
        """Answer the hook of ``event`` as the agent of ``attachment``."""
        texts = catalogue(self._workspace.config.language)
        failed: WatchroomError | None = None
        try:
            await self._note_supervision()
            await self._watch(attachment, event)
            await self._read_transcripts()
        except WatchroomError as error:
            # The checks of a call do not depend on what was said before it.
            failed = error
        try:
            answer = await attachment.answer(event, handover=handover, may_wait=head.may_wait, age=head.age)
        except WatchroomError as error:
            handover.release()
            # Status 2 keeps a prompt from being sent.
            is_kept = self._is_strict and text_of(event, "hook_event_name") == PROMPT
            return HookAnswer(error=texts("hook.no_attendant", reason=str(error)), status=2 if is_kept else 1)
        if failed is not None and answer == NOTHING:
            return warn(texts("hook.no_attendant", reason=str(failed)))
        return answer

    async def _note_supervision(self) -> None:
        for session in self._sessions.values():
            session.is_supervised = True
        if self._unhooked is not None:
            ended, self._unhooked = self._unhooked, None
            await run_in_thread(ended.record, SessionEnded())

    async def _watch(self, attachment: Attachment, event: Event) -> None:
        """Read the transcripts that ``event`` names from now on."""
        session = await run_in_thread(attachment.find_session, event)
        path = text_of(event, "agent_transcript_path") or text_of(event, "transcript_path")
        subagent = text_of(event, "agent_id")
        if subagent and not text_of(event, "agent_transcript_path") and path.endswith(".jsonl"):
            path = os.path.join(path.removesuffix(".jsonl"), "subagents", f"agent-{subagent}.jsonl")
        if session is None or not path or session.path in self._transcripts:
            return
        remembered = {each.path for each in self._sessions.values()}
        for forgotten in self._transcripts.keys() - remembered:
            del self._transcripts[forgotten]
        self._transcripts[session.path] = TranscriptFile(path, session)

    async def _follow(self) -> None:
        """Read transcripts as they grow, and go on with sessions that hooks began alone, until the client is
        gone."""
        looked = 0
        while self._process.is_alive:
            # What is beneath the client now may have no parent when the client is gone.
            await run_in_thread(self._seen.look)
            if self._attachment is None and await run_in_thread(self._claims.find) != "":
                # Hooks began to work before there was this server.
                await self._claim()
            if self._attachment is not None and not self._attachment.sessions:
                looked = await self._adopt_sessions(self._attachment, looked)
            if await self._read_transcripts():
                self.notice_activity()
            await asyncio.sleep(_LOOK_SECONDS)
        await self.end()
        self._gone.set()

    async def _adopt_sessions(self, attachment: Attachment, after: int) -> int:
        """Go on with what hooks of this client began before there was a server to answer them, by the steps
        after row ``after``. Returns the row of the newest one."""
        steps = partial(
            self._workspace.journal.topic, steps_of(attachment.agent), after=after, limit=_MOST_STEPS
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
        """Make rows of what has come. Returns whether the agent did something there."""
        did, attachment = False, self._attachment
        if attachment is None:
            return False
        async with self._reading:
            for transcript in [*self._transcripts.values()]:
                for line in await run_in_thread(transcript.read):
                    did = await attachment.record_line(transcript.session, line) or did
        return did

    async def _check_supervision(self, heard: float) -> None:
        await asyncio.sleep(_GRACE_SECONDS)
        if self._heard != heard or self._attachment is None:
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
        """End the client that a person has stopped, which no hook may do in time."""
        if row.tool == CANCEL:
            for session in self._sessions.values():
                if not session.parent:
                    self._stops.append(asyncio.ensure_future(self._stop(session, row)))

    async def _stop(self, session: ClientSession, row: Row) -> None:
        if await run_in_thread(lambda: session.status) not in ENDED:
            await run_in_thread(stop_process, self._workspace, session.path, self._process, row)

    async def leave(self) -> None:
        """As `end`, before this process ends: a file in place of the socket tells hooks that come later which
        sessions have ended."""
        await self.end()
        ended = "\n".join(self._sessions)
        await run_in_thread(_replace_socket, self._path, ended)

    async def end(self) -> None:
        """The client is gone, or closes its server: so its sessions have ended."""
        if self._stops:
            # A client may wait for its server to end before it ends itself.
            seconds = _LEAVE_SECONDS if self._process.is_alive else None
            await asyncio.wait(self._stops, timeout=seconds)
        texts = catalogue(self._workspace.config.language)
        await self._read_transcripts()
        unhooked = [] if self._unhooked is None else [self._unhooked]
        # The client may go and close its server at once.
        async with self._ending:
            if not self._process.is_alive:
                left = await run_in_thread(self._seen.left)
                for session in self._sessions.values():
                    if not session.parent:
                        await run_in_thread(record_gone, self._workspace, session.path, self._trace, left)
            for session in [*self._sessions.values(), *unhooked]:
                if self._attachment is not None:
                    await self._attachment.calls.withdraw_all(session)
                await run_in_thread(_end_session, session, texts("hook.gone"))


def _dump_answer(answer: HookAnswer | None, handover: Handover) -> bytes:
    """The line that the hook gets: ``answer``, and whether it delivers what ``handover`` has taken."""
    if answer is None:
        return b"null"
    said: dict[str, Json] = {"said": answer.dump(), "error": answer.error, "status": answer.status}
    return json.dumps({**said, "delivers": not handover.is_empty}).encode()


@contextmanager
def _short_path(folder: str) -> Iterator[str]:
    """Another path of ``folder``, since that of a socket has to be short."""
    with tempfile.TemporaryDirectory(prefix="w") as above:
        link = os.path.join(above, "a")
        os.symlink(folder, link)
        yield link


def _remove_left_sockets(folder: str, own: str, platform: Platform) -> None:
    """Remove the sockets of clients that are gone, and that with the name ``own``, of an earlier server of
    this one."""
    for name in os.listdir(folder):
        pid = name.removesuffix(".sock").rpartition("-")[2]
        if not pid.isdecimal() or name == own or not platform.process_start(int(pid)):
            with suppress(FileNotFoundError):
                os.unlink(os.path.join(folder, name))


def _replace_socket(path: str, text: str) -> None:
    """Put a file with ``text`` in place of the socket at ``path``, if it can be written."""
    new = f"{path}.new"
    with suppress(OSError):
        with open(new, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(new, path)


def _end_session(session: ClientSession, reason: str) -> None:
    status = session.status
    if status not in ENDED:
        session.record(SessionEnded("done" if status == "idle" else "cancelled", reason))


def _parse(line: bytes) -> Mapping[str, Json] | None:
    if len(line) > _MOST_LINE_BYTES:
        return None
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) else None
