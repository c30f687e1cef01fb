"""`Members`: the agents of tasks, which spawn each other, send messages, and end (TASKS-society).

An agent has a path: version 1 spawns it, version 2 ends it. The end of an agent also ends all agents that it
spawned, and the end of a task ends all of its agents. One row records this, so it is atomic.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final, NamedTuple, TypeAlias

from watchroom import validation
from watchroom.errors import (
    AgentEnded,
    AgentLimitExceeded,
    AgentNotOwned,
    InvalidAgentId,
    NotInTask,
    TaskNotOwned,
    UnknownAgent,
    VersionConflict,
)
from watchroom.features.config.registry import CONFIG_HEAD, HEADS, REGISTER, SETTINGS_HEAD
from watchroom.features.config.rows import Agent, Config, Layer, check_role, find_role_collision
from watchroom.features.config.store import Store
from watchroom.features.tasks.rows import (
    AGENT,
    TASK,
    Task,
    TaskStatus,
    is_spawn,
    is_termination,
    spawned_agent,
)
from watchroom.features.tasks.rules import Member, find_first, ids_above, list_members
from watchroom.features.tasks.service import Tasks
from watchroom.kernel.call_context import CallContext, Caller, Seen
from watchroom.kernel.journal import NoteKey
from watchroom.model import HUMAN_PREFIX, MESSAGE, SPAWN, SYSTEM, TERMINATE, USER, Json, Row, Write, Zone

_ROOT: Final = "root"
"""The role of a task's first agent, which receives the requirement."""
_MAX_LINE: Final = 200
"""Maximum characters of instructions and reasons in their rows, for lists."""
_MAX_MESSAGE: Final = 500
"""Maximum characters of a message in its row, for lists. The row's content has the whole message."""
_MAX_NAME: Final = 40
"""Maximum characters of an id that is made from a role."""
_NAMELESS: Final = "agent"
_Heads: TypeAlias = Mapping[tuple[Zone, str], Row | None]
_log = logging.getLogger("watchroom")
_BELOW: Final[dict[Layer, Layer]] = {"top": "mid", "mid": "bottom", "bottom": "bottom"}


class _TaskRows(NamedTuple):
    """The rows and the config that determine the members of a task."""

    task: str
    config: Config
    spawned: dict[str, Row]
    ended: dict[str, Row]
    end: Row | None

    def members(self) -> list[Member]:
        return list_members(self.task, self.config.agents.values(), self.spawned, self.ended, self.end)


class Members:
    """The agents of ``tasks``. May be used from any thread. ``register``: adds agents to the config."""

    def __init__(self, store: Store, tasks: Tasks, register: Callable[[Iterable[Agent]], None]) -> None:
        self._store = store
        self._tasks = tasks
        self._register = register
        self._spawned: dict[str, Row] = {}
        """The rows that spawned agents, by agent. They never change."""
        self._asked: dict[str, set[tuple[Zone, str]]] = {}
        """The paths whose heads were needed for the last call of each agent."""

    def identify(
        self, call: CallContext, seen: NoteKey | None = None, watched: Sequence[tuple[Zone, str]] = ()
    ) -> CallContext:
        """Return ``call`` with the data about its caller, found in one query.

        - ``seen``: zone, path, actor and reading tool of the file whose last seen version the call needs, or
          None.
        - ``watched``: the paths whose heads the call needs.

        Raise `AgentEnded` if the caller's work on its task has ended.
        """
        if seen is not None:
            self._store.commits.flush(call.actor)
        caller = self._look_up(call.actor, seen=seen, watched=watched)
        if caller.member is not None and caller.member.ended is not None:
            raise AgentEnded(agent=call.actor)
        return replace(call, caller=caller)

    def start(self, task: Task) -> Member:
        """Spawn the first agent of ``task``, with the requirement as its instructions. Return it. An existing
        first agent is not changed. Raise `TaskNotFound`."""
        agent = Agent("", _ROOT, "top", "", task.id)
        first = self._create(CallContext(task.by), agent, _ROOT, task.text, find_first)
        self.ensure_registered(first)
        return first

    def spawn(self, call: CallContext, role: str, instructions: str, name: str = "") -> Member:
        """Create an agent for the task of the caller, one layer below it.

        - ``role``: the purpose of the agent.
        - ``instructions``: its first message.
        - ``name``: its id, default: made from the role. A number is appended if the id is taken.

        Raise `NotInTask`, `AgentEnded`, `InvalidAgentId`, `InvalidRole`, `NotText`, `AgentLimitExceeded`.
        """
        parent = self.find_active(call)
        validation.encode_text(instructions)
        role = _normalize_role(role)
        validation.check_agent_id(name or _slugify(role))
        limits = self._tasks.limits_of(parent.task)

        def check(members: Iterable[Member]) -> Member | None:
            if parent.depth + 1 > limits.depth:
                raise AgentLimitExceeded(limit="depth", most=limits.depth)
            if sum(each.ended is None for each in members) >= limits.agents:
                raise AgentLimitExceeded(limit="agents", most=limits.agents)
            return None

        agent = Agent("", role, _BELOW[parent.layer], call.actor, parent.task)
        member = self._create(call, agent, name or _slugify(role), instructions, check)
        self.ensure_registered(member)
        return member

    def ensure_registered(self, member: Member) -> None:
        """Register ``member`` if it is not registered, because a process may have died after spawning it."""
        registry = self._store.registry
        if member.id not in registry.cached.agents and member.id not in registry.current().agents:
            self._register([Agent(member.id, member.role, member.layer, member.parent, member.task)])

    def send(self, call: CallContext, to: str, text: str) -> Row:
        """Send ``text`` to the agent ``to`` of the caller's task, or to the people (``user``).

        Return the message's row. Raise `NotInTask`, `AgentEnded` (also for the receiver), `UnknownAgent`,
        `NotText`.
        """
        sender = self.find_active(call)
        validation.encode_text(text)
        if to != USER:
            receiver = self._find(to, sender.task) if to != call.actor else None
            if receiver is None:
                members = self.of_task(sender.task)
                known = [USER, *(each.id for each in members if each.ended is None and each.id != call.actor)]
                raise UnknownAgent(agent=validation.escape_unstorable(to, 100), known=", ".join(known))
            if receiver.ended is not None:
                raise AgentEnded(agent=to)
        return self._send(call, to, text, {"task": sender.task})

    def notify(self, task: str, to: str, text: str, about: int | None = None) -> None:
        """Send ``text`` from Watchroom itself to the agent ``to`` of ``task``, or to the people (``user``).

        ``about``: the number of a row. Only one message about each row is sent.
        """
        if about is None:
            self._send(CallContext(SYSTEM), to, text, {"task": task})
            return
        sent = self._store.journal.notes(AGENT, to, SYSTEM, MESSAGE, after=about)
        about_it: dict[str, Json] = {"task": task, "about": about}
        if not any(row.detail == about_it for row in sent):
            self._send(CallContext(SYSTEM), to, text, about_it)

    def terminate(self, call: CallContext, agent: str, reason: str = "") -> list[Member]:
        """End ``agent`` and every agent that it spawned, for a ``reason``. Return the agents that this call
        ended.

        An agent can end agents that it spawned, a person any agent. Ending the first agent of a task cancels
        the task. Raise `NotInTask`, `AgentEnded`, `UnknownAgent`, `AgentNotOwned`.
        """
        actor = call.actor
        is_person = actor.startswith(HUMAN_PREFIX) or actor == SYSTEM
        task = self._find_task(agent) if is_person else self.find_active(call).task
        if not task and agent in self._store.registry.current().agents:
            raise NotInTask(agent=agent)
        members = self.of_task(task) if task else []
        one = next((each for each in members if each.id == agent), None)
        if one is None:
            known = ", ".join(each.id for each in members if each.ended is None)
            raise UnknownAgent(agent=validation.escape_unstorable(agent, 100), known=known or "-")
        if one.ended is not None:
            raise AgentEnded(agent=agent)
        if not is_person and (agent == actor or actor not in ids_above(one, members)):
            raise AgentNotOwned(agent=agent)
        if one.spawned and not one.parent:
            self._tasks.end(call, one.task, "cancelled", reason)
            end = self._tasks.end_row(one.task)
            return [each for each in self.of_task(one.task) if each.ended == end]
        head = self._store.journal.head(AGENT, agent)
        detail: dict[str, Json] = {"task": one.task}
        expected = (head.version or 0) if head else 0
        line = validation.extract_first_line(reason, _MAX_LINE)
        draft = call.with_tool(TERMINATE).write(AGENT, agent, reason, line, expected, detail)
        row = self._store.write(draft).row
        if row.outcome != "ok":
            raise AgentEnded(agent=agent)
        return self.ended_with(row)

    def ended_with(self, row: Row) -> list[Member]:
        """Return the members that ``row`` ended."""
        return [each for each in self.of_task(str(row.detail["task"])) if each.ended == row]

    def end_task(self, call: CallContext, status: TaskStatus, report: str, task: str = "") -> Task:
        """End ``task`` and all of its agents, with ``status`` and a ``report``.

        The task's first agent and people can do so. People must give the ``task``. Raise `NotInTask`,
        `AgentEnded`, `TaskNotOwned`, `AgentNotOwned`, `TaskNotFound`.
        """
        if not call.actor.startswith(HUMAN_PREFIX):
            member = self.find_active(call)
            if task not in ("", member.task):
                raise TaskNotOwned(task=validation.escape_unstorable(task, 100))
            first = find_first(self.of_task(member.task)) or member
            if member.parent or member.id != first.id:
                raise AgentNotOwned(agent=first.id)
            task = member.task
        return self._tasks.end(call, task, status, report)

    def find_active(self, call: CallContext) -> Member:
        """Return the caller as a member of its task. Raise `NotInTask`, and `AgentEnded` if its work has
        ended."""
        found = call.caller.member if call.caller is not None else self._find(call.actor)
        if found is None:
            raise NotInTask(agent=call.actor)
        if found.ended is not None:
            raise AgentEnded(agent=call.actor)
        return found

    def has_ended(self, agent: str) -> bool:
        """Return whether ``agent`` worked on a task and has ended. Usually takes one query, because every
        tool call asks."""
        found = self._find(agent)
        return found is not None and found.ended is not None

    def _find(self, agent: str, task: str = "") -> Member | None:
        """Return the member ``agent`` of ``task`` (default: its own task). Read only its rows and the rows of
        the agents above it."""
        return self._look_up(agent, task).member

    def _look_up(
        self,
        agent: str,
        task: str = "",
        *,
        seen: NoteKey | None = None,
        watched: Sequence[tuple[Zone, str]] = (),
    ) -> Caller:
        """Return the member as `_find` does, with the version that the actor of ``seen`` last saw, and the
        heads of ``watched``."""
        asked = self._asked.get(agent, {*HEADS, (AGENT, agent)})
        registry = self._store.registry
        while True:
            heads, known = self._find_heads([*asked, *watched], seen)
            found = [head for each in watched if (head := heads[each]) is not None]
            config = registry.apply_heads(heads[CONFIG_HEAD], heads[SETTINGS_HEAD])
            registered = config.agents.get(agent)
            if not task and heads[AGENT, agent] is None and (registered is None or not registered.task):
                return Caller(config, None, known, found)
            chain, spawned, needed = self._ancestry(agent, task, config, heads)
            if needed <= asked:
                break
            asked = needed
        if not chain:
            return Caller(config, None, known, found)
        self._asked[agent] = needed
        own = chain[0].task
        ended = {each.id: head for each in chain if (head := heads[AGENT, each.id]) and is_termination(head)}
        end = heads[TASK, own]
        members = list_members(own, chain, spawned, ended, end if end and end.version != 1 else None)
        member = next((each for each in members if each.id == agent), None)
        return Caller(config, member, known, found)

    def _find_heads(
        self, paths: Sequence[tuple[Zone, str]], seen: NoteKey | None
    ) -> tuple[_Heads, Seen | None]:
        """Return the heads of ``paths``, and the version that the actor of ``seen`` last saw."""
        journal = self._store.journal
        if seen is None:
            # Most calls need no note, and this query is cheaper.
            return dict(zip(paths, journal.heads_of(paths), strict=True)), None
        (*found, head), (note,) = journal.heads_and_notes([*paths, seen[:2]], [seen])
        return dict(zip(paths, found, strict=True)), Seen(seen, head, note)

    def _ancestry(
        self, agent: str, task: str, config: Config, heads: _Heads
    ) -> tuple[list[Agent], dict[str, Row], set[tuple[Zone, str]]]:
        """Return the ancestry of ``agent`` in its task.

        - the agent, its parent, and so on, as far as ``heads`` contains them
        - the rows that spawned them
        - the paths of all heads that this method needs
        """
        chain: list[Agent] = []
        spawned: dict[str, Row] = {}
        needed = {*HEADS, (AGENT, agent)}
        while (AGENT, agent) in heads:
            row = self._spawn_row(agent, heads[AGENT, agent])
            known = [spawned_agent(row)] if row else []
            if agent in config.agents:
                known.append(config.agents[agent])
            task = task or next((each.task for each in known), "")
            of_task = [each for each in known if task and each.task == task]
            if not of_task:
                break
            if row:
                spawned[agent] = row
            chain.append(of_task[-1])
            agent = chain[-1].supervisor
            needed |= {(TASK, task), (AGENT, agent)} if agent else {(TASK, task)}
            if not agent:
                break
        return chain, spawned, needed

    def of_task(self, task: str) -> list[Member]:
        """Return all agents that work or have worked on ``task``, each after its parent."""
        return self._rows_of(task)[0].members()

    def _rows_of(self, task: str, agent: str = "") -> tuple[_TaskRows, Row | None]:
        """Return the rows and config that determine the members of ``task``, and the newest row of ``agent``
        in any task."""
        journal = self._store.journal
        # Read the config first: every agent in it was spawned before, and is therefore among the open items.
        newest, settings, end, of_agent = journal.heads_of([*HEADS, (TASK, task), (AGENT, agent)])
        heads = journal.open_items(AGENT, task)
        config = self._store.registry.apply_heads(newest, settings)
        spawned = {head.path: row for head in heads if (row := self._spawn_row(head.path, head)) is not None}
        ended = {head.path: head for head in heads if is_termination(head)}
        ended_task = end if end and end.version != 1 else None
        return _TaskRows(task, config, spawned, ended, ended_task), of_agent

    def instructions_of(self, member: Member) -> str:
        """Return the instructions of ``member``, empty if a person registered it."""
        return self._store.content(member.spawned) if member.spawned else ""

    def _create(
        self,
        call: CallContext,
        agent: Agent,
        wanted: str,
        instructions: str,
        check: Callable[[Iterable[Member]], Member | None],
    ) -> Member:
        """Spawn an agent, unless ``check`` returns an existing one.

        - ``wanted``: its id, if that is free.
        - ``check``: called with the members of the task. It can raise an error.

        Return the member. Raise `InvalidRole`.
        """
        with self._store.journal.exclusive("members"):
            rows, of_wanted = self._rows_of(agent.task, wanted)
            known = check(rows.members())
            if known is not None:
                return known
            check_role(agent, rows.config)
            path = self._find_free_id(wanted, agent, rows.config, of_wanted)
            detail: dict[str, Json] = {
                "task": agent.task,
                "parent": agent.supervisor,
                "role": agent.role,
                "layer": agent.layer,
            }
            line = validation.extract_first_line(instructions, _MAX_LINE)
            draft = call.with_tool(SPAWN).write(AGENT, path, instructions, line, 0, detail)
            rows.spawned[path] = self._spawned[path] = self._write(draft, agent._replace(id=path))
        return next(each for each in rows.members() if each.id == path)

    def _write(self, draft: Write, agent: Agent) -> Row:
        """Commit ``draft``, which spawns ``agent``, and return its row. The same commit registers the agent,
        unless the config changes at the same time."""
        rows: list[Row] = []

        def write(text: str, expected: int) -> Row:
            registered = Write(SYSTEM, REGISTER, *CONFIG_HEAD, text, expected=expected)
            (spawned, _), (row, head) = self._store.write_all([draft, registered])
            rows.append(spawned)
            if row.outcome == "conflict":
                raise VersionConflict(row, head, None, text)
            return row

        # `ensure_registered` comes afterwards.
        with suppress(VersionConflict):
            self._store.registry.add([agent], write, is_current=True)
        try:
            self._store.checkout.make_folders([agent.id])
        except OSError:
            # The agent exists. After an error the caller would spawn another one.
            _log.exception("the folder of %s could not be made", agent.id)
        return rows[0]

    def _find_free_id(self, wanted: str, agent: Agent, config: Config, of_wanted: Row | None) -> str:
        """Return ``wanted`` if it was never used as an id or role, else ``wanted`` with the first free
        number.

        ``of_wanted``: the newest row of the agent ``wanted``.
        """
        used = self._store.registry.ever_known(is_current=True)
        numbers = [_number_of(each, wanted) for each in used]
        number = max(numbers, default=0) + 1 if wanted in used or of_wanted is not None else 1
        while True:
            found = _numbered_id(wanted, number)
            is_taken = found in used or (number > 1 and self._store.journal.head(AGENT, found) is not None)
            if not is_taken and find_role_collision(agent._replace(id=found), config.agents.values()) is None:
                return found
            number += 1

    def _send(self, call: CallContext, to: str, text: str, detail: dict[str, Json]) -> Row:
        line = validation.extract_first_line(text, _MAX_MESSAGE)
        note = call.with_tool(MESSAGE).note(AGENT, to, message=line, content=text, detail=detail)
        return self._store.commits.commit(note).row

    def _spawn_row(self, agent: str, head: Row | None) -> Row | None:
        """Return the row that spawned an agent. ``head``: the agent's newest row.

        None if there is none, or if it is damaged. Then the agent's registration counts.
        """
        row = self._spawned.get(agent)
        if row is None and head is not None:
            row = head if head.version == 1 else self._store.journal.version(AGENT, agent, 1)
            if row is None or not is_spawn(row):
                return None
            self._spawned[agent] = row
        return row

    def _find_task(self, agent: str) -> str:
        """Return the task that an agent was spawned for, else the task of its registration."""
        spawned = self._spawn_row(agent, self._store.journal.head(AGENT, agent))
        if spawned is not None:
            return str(spawned.detail["task"])
        found = self._store.registry.current().agents.get(agent)
        return found.task if found else ""


def _number_of(agent: str, wanted: str) -> int:
    """Return the number of ``agent`` among the agents called ``wanted``; 0 if it has another name."""
    base, _, number = agent.rpartition("-")
    if agent == wanted:
        return 1
    return int(number) if number.isdecimal() and len(number) < 10 and wanted.startswith(base) else 0


def _numbered_id(wanted: str, number: int) -> str:
    """Return the id of the agent with ``number`` among the agents called ``wanted``."""
    tail = f"-{number}" if number > 1 else ""
    return wanted[: validation.MAX_AGENT_ID - len(tail)] + tail


def _normalize_role(role: str) -> str:
    """Return ``role`` as one line, without invisible characters."""
    return "".join(each for each in " ".join(role.split()) if each.isprintable()) or _NAMELESS


def _slugify(role: str) -> str:
    """Return an agent id that resembles a role."""
    slug = re.sub("[^a-z0-9_-]+", "-", role.lower()).strip("-_")[:_MAX_NAME]
    try:
        return validation.check_agent_id(slug)
    except InvalidAgentId:
        return _NAMELESS
