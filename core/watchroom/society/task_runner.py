"""The agents of one task at work: one session each, begun, ended and brought back as the rows say."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Final

from watchroom.errors import JournalError
from watchroom.model import CANCEL, ENDED, SYSTEM, TERMINATE, USER, Row
from watchroom.rules.addresses import task_address
from watchroom.rules.members import Member
from watchroom.runtime import (
    AgentState,
    ChatAgent,
    LimitReached,
    Limits,
    ModelRuntime,
    RuntimeConfig,
    Session,
    UserMessage,
)
from watchroom.runtime.threads import call_soon_threadsafe
from watchroom.society.prompt import system_prompt
from watchroom.society.workplace import Workplace
from watchroom.texts import Language, catalogue
from watchroom.toolbox.agent_tools import agent_tools
from watchroom.toolbox.buffer_tools import BufferTools
from watchroom.zones import Task
from watchroom.zones.task_errors import AgentEnded

TOOLSETS: Final = ("file", "agent", "buffer")
"""What the agents of a task may call: each tool costs a model tokens with each turn."""


_WAITING: Final = frozenset({"waiting_for_human_input", "paused"})
_log = logging.getLogger("watchroom")


class Team:
    """Belongs to the event loop that it works on."""

    def __init__(
        self,
        workplace: Workplace,
        task: Task,
        models: Callable[[Member], ModelRuntime],
        *,
        language: Language,
        asks: bool,
        ask_timeout: float | None,
    ) -> None:
        self._workplace = workplace
        self._task = task
        self._models = models
        self._language: Language = language
        self._asks = asks
        self._config = RuntimeConfig(
            limits=Limits(steps=task.limits.steps), language=language, ask_timeout=ask_timeout
        )
        self._texts = catalogue(language)
        self._at_work: dict[str, asyncio.Task[None]] = {}
        self._sessions: dict[str, Session] = {}
        self._over: dict[str, Row] = {}
        self._resting: set[str] = set()
        self._aside: set[str] = set()
        self._changed = asyncio.Event()

    async def work(self, *, stay: bool) -> None:
        """Until the task has ended and all agents have; without ``stay``, until none has anything to do."""
        loop = asyncio.get_running_loop()
        address = task_address(self._task.id)
        deaf = self._workplace.dispatcher.subscribe(
            (address,), lambda _: call_soon_threadsafe(loop, self._changed.set)
        )
        try:
            while await self._goes_on(stay=stay):
                await self._changed.wait()
        finally:
            deaf()
            await self._leave()

    async def _goes_on(self, *, stay: bool) -> bool:
        """Bring the sessions up to the rows; whether there is anything left to wait for."""
        self._changed.clear()
        members = await asyncio.to_thread(self._workplace.members.of_task, self._task.id)
        for member in members:
            await self._follow(member)
        for agent in [each for each, work in self._at_work.items() if work.done()]:
            self._at_work.pop(agent).result()
            self._resting.discard(agent)
        if not self._at_work:
            return False
        if not await self._are_idle():
            return True
        if not self._waiting():
            await self._remind(members)
        return stay or not await self._are_idle()

    async def _remind(self, members: Sequence[Member]) -> None:
        """Tell the first agent that all rest, once a task: it may have forgotten to end it."""
        first = next((each for each in members if each.spawned and not each.parent), None)
        if first is not None and first.spawned is not None and first.id in self._resting and len(members) > 1:
            await self._tell(first.id, self._texts("society.all_rest"), first.spawned.seq)

    async def _follow(self, member: Member) -> None:
        """Let an agent begin that is new, and end one that has ended."""
        if member.ended is None:
            if member.id not in self._at_work and member.id not in self._aside:
                await asyncio.to_thread(self._workplace.members.ensure_registered, member)
                self._at_work[member.id] = asyncio.create_task(self._live(member))
            return
        if member.id in self._over:
            return
        self._over[member.id] = member.ended
        if member.id not in self._at_work and await asyncio.to_thread(self._left_behind, member):
            self._at_work[member.id] = asyncio.create_task(self._live(member))
        if member.id in self._sessions:
            self._sessions[member.id].end_agent(member.ended)
        await asyncio.to_thread(self._workplace.commands.stop, member.id)
        ended = member.ended
        if ended.tool == TERMINATE and ended.path == member.id and ended.actor != member.parent:
            reason = ended.message or "-"
            await self._tell_parent(member, "society.was_ended", ended.seq, by=ended.actor, reason=reason)

    def _left_behind(self, member: Member) -> bool:
        """Whether an ended agent has a session that does not know yet."""
        return any(head.status not in ENDED for head in self._workplace.sessions.list(member.id))

    async def _live(self, member: Member) -> None:
        try:
            async with self._session(member) as session:
                self._sessions[member.id] = session
                session.on_waiting = self._changed.set
                deaf = self._workplace.dispatcher.subscribe(
                    (member.id, session.path), partial(self._stop_its_command, member.id)
                )
                try:
                    if member.id in self._over:
                        session.end_agent(self._over[member.id])
                    await self._run(member, session)
                finally:
                    deaf()
        except JournalError:
            raise
        except Exception as error:  # noqa: BLE001 - an agent may break in any way
            # Whatever it is, the others go on without this one, and its maker knows.
            _log.exception("%s could not go on", member.id)
            self._aside.add(member.id)
            await self._tell_parent(member, "society.broke", problem=f"{type(error).__name__}: {error}")
        finally:
            self._sessions.pop(member.id, None)
            self._changed.set()

    def _stop_its_command(self, agent: str, word: Row) -> None:
        """Whoever ends a session need not wait for the command that it runs."""
        if word.tool == CANCEL:
            self._workplace.commands.stop(agent)

    async def _run(self, member: Member, session: Session) -> None:
        """Until its agent has ended: its turns, and between them the wait for somebody's word."""
        told = -1
        while True:
            state = await session.run()
            if member.id in self._over:
                return
            if state.status == "cancelled":
                await self._was_cancelled(member)
                return
            if await asyncio.to_thread(self._workplace.members.has_ended, member.id):
                return
            if state.error is not None and state.error.code == LimitReached.code:
                await self._end(member, state.error.message)
                return
            if state.status == "error" and state.step_count != told:
                told = state.step_count
                await self._failed(member, state)
            self._resting.add(member.id)
            self._changed.set()
            await session.wait_for_control()
            self._resting.discard(member.id)

    @asynccontextmanager
    async def _session(self, member: Member) -> AsyncIterator[Session]:
        """The agent's session: the one it has, or its first."""
        sessions = self._workplace.sessions
        agent = await asyncio.to_thread(self._agent, member)
        begun = await asyncio.to_thread(self._begun, member)
        if begun is not None:
            async with sessions.resume(member.id, begun, agent, self._config) as session:
                yield session
            return
        said = await asyncio.to_thread(self._workplace.members.instructions_of, member)
        first = [UserMessage(content=said, author=member.spawned.actor)] if member.spawned else []
        async with sessions.begin(
            member.id,
            agent,
            self._config,
            messages=first,
            metadata={"task": member.task},
        ) as session:
            yield session

    def _begun(self, member: Member) -> str | None:
        """The session that the agent has for this task, None if it has none yet."""
        heads = self._workplace.sessions.list(member.id)
        if not heads:
            return None
        state = self._workplace.sessions.state(member.id, heads[-1].id)
        return heads[-1].id if state.metadata.get("task") == member.task else None

    def _agent(self, member: Member) -> ChatAgent:
        toolbox = self._workplace.tools(member.id)
        return ChatAgent(
            agent_tools(toolbox, toolsets=TOOLSETS),
            model_runtime=self._models(member),
            system=system_prompt(member, self._language),
            asks=self._asks,
            live=BufferTools(toolbox),
            language=self._language,
        )

    async def _are_idle(self) -> bool:
        """Whether none has anything to do, and nothing was said to any that it has not heard."""
        if not self._none_works():
            return False
        for session in list(self._sessions.values()):
            if await self._workplace.sessions.has_controls(session):
                return False
        # Who has heard something meanwhile is at work again.
        return self._none_works() and not self._changed.is_set()

    def _none_works(self) -> bool:
        return self._resting | self._waiting() == self._at_work.keys()

    def _waiting(self) -> set[str]:
        """Those who wait for a person."""
        return {each for each, session in self._sessions.items() if session.state.status in _WAITING}

    async def _was_cancelled(self, member: Member) -> None:
        """A person ended the session, and with it the agent."""
        await self._end(member, self._texts("society.session_ended"))

    async def _end(self, member: Member, reason: str) -> None:
        # Somebody may have ended it meanwhile.
        with suppress(AgentEnded):
            await asyncio.to_thread(self._workplace.members.terminate, SYSTEM, member.id, reason)

    async def _failed(self, member: Member, state: AgentState) -> None:
        problem = state.error.message if state.error else ""
        await self._tell_parent(member, "society.failed", problem=problem)

    async def _tell_parent(self, member: Member, text: str, about: int | None = None, **values: str) -> None:
        if member.parent not in self._over:
            await self._tell(member.parent or USER, self._texts(text, agent=member.id, **values), about)

    async def _tell(self, to: str, text: str, about: int | None = None) -> None:
        await asyncio.to_thread(self._workplace.members.notify, self._task.id, to, text, about)

    async def _leave(self) -> None:
        """Let go of the sessions where they are: they can be taken up again."""
        for agent in self._at_work:
            await asyncio.to_thread(self._workplace.commands.stop, agent)
        for work in self._at_work.values():
            work.cancel()
        if self._at_work:
            await asyncio.wait(self._at_work.values())
