"""Runs the agents of one task: one session each, started, ended and resumed as the rows say."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from watchroom.errors import JournalError
from watchroom.model import CANCEL, ENDED, SYSTEM, TERMINATE, USER, Row
from watchroom.rules.addresses import task_address
from watchroom.rules.members import Member
from watchroom.runtime import (
    AgentState,
    ChatAgent,
    LimitReached,
    ModelRuntime,
    RuntimeConfig,
    Session,
    UserMessage,
)
from watchroom.runtime.threads import call_soon_threadsafe
from watchroom.society.prompt import build_system_prompt
from watchroom.texts import catalogue
from watchroom.toolbox.agent_tools import agent_tools
from watchroom.toolbox.buffer_tools import BufferTools
from watchroom.zones import Task
from watchroom.zones.task_errors import AgentEnded

if TYPE_CHECKING:
    from watchroom.workspace import Workspace

TOOLSETS: Final = ("file", "agent", "buffer")
"""The toolsets of a task's agents: each tool costs a model tokens with each turn."""

_WAITING: Final = frozenset({"waiting_for_human_input", "paused"})
_log = logging.getLogger("watchroom")


class TaskRunner:
    """Runs the agents of ``task`` in ``workspace``, on one event loop.

    ``models`` returns the model of an agent, and ``config`` says how it is run; prompts and messages are in
    its language. With ``asks`` an agent may ask people and wait for the answer.
    """

    def __init__(
        self,
        workspace: Workspace,
        task: Task,
        models: Callable[[Member], ModelRuntime],
        config: RuntimeConfig,
        *,
        asks: bool,
    ) -> None:
        self._workspace = workspace
        self._task = task
        self._models = models
        self._config = config
        self._asks = asks
        self._texts = catalogue(config.language)
        self._running: dict[str, asyncio.Task[None]] = {}
        self._sessions: dict[str, Session] = {}
        self._ended: dict[str, Row] = {}
        self._idle: set[str] = set()
        self._failed: set[str] = set()
        self._changed = asyncio.Event()

    async def run(self, *, stay: bool) -> None:
        """Run until the task and all agents have ended; without ``stay``, until no agent has anything to
        do."""
        loop = asyncio.get_running_loop()
        address = task_address(self._task.id)
        unsubscribe = self._workspace.dispatcher.subscribe(
            (address,), lambda _: call_soon_threadsafe(loop, self._changed.set)
        )
        try:
            while await self._update(stay=stay):
                await self._changed.wait()
        finally:
            unsubscribe()
            await self._stop()

    async def _update(self, *, stay: bool) -> bool:
        """Start and end sessions as the rows say. Returns whether there is anything left to wait for."""
        self._changed.clear()
        members = await asyncio.to_thread(self._workspace.members.of_task, self._task.id)
        for member in members:
            await self._update_member(member)
        for agent in [each for each, work in self._running.items() if work.done()]:
            self._running.pop(agent).result()
            self._idle.discard(agent)
        if not self._running:
            return False
        if not await self._is_idle():
            return True
        if not self._waiting():
            await self._remind(members)
        return stay or not await self._is_idle()

    async def _remind(self, members: Sequence[Member]) -> None:
        """Tell the first agent, once a task, that all agents are idle: it may have forgotten to end the
        task."""
        first = next((each for each in members if each.spawned and not each.parent), None)
        if first is not None and first.spawned is not None and first.id in self._idle and len(members) > 1:
            await self._notify(first.id, self._texts("society.all_rest"), first.spawned.seq)

    async def _update_member(self, member: Member) -> None:
        """Start the session of a new agent, and end that of one that has ended."""
        if member.ended is None:
            if member.id not in self._running and member.id not in self._failed:
                await asyncio.to_thread(self._workspace.members.ensure_registered, member)
                self._running[member.id] = asyncio.create_task(self._run_agent(member))
            return
        if member.id in self._ended:
            return
        self._ended[member.id] = member.ended
        if member.id not in self._running and await asyncio.to_thread(self._has_open_session, member):
            self._running[member.id] = asyncio.create_task(self._run_agent(member))
        if member.id in self._sessions:
            self._sessions[member.id].end_agent(member.ended)
        ended = member.ended
        if ended.tool == TERMINATE and ended.path == member.id and ended.actor != member.parent:
            reason = ended.message or "-"
            await self._tell_parent(member, "society.was_ended", ended.seq, by=ended.actor, reason=reason)

    def _has_open_session(self, member: Member) -> bool:
        """Whether an ended agent has a session that has not ended."""
        return any(head.status not in ENDED for head in self._workspace.sessions.list(member.id))

    async def _run_agent(self, member: Member) -> None:
        try:
            async with self._session(member) as session:
                self._sessions[member.id] = session
                session.on_waiting = self._changed.set
                unsubscribe = self._workspace.dispatcher.subscribe(
                    (member.id, session.path), partial(self._stop_command, member.id)
                )
                try:
                    if member.id in self._ended:
                        session.end_agent(self._ended[member.id])
                    await self._run_session(member, session)
                finally:
                    unsubscribe()
        except JournalError:
            raise
        except Exception as error:  # noqa: BLE001 - an agent may break in any way
            # The others go on without this one, and the agent that made it is told.
            _log.exception("%s could not go on", member.id)
            self._failed.add(member.id)
            await self._tell_parent(member, "society.broke", problem=f"{type(error).__name__}: {error}")
        finally:
            self._sessions.pop(member.id, None)
            self._changed.set()

    def _stop_command(self, agent: str, row: Row) -> None:
        """Stop the command of an agent whose session is ended by ``row``, so that nobody waits for it."""
        if row.tool == CANCEL:
            self._workspace.commands.stop(agent)

    async def _run_session(self, member: Member, session: Session) -> None:
        """Run the turns of an agent until it has ended, and between them wait for messages."""
        reported = -1
        while True:
            state = await session.run()
            if member.id in self._ended:
                return
            if state.status == "cancelled":
                # A person ended the session, and with it the agent.
                await self._end(member, self._texts("society.session_ended"))
                return
            if await asyncio.to_thread(self._workspace.members.has_ended, member.id):
                return
            if state.error is not None and state.error.code == LimitReached.code:
                await self._end(member, state.error.message)
                return
            if state.status == "error" and state.step_count != reported:
                reported = state.step_count
                await self._report_error(member, state)
            self._idle.add(member.id)
            self._changed.set()
            await session.wait_for_control()
            self._idle.discard(member.id)

    @asynccontextmanager
    async def _session(self, member: Member) -> AsyncIterator[Session]:
        """The agent's session: the one that it has, resumed, or its first."""
        sessions = self._workspace.sessions
        agent = await asyncio.to_thread(self._agent, member)
        known = await asyncio.to_thread(self._session_id, member)
        if known is not None:
            async with sessions.resume(member.id, known, agent, self._config) as session:
                yield session
            return
        text = await asyncio.to_thread(self._workspace.members.instructions_of, member)
        first = [UserMessage(content=text, author=member.spawned.actor)] if member.spawned else []
        async with sessions.begin(
            member.id,
            agent,
            self._config,
            messages=first,
            metadata={"task": member.task},
        ) as session:
            yield session

    def _session_id(self, member: Member) -> str | None:
        """The id of the session that the agent has for this task, None if it has none yet."""
        heads = self._workspace.sessions.list(member.id)
        if not heads:
            return None
        state = self._workspace.sessions.state(member.id, heads[-1].id)
        return heads[-1].id if state.metadata.get("task") == member.task else None

    def _agent(self, member: Member) -> ChatAgent:
        toolbox = self._workspace.tools(member.id)
        return ChatAgent(
            agent_tools(toolbox, toolsets=TOOLSETS),
            model_runtime=self._models(member),
            system=build_system_prompt(member, self._config.language),
            asks=self._asks,
            live=BufferTools(toolbox),
            language=self._config.language,
        )

    async def _is_idle(self) -> bool:
        """Whether no agent has anything to do, or has a message that it has not received."""
        if not self._none_runs():
            return False
        for session in list(self._sessions.values()):
            if await self._workspace.sessions.has_controls(session):
                return False
        # An agent that has received something meanwhile is running again.
        return self._none_runs() and not self._changed.is_set()

    def _none_runs(self) -> bool:
        return self._idle | self._waiting() == self._running.keys()

    def _waiting(self) -> set[str]:
        """The agents that wait for a person."""
        return {each for each, session in self._sessions.items() if session.state.status in _WAITING}

    async def _end(self, member: Member, reason: str) -> None:
        # Somebody may have ended it meanwhile.
        with suppress(AgentEnded):
            await asyncio.to_thread(self._workspace.members.terminate, SYSTEM, member.id, reason)

    async def _report_error(self, member: Member, state: AgentState) -> None:
        problem = state.error.message if state.error else ""
        await self._tell_parent(member, "society.failed", problem=problem)

    async def _tell_parent(self, member: Member, text: str, about: int | None = None, **values: str) -> None:
        if member.parent not in self._ended:
            await self._notify(member.parent or USER, self._texts(text, agent=member.id, **values), about)

    async def _notify(self, to: str, text: str, about: int | None = None) -> None:
        await asyncio.to_thread(self._workspace.members.notify, self._task.id, to, text, about)

    async def _stop(self) -> None:
        """Stop the sessions where they are; they can be resumed."""
        for agent in self._running:
            await asyncio.to_thread(self._workspace.commands.stop, agent)
        for work in self._running.values():
            work.cancel()
        if self._running:
            await asyncio.wait(self._running.values())
