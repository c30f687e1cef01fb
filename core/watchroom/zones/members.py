"""The agents of a task: who made whom, what they say to each other, and how they end (TASKS-society).

An agent's life is its path in the zone: version 1 when it is made, version 2 when it is ended. With an agent
end all that it made, and with a task all of its agents. That takes one row, so it happens whole or not at
all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Final, NamedTuple, TypeAlias

from watchroom import validation
from watchroom.errors import InvalidAgentId, UnknownAgent, VersionConflict
from watchroom.journal import NoteKey
from watchroom.model import (
    HUMAN_PREFIX,
    MESSAGE,
    SPAWN,
    SYSTEM,
    TERMINATE,
    USER,
    Json,
    Note,
    Row,
    Write,
    Zone,
)
from watchroom.registry import CONFIG_HEAD, HEADS, REGISTER, SETTINGS_HEAD
from watchroom.rules.config import Agent, Config, Layer, find_role_collision
from watchroom.rules.members import (
    Member,
    find_first,
    ids_above,
    is_spawn,
    is_termination,
    list_members,
    spawned_agent,
)
from watchroom.zones.store import Seen, Store
from watchroom.zones.task_errors import AgentEnded, AgentLimitExceeded, AgentNotOwned, NotInTask, TaskNotOwned
from watchroom.zones.tasks import Task, Tasks, TaskStatus

ZONE: Final = "agent"
ROOT: Final = "root"
"""The role of a task's first agent, which the requirement is given to."""
_LONGEST_LINE: Final = 200
_LONGEST_MESSAGE: Final = 500
"""So much of a message stands in its row, for lists; all of it is the row's content."""
_LONGEST_NAME: Final = 40
_NAMELESS: Final = "agent"
_Heads: TypeAlias = Mapping[tuple[Zone, str], Row | None]
_BELOW: Final[dict[Layer, Layer]] = {"top": "mid", "mid": "bottom", "bottom": "bottom"}


class _TaskRows(NamedTuple):
    """What says who the members of a task are."""

    task: str
    registered: tuple[Agent, ...]
    spawned: dict[str, Row]
    ended: dict[str, Row]
    end: Row | None

    def members(self) -> list[Member]:
        return list_members(*self)


class _Caller(NamedTuple):
    """Who calls a tool: ``member`` of these ``members``, None where ``agent`` works on no task."""

    members: Members
    agent: str
    member: Member | None


_caller: Final[ContextVar[_Caller | None]] = ContextVar("watchroom_caller", default=None)
"""Whom a tool call of this thread is made by."""


class Members:
    """The agents of tasks, in ``store``; ``tasks`` are theirs, and ``register`` adds agents to the config.
    May be used from any thread."""

    def __init__(self, store: Store, tasks: Tasks, register: Callable[[Iterable[Agent]], None]) -> None:
        self._store = store
        self._tasks = tasks
        self._register = register
        self._spawned: dict[str, Row] = {}
        """The rows that made agents, by their ids: these never change."""
        self._asked: dict[str, set[tuple[Zone, str]]] = {}
        """By agent, of which paths the heads told last time what it is."""

    @contextmanager
    def hold(self, agent: str, seen: NoteKey | None = None) -> Iterator[None]:
        """Within, on this thread, who is registered and what ``agent`` is, which calls a tool, is asked for
        once; with the same question what `Store.last_seen` asks of ``seen`` (zone, path, actor, and the tool
        that reads), if that is given. Raises `AgentEnded` if it worked on a task and does no more."""
        if seen is not None:
            self._store.commits.flush()
        with self._store.registry.hold():
            found, known = self._look_up(agent, seen=seen)
            if found is not None and found.ended is not None:
                raise AgentEnded(agent=agent)
            token = _caller.set(_Caller(self, agent, found))
            try:
                with self._store.hold_seen(known):
                    yield
            finally:
                _caller.reset(token)

    def start(self, task: Task) -> Member:
        """Make the first agent of ``task``, whose instructions are what was asked for; once, however often it
        is asked. Raises `TaskNotFound`."""
        agent = Agent("", ROOT, "top", "", task.id)
        first = self._create(task.by, agent, ROOT, task.text, find_first)
        self.ensure_registered(first)
        return first

    def spawn(self, actor: str, role: str, instructions: str, name: str = "") -> Member:
        """Make an agent with ``role`` beneath ``actor``, for the same task, one layer down. ``instructions``
        are what it is told first; ``name`` is its id if that is still free, else the id begins so. Raises
        `NotInTask`, `AgentEnded`, `InvalidAgentId`, `InvalidRole`, `NotText`, `SocietyLimit`."""
        parent = self.find_active(actor)
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

        agent = Agent("", role, _BELOW[parent.layer], actor, parent.task)
        made = self._create(actor, agent, name or _slugify(role), instructions, check)
        self.ensure_registered(made)
        return made

    def ensure_registered(self, member: Member) -> None:
        """Register ``member`` if it is not: a process may have died after it was spawned."""
        if member.id not in self._store.registry.current().agents:
            self._register([Agent(member.id, member.role, member.layer, member.parent, member.task)])

    def send(self, actor: str, to: str, text: str) -> Row:
        """Send ``text`` from ``actor`` to the agent ``to`` of the same task, or to the people (``user``).
        Returns the message's row. Raises `NotInTask`, `AgentEnded` (of the receiver, too), `UnknownAgent`,
        `NotText`."""
        sender = self.find_active(actor)
        validation.encode_text(text)
        if to != USER:
            receiver = self._find(to, sender.task) if to != actor else None
            if receiver is None:
                members = self.of_task(sender.task)
                known = [USER, *(each.id for each in members if each.ended is None and each.id != actor)]
                raise UnknownAgent(agent=validation.escape_unstorable(to, 100), known=", ".join(known))
            if receiver.ended is not None:
                raise AgentEnded(agent=to)
        return self._send(actor, to, text, {"task": sender.task})

    def notify(self, task: str, to: str, text: str, about: int | None = None) -> None:
        """Send ``text`` from Watchroom itself to the agent ``to`` of ``task``, or to the people (``user``):
        once of each row that it is ``about``."""
        if about is None:
            self._send(SYSTEM, to, text, {"task": task})
            return
        sent = self._store.journal.notes(ZONE, to, SYSTEM, MESSAGE, after=about)
        about_it: dict[str, Json] = {"task": task, "about": about}
        if not any(row.detail == about_it for row in sent):
            self._send(SYSTEM, to, text, about_it)

    def terminate(self, actor: str, agent: str, reason: str = "") -> list[Member]:
        """End ``agent`` and all that it spawned, for ``actor``, with a ``reason``. Returns those that this
        ended. An agent may end what it spawned, a person any: with the first one the task is cancelled.
        Raises `NotInTask`, `AgentEnded`, `UnknownAgent`, `NotYours`."""
        is_person = actor.startswith(HUMAN_PREFIX) or actor == SYSTEM
        task = self._find_task(agent) if is_person else self.find_active(actor).task
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
            self._tasks.end(actor, one.task, "cancelled", reason)
            end = self._tasks.end_row(one.task)
            return [each for each in self.of_task(one.task) if each.ended == end]
        head = self._store.journal.head(ZONE, agent)
        detail: dict[str, Json] = {"task": one.task}
        expected = (head.version or 0) if head else 0
        line = validation.extract_first_line(reason, _LONGEST_LINE)
        draft = Write(actor, TERMINATE, ZONE, agent, reason, line, expected, detail)
        row = self._store.write(draft).row
        if row.outcome != "ok":
            raise AgentEnded(agent=agent)
        return self.ended_with(row)

    def ended_with(self, row: Row) -> list[Member]:
        """The members that ``row`` ended."""
        return [each for each in self.of_task(str(row.detail["task"])) if each.ended == row]

    def end_task(self, actor: str, status: TaskStatus, report: str, task: str = "") -> Task:
        """End ``task`` with ``status`` and a ``report``, and all of its agents with it. Its first agent may
        (``actor``), and people, who name it. Raises `NotInTask`, `AgentEnded`, `NotYourTask`, `NotYours`,
        `TaskNotFound`."""
        if not actor.startswith(HUMAN_PREFIX):
            member = self.find_active(actor)
            if task not in ("", member.task):
                raise TaskNotOwned(task=validation.escape_unstorable(task, 100))
            first = find_first(self.of_task(member.task)) or member
            if member.parent or member.id != first.id:
                raise AgentNotOwned(agent=first.id)
            task = member.task
        return self._tasks.end(actor, task, status, report)

    def find_active(self, agent: str) -> Member:
        """The member that ``agent`` is. Raises `NotInTask`, and `AgentEnded` where it works no more."""
        caller = _caller.get()
        is_held = caller is not None and caller.members is self and caller.agent == agent
        found = caller.member if caller is not None and is_held else self._find(agent)
        if found is None:
            raise NotInTask(agent=agent)
        if found.ended is not None:
            raise AgentEnded(agent=agent)
        return found

    def has_ended(self, agent: str) -> bool:
        """Whether ``agent`` worked on a task and does no more. One question to the journal as a rule: every
        call of a tool asks."""
        found = self._find(agent)
        return found is not None and found.ended is not None

    def _find(self, agent: str, task: str = "") -> Member | None:
        """One agent of ``task`` (default: of its own), as `of_task` has it, at the cost of those above it."""
        return self._look_up(agent, task)[0]

    def _look_up(
        self, agent: str, task: str = "", *, seen: NoteKey | None = None
    ) -> tuple[Member | None, Seen | None]:
        """As `_find`, and what tells which version the actor of ``seen`` last saw of its path."""
        asked = self._asked.get(agent, {*HEADS, (ZONE, agent)})
        also = [] if seen is None else [seen]
        while True:
            found, notes = self._store.journal.heads_and_notes([*asked, *(key[:2] for key in also)], also)
            heads = dict(zip(asked, found, strict=False))
            known = None if seen is None else Seen(seen, found[-1], notes[0])
            config = self._store.registry.apply_heads(heads[CONFIG_HEAD], heads[SETTINGS_HEAD])
            chain, spawned, needed = self._ancestry(agent, task, config, heads)
            if needed <= asked:
                break
            asked = needed
        if not chain:
            return None, known
        self._asked[agent] = needed
        own = chain[0].task
        ended = {each.id: head for each in chain if (head := heads[ZONE, each.id]) and is_termination(head)}
        end = heads["task", own]
        members = list_members(own, chain, spawned, ended, end if end and end.version != 1 else None)
        return next((each for each in members if each.id == agent), None), known

    def _ancestry(
        self, agent: str, task: str, config: Config, heads: _Heads
    ) -> tuple[list[Agent], dict[str, Row], set[tuple[Zone, str]]]:
        """The agent and all above it in its task, as far as ``heads`` tell; the rows that spawned them; and
        the paths whose heads tell all."""
        chain: list[Agent] = []
        spawned: dict[str, Row] = {}
        needed = {*HEADS, (ZONE, agent)}
        while (ZONE, agent) in heads:
            row = self._spawn_row(agent, heads[ZONE, agent])
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
            needed |= {("task", task), (ZONE, agent)} if agent else {("task", task)}
            if not agent:
                break
        return chain, spawned, needed

    def of_task(self, task: str) -> list[Member]:
        """All agents that work on ``task`` or did, those that spawned others before these."""
        return self._rows_of(task)[0].members()

    def _rows_of(self, task: str, agent: str = "") -> tuple[_TaskRows, Row | None]:
        """What says who works on ``task``, and the newest row of ``agent``, whose ever it is."""
        journal = self._store.journal
        # The config first: who is registered in it has been spawned, and is among the open items then.
        config, settings, end, of_agent = journal.heads_of([*HEADS, ("task", task), (ZONE, agent)])
        heads = journal.open_items(ZONE, task)
        agents = self._store.registry.apply_heads(config, settings).agents.values()
        spawned = {head.path: row for head in heads if (row := self._spawn_row(head.path, head)) is not None}
        ended = {head.path: head for head in heads if is_termination(head)}
        ended_task = end if end and end.version != 1 else None
        return _TaskRows(task, tuple(agents), spawned, ended, ended_task), of_agent

    def instructions_of(self, member: Member) -> str:
        """What ``member`` was told when it was spawned, empty where nobody spawned it."""
        return self._store.content(member.spawned) if member.spawned else ""

    def _create(
        self,
        actor: str,
        agent: Agent,
        wanted: str,
        instructions: str,
        check: Callable[[Iterable[Member]], Member | None],
    ) -> Member:
        """A new agent, or the one that ``check`` finds in its place. Raises `InvalidRole`."""
        with self._store.journal.exclusive("members"):
            rows, of_wanted = self._rows_of(agent.task, wanted)
            known = check(rows.members())
            if known is not None:
                return known
            self._store.registry.check_role(agent)
            path = self._find_free_id(wanted, agent, of_wanted)
            detail: dict[str, Json] = {
                "task": agent.task,
                "parent": agent.supervisor,
                "role": agent.role,
                "layer": agent.layer,
            }
            line = validation.extract_first_line(instructions, _LONGEST_LINE)
            draft = Write(actor, SPAWN, ZONE, path, instructions, line, 0, detail)
            rows.spawned[path] = self._spawned[path] = self._write(draft, agent._replace(id=path))
        return next(each for each in rows.members() if each.id == path)

    def _write(self, draft: Write, agent: Agent) -> Row:
        """The row of ``draft``, which spawns ``agent``; in the same commit that is registered, unless others
        change the config just now."""
        made: list[Row] = []

        def write(text: str, expected: int) -> Row:
            registered = Write(SYSTEM, REGISTER, *CONFIG_HEAD, text, expected=expected)
            (spawned, _), (row, head) = self._store.write_all([draft, registered])
            made.append(spawned)
            if row.outcome == "conflict":
                raise VersionConflict(row, head, None, text)
            return row

        # `ensure_registered` comes afterwards.
        with suppress(VersionConflict):
            self._store.registry.add([agent], write)
        self._store.checkout.make_folders([agent.id])
        return made[0]

    def _find_free_id(self, wanted: str, agent: Agent, of_wanted: Row | None) -> str:
        """An id that nobody has or had, and that is no other agent's role, as near to ``wanted`` as there is;
        ``of_wanted`` is the newest row of who is called so."""
        known = self._store.registry.current().agents.values()
        registered = self._store.registry.ever_known()

        def is_taken(number: int) -> bool:
            found = _numbered_id(wanted, number)
            head = of_wanted if found == wanted else self._store.journal.head(ZONE, found)
            if found in registered or head is not None:
                return True
            return find_role_collision(agent._replace(id=found), known) is not None

        # Nobody's id is ever given up, so the numbers that are taken are mostly the first ones.
        low, high = 0, 1
        while is_taken(high):
            low, high = high, high * 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if is_taken(middle) else (low, middle)
        return _numbered_id(wanted, high)

    def _send(self, actor: str, to: str, text: str, detail: dict[str, Json]) -> Row:
        line = validation.extract_first_line(text, _LONGEST_MESSAGE)
        note = Note(actor, MESSAGE, ZONE, to, message=line, content=text, detail=detail)
        return self._store.commits.commit(note).row

    def _spawn_row(self, agent: str, head: Row | None) -> Row | None:
        """The row that made an agent whose newest row is ``head``; None where none did, or it is damaged:
        then its registration counts."""
        row = self._spawned.get(agent)
        if row is None and head is not None:
            row = head if head.version == 1 else self._store.journal.version(ZONE, agent, 1)
            if row is None or not is_spawn(row):
                return None
            self._spawned[agent] = row
        return row

    def _find_task(self, agent: str) -> str:
        """The task that an agent was made for; of one that nobody made, that of its registration."""
        spawned = self._spawn_row(agent, self._store.journal.head(ZONE, agent))
        if spawned is not None:
            return str(spawned.detail["task"])
        found = self._store.registry.current().agents.get(agent)
        return found.task if found else ""


def _numbered_id(wanted: str, number: int) -> str:
    """The id for the ``number``-th agent that is to be called so."""
    tail = f"-{number}" if number > 1 else ""
    return wanted[: validation.MAX_AGENT_ID - len(tail)] + tail


def _normalize_role(role: str) -> str:
    """A role in one line, of characters that can be seen."""
    return "".join(each for each in " ".join(role.split()) if each.isprintable()) or _NAMELESS


def _slugify(role: str) -> str:
    """An agent id for a role, as near as there is."""
    slug = re.sub("[^a-z0-9_-]+", "-", role.lower()).strip("-_")[:_LONGEST_NAME]
    try:
        return validation.check_agent_id(slug)
    except InvalidAgentId:
        return _NAMELESS
