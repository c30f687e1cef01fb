"""Runs the agents of a task, each in its own session, until the task has ended.

Any process can create, message and end agents with rows. A society is notified of new rows, and updates its
sessions. If its process dies, the next process continues from the rows.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from importlib.resources import files
from string import Template
from threading import Event
from typing import TYPE_CHECKING, Final

from watchroom.errors import AgentEnded, JournalError
from watchroom.features.calls.agent_tools import BufferTools, agent_tools
from watchroom.features.checks.rows import DoneClaim
from watchroom.features.sessions.rules import task_address
from watchroom.features.sessions.runtime import (
    AgentState,
    ChatAgent,
    LimitReached,
    Limits,
    ModelRuntime,
    RuntimeConfig,
    Session,
    UserMessage,
)
from watchroom.features.sessions.runtime.threads import call_soon_threadsafe, run_in_thread
from watchroom.features.tasks.rows import Task, TaskLimits
from watchroom.features.tasks.rules import Member
from watchroom.kernel.call_context import CallContext
from watchroom.model import CANCEL, ENDED, SYSTEM, TERMINATE, USER, Row
from watchroom.texts import Language, catalogue

if TYPE_CHECKING:
    from watchroom.workspace import Workspace

ROLES: Final = ("root", "architect", "programmer")
"""The roles with their own prompt. Other agents have only their instructions."""
TOOLSETS: Final = ("file", "agent", "buffer")
"""The toolsets of a task's agents. Other toolsets are left out, because each tool costs tokens in every
turn."""

_CHECK_SECONDS: Final = 20.0
"""Seconds that a check has to end when its agent goes on."""
_WAITING: Final = frozenset({"waiting_for_human_input", "paused", "parked"})
_log = logging.getLogger("watchroom")


class Society:
    """The agents of a workspace that work on tasks.

    - ``models``: returns the model of an agent.
    - ``language``: the language of prompts and messages, default the workspace's.
    - ``asks``: whether agents can ask people and wait for an answer, default False.
    - ``ask_timeout``: timeout for an answer in seconds, default no limit.

        society = Society(workspace, lambda member: model)
        task = society.submit_requirement("Build a calculator.", "/srv/calculator", by="human:dana")
        task = await society.run(task.id)
    """

    def __init__(
        self,
        workspace: Workspace,
        models: Callable[[Member], ModelRuntime],
        *,
        language: Language | None = None,
        asks: bool = False,
        ask_timeout: float | None = None,
    ) -> None:
        self._workspace = workspace
        self._models = models
        self._language = language
        self._asks = asks
        self._ask_timeout = ask_timeout

    def submit_requirement(
        self,
        text: str,
        workspace_path: str | os.PathLike[str] | None = None,
        *,
        by: str,
        limits: TaskLimits = TaskLimits(),  # noqa: B008  # immutable
        model: str = "",
    ) -> Task:
        """Submit a task and create its first agent, which starts with `run`. Return the task.

        - ``text``: the requirement.
        - ``workspace_path``: the folder to work in.
        - ``by``: the person, ``human:NAME``.
        - ``limits``, ``model``: recorded with the task.

        Raise the errors of `Tasks.submit`.
        """
        task = self._workspace.tasks.submit(by, text, workspace_path, limits, model)
        self._workspace.members.start(task)
        return task

    async def run(self, task: str, *, stay: bool = True) -> Task:
        """Run the agents of the task with the id ``task`` until it has ended. Return the task.

        If ``stay`` is False, this also returns when no agent has anything to do, for example because all wait
        for people. Raise `TaskNotFound`, and `TaskInUse` if its agents are already running in any process.
        """
        with self._workspace.tasks.claim(task):
            return await self._run(task, stay=stay)

    async def _run(self, task: str, *, stay: bool) -> Task:
        found = await asyncio.to_thread(self._workspace.tasks.find, task)
        if found.status == "open":
            await asyncio.to_thread(self._workspace.members.start, found)
        limits = Limits(steps=found.limits.steps)
        language = self._language or self._workspace.config.language
        config = RuntimeConfig(limits=limits, language=language, ask_timeout=self._ask_timeout)
        runner = _TaskRunner(self._workspace, found, self._models, config, asks=self._asks)
        await runner.run(stay=stay)
        return await asyncio.to_thread(self._workspace.tasks.find, task)


class _TaskRunner:
    """Runs the agents of one task on one event loop.

    - ``workspace``, ``task``: the task.
    - ``models``: returns the model of an agent.
    - ``config``: the configuration of agents, and the language of prompts and messages.
    - ``asks``: whether agents can ask people and wait for an answer.
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
        """Run until the task and all agents have ended. If ``stay`` is False, stop when no agent has anything
        to do."""
        loop = asyncio.get_running_loop()
        address = task_address(self._task.id)
        unsubscribe = self._workspace.background.subscribe(
            (address,), lambda _: call_soon_threadsafe(loop, self._changed.set)
        )
        try:
            while await self._update(stay=stay):
                await self._changed.wait()
        finally:
            unsubscribe()
            await self._stop()

    async def _update(self, *, stay: bool) -> bool:
        """Start and end sessions according to the rows. Return whether there is anything left to wait
        for."""
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
        """Notify the first agent once that all agents are idle, because it may have forgotten to end the
        task."""
        first = next((each for each in members if each.spawned and not each.parent), None)
        if first is not None and first.spawned is not None and first.id in self._idle and len(members) > 1:
            await self._notify(first.id, self._texts("society.all_rest"), first.spawned.seq)

    async def _update_member(self, member: Member) -> None:
        """Start the session of a new agent, and end the session of an ended agent."""
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
        """Return whether an ended agent has an unfinished session."""
        return any(head.status not in ENDED for head in self._workspace.sessions.list(member.id))

    async def _run_agent(self, member: Member) -> None:
        try:
            async with self._session(member) as session:
                self._sessions[member.id] = session
                session.on_waiting = self._changed.set
                unsubscribe = self._workspace.background.subscribe(
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
        except Exception as error:  # noqa: BLE001 - an agent can fail in any way
            # The others go on without this one, and its parent is notified.
            _log.exception("%s has failed", member.id)
            self._failed.add(member.id)
            await self._tell_parent(member, "society.broke", problem=f"{type(error).__name__}: {error}")
        finally:
            self._sessions.pop(member.id, None)
            self._changed.set()

    def _stop_command(self, agent: str, row: Row) -> None:
        """Stop the running command of ``agent`` if ``row`` cancels its session, because no agent waits for
        the result."""
        if row.tool == CANCEL:
            self._workspace.commands.stop(agent)

    async def _run_session(self, member: Member, session: Session) -> None:
        """Run the turns of an agent until it has ended. Wait for messages between them."""
        reported = -1
        while True:
            state = await session.run()
            if member.id in self._ended:
                return
            if state.status == "cancelled":
                # A person has cancelled the session, so the agent ends with it.
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
            if state.status == "done":
                await self._check(member, session)
            self._idle.add(member.id)
            self._changed.set()
            await session.wait_for_control()
            self._idle.discard(member.id)

    async def _check(self, member: Member, session: Session) -> None:
        """Check the agent's work. A failure becomes the agent's next message.

        A message or an instruction ends the check, because the agent continues.
        """
        if not self._workspace.config.checks:
            return
        heads = await asyncio.to_thread(self._workspace.session_zone.newest, session.path)
        claim = DoneClaim(member.id, session.path, heads.seq if heads is not None else 0, stays=True)
        stopping = Event()
        checking = asyncio.ensure_future(run_in_thread(self._workspace.checks.run, claim, stopping))
        called = asyncio.ensure_future(session.wait_for_control())
        try:
            await asyncio.wait({checking, called}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            called.cancel()
            stopping.set()
            await asyncio.wait({checking}, timeout=_CHECK_SECONDS)
        if checking.done():
            checking.result()

    @asynccontextmanager
    async def _session(self, member: Member) -> AsyncIterator[Session]:
        """Resume the agent's session, or begin its first one."""
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
        """Return the id of the agent's session for this task, None if it has none yet."""
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
        """Return whether no agent has anything to do or an undelivered message."""
        if not self._none_runs():
            return False
        for session in list(self._sessions.values()):
            if await self._workspace.sessions.has_controls(session):
                return False
        # An agent that has received a message in the meantime is running again.
        return self._none_runs() and not self._changed.is_set()

    def _none_runs(self) -> bool:
        return self._idle | self._waiting() == self._running.keys()

    def _waiting(self) -> set[str]:
        """Return the agents that wait for a person."""
        return {each for each, session in self._sessions.items() if session.state.status in _WAITING}

    async def _end(self, member: Member, reason: str) -> None:
        # The agent may have been ended in the meantime.
        with suppress(AgentEnded):
            await asyncio.to_thread(self._workspace.members.terminate, CallContext(SYSTEM), member.id, reason)

    async def _report_error(self, member: Member, state: AgentState) -> None:
        problem = state.error.message if state.error else ""
        await self._tell_parent(member, "society.failed", problem=problem)

    async def _tell_parent(self, member: Member, text: str, about: int | None = None, **values: str) -> None:
        if member.parent not in self._ended:
            await self._notify(member.parent or USER, self._texts(text, agent=member.id, **values), about)

    async def _notify(self, to: str, text: str, about: int | None = None) -> None:
        await asyncio.to_thread(self._workspace.members.notify, self._task.id, to, text, about)

    async def _stop(self) -> None:
        """Stop the sessions. They can be resumed."""
        for agent in self._running:
            await asyncio.to_thread(self._workspace.commands.stop, agent)
        for work in self._running.values():
            work.cancel()
        if self._running:
            await asyncio.wait(self._running.values())


def build_system_prompt(member: Member, language: Language) -> str:
    """Return the system prompt of ``member``: the part for all agents, then the part for its role.

    The texts are in the folder ``prompts``, by language and role.
    """
    values = {
        "agent": member.id,
        "role": member.role,
        "task": member.task,
        "parent": member.parent or USER,
    }
    common = Template(_read("common", language)).substitute(values)
    has_own = member.role in ROLES and (member.role != "root" or not member.parent)
    return f"{common}\n{_read(member.role, language)}" if has_own else common


def _read(name: str, language: Language) -> str:
    return (files("watchroom.agents.society") / "prompts" / language / f"{name}.md").read_text(
        encoding="utf-8"
    )
