"""`TaskProjection`: tasks, their members, messages and commands, derived from rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar, Final, NamedTuple

from watchroom.features.config.rows import Agent
from watchroom.features.sessions.rows import HANDED_OVER, messages_of, presence_of
from watchroom.features.tasks.rows import AGENT, COMMAND, TASK, is_spawn, is_termination
from watchroom.features.tasks.rules import Member, list_members
from watchroom.kernel.rules.details import get_count, get_int, get_text, task_end_status
from watchroom.model import MESSAGE, PRINTED, SEEN, USER, Row

_MAX_MESSAGES: Final = 500
"""Maximum number of messages that are kept, newest first."""
_MAX_COMMANDS: Final = 200
"""Maximum number of commands that are kept, newest first."""
_DELIVERED: Final = "message"
"""The kind of step by which a session receives a message."""
_MODEL_CALLED: Final = "call_llm"
"""The kind of step in which the model reads the messages."""


class TaskView(NamedTuple):
    """A task.

    - ``row``: its first row. ``row.message`` is the first line of the requirement.
    - ``ended``: the row that ended it, None if it is open.
    - ``members``: its agents, each after its parent.
    - ``is_lost``: the process that ran its agents is no longer alive, and no other process runs them.
    - ``is_present``: a process may be running its agents.
    """

    row: Row
    ended: Row | None
    members: tuple[Member, ...]
    is_lost: bool = False
    is_present: bool = True

    @property
    def id(self) -> str:
        return self.row.path

    @property
    def folder(self) -> str:
        """The absolute path of the task's folder, empty if it has none."""
        return get_text(self.row.detail, "folder")

    @property
    def status(self) -> str:
        """``open``, ``done``, ``failed`` or ``cancelled``."""
        return "open" if self.ended is None else task_end_status(self.ended)


class MessageView(NamedTuple):
    """A message.

    - ``receiver``: an agent's id, or ``user``.
    - ``delivered``: the step that received it.
    - ``read``: the step in which the model read it. For a client, that is the same note as ``delivered``. For
      a message to people, it is the row that shows that a person saw it.
    """

    row: Row
    receiver: str
    task: str
    delivered: Row | None = None
    read: Row | None = None

    @property
    def sender(self) -> str:
        return self.row.actor


class CommandView(NamedTuple):
    """A command.

    - ``begun``: its first row.
    - ``printed``: the newest row of its output.
    - ``ended``: its last row, None while it runs.
    - ``is_lost``: the process that ran it is no longer alive.
    """

    begun: Row
    printed: Row | None = None
    ended: Row | None = None
    is_lost: bool = False

    @property
    def path(self) -> str:
        return self.begun.path

    @property
    def task(self) -> str:
        return self.path.partition("/")[0]

    @property
    def presence(self) -> str:
        """The presence lease of the process that runs the command, empty if its row has none."""
        return presence_of(self.begun)

    @property
    def exit_code(self) -> int | None:
        return get_int(self.ended.detail, "exit_code") if self.ended else None


class TaskProjection:
    """Tasks, messages and commands, built from rows in order. Unchanged items stay the same objects."""

    DERIVED: ClassVar[Mapping[str, object]] = {"_tasks": None, "_message_list": None, "_command_list": None}
    """Derived attributes, and their values before they are computed (see
    `watchroom.features.overview.fold_state`)."""

    def __init__(self) -> None:
        self._begun: dict[str, Row] = {}
        self._ended: dict[str, Row] = {}
        self._agents: dict[str, Agent] = {}
        self._spawned: dict[str, Row] = {}
        self._terminated: dict[str, Row] = {}
        self._messages: dict[int, MessageView] = {}
        self._unread: dict[str, list[int]] = {}
        self._commands: dict[str, CommandView] = {}
        self._lost: frozenset[str] = frozenset()
        self._tasks: tuple[TaskView, ...] | None = ()
        self._message_list: tuple[MessageView, ...] | None = ()
        self._command_list: tuple[CommandView, ...] | None = ()

    def register(self, agents: Iterable[Agent]) -> None:
        """Replace the registered agents by ``agents``."""
        self._agents = {agent.id: agent for agent in agents if agent.task}
        if self._begun:
            self._tasks = None

    def apply(self, row: Row) -> tuple[str, ...]:
        """Apply ``row``, which is not a step. Return the ids of the agents that it ended."""
        if row.outcome != "ok":
            return ()
        if row.zone == TASK and row.version is not None:
            return self._apply_to_task(row)
        if row.zone == COMMAND:
            self._apply_to_command(row)
        elif row.tool == SEEN and row.version is None and row.detail.get("need") == "message":
            self._mark_read_by_people(get_text(row.detail, "actor"), row)
        elif row.tool == MESSAGE:
            self._apply_message(row)
        elif row.zone == AGENT and row.version is not None:
            return self._apply_to_agent(row)
        return ()

    def apply_step(self, row: Row) -> None:
        """Apply ``row``, a step of a session or the output of a command."""
        if row.zone == COMMAND:
            known = self._commands.get(row.path)
            if known is not None and row.tool == PRINTED:
                self._commands[row.path] = known._replace(printed=row)
                self._command_list = None
        elif row.tool == _DELIVERED:
            message = self._messages.get(get_count(row.detail, "mail"))
            if message is not None:
                self._messages[message.row.seq] = message._replace(delivered=row)
                self._unread.setdefault(row.path, []).append(message.row.seq)
                self._message_list = None
        elif row.tool == HANDED_OVER:
            for number in messages_of(row):
                if number in self._messages:
                    self._messages[number] = self._messages[number]._replace(delivered=row, read=row)
                    self._message_list = None
        elif row.tool == _MODEL_CALLED and row.path in self._unread:
            for number in self._unread.pop(row.path):
                if number in self._messages:
                    self._messages[number] = self._messages[number]._replace(read=row)
            self._message_list = None

    def mark_lost_tasks(self, tasks: frozenset[str]) -> None:
        """Replace the lost tasks by the task ids ``tasks``."""
        if tasks != self._lost:
            self._lost, self._tasks = tasks, None

    def mark_lost_commands(self, commands: Iterable[str]) -> None:
        """Mark the commands at the paths ``commands`` as lost."""
        for path in commands:
            if path in self._commands:
                self._commands[path] = self._commands[path]._replace(is_lost=True)
                self._command_list = None

    def tasks(self) -> tuple[TaskView, ...]:
        """Return the tasks, newest first."""
        if self._tasks is None:
            self._tasks = tuple(
                TaskView(row, self._ended.get(task), self._members(task), is_lost, is_present=not is_lost)
                for task, row in reversed(self._begun.items())
                for is_lost in (task in self._lost,)
            )
        return self._tasks

    def messages(self) -> tuple[MessageView, ...]:
        """Return the messages, newest first."""
        if self._message_list is None:
            self._message_list = tuple(reversed(self._messages.values()))
        return self._message_list

    def commands(self) -> tuple[CommandView, ...]:
        """Return the commands, newest first."""
        if self._command_list is None:
            self._command_list = tuple(reversed(self._commands.values()))
        return self._command_list

    def _apply_to_task(self, row: Row) -> tuple[str, ...]:
        self._tasks = None
        if row.version == 1:
            self._begun[row.path] = row
            return ()
        if row.path in self._ended:
            return ()
        self._ended[row.path] = row
        return tuple(each.id for each in self._members(row.path) if each.ended == row)

    def _apply_to_agent(self, row: Row) -> tuple[str, ...]:
        self._tasks = None
        if is_spawn(row):
            self._spawned[row.path] = row
        if not is_termination(row):
            return ()
        self._terminated[row.path] = row
        members = self._members(get_text(row.detail, "task"))
        return tuple(each.id for each in members if each.ended == row)

    def _apply_message(self, row: Row) -> None:
        if row.zone == AGENT:
            receiver, task = row.path, get_text(row.detail, "task")
        else:
            receiver = row.path.partition("/")[0]
            task = self._agents[receiver].task if receiver in self._agents else ""
            self._mark_read_by_people(receiver, row)
        delivered = row if receiver == USER else None
        self._messages[row.seq] = MessageView(row, receiver, task, delivered)
        if len(self._messages) > _MAX_MESSAGES:
            del self._messages[next(iter(self._messages))]
        self._message_list = None

    def _mark_read_by_people(self, sender: str, row: Row) -> None:
        """Mark the messages of ``sender`` as read, because a person answered or marked a message as seen."""
        seen = get_count(row.detail, "row") if row.tool == SEEN else row.seq
        for number, message in self._messages.items():
            is_older = number <= seen
            if is_older and message.receiver == USER and message.sender == sender and message.read is None:
                self._messages[number] = message._replace(read=row)
                self._message_list = None

    def _apply_to_command(self, row: Row) -> None:
        known = self._commands.get(row.path)
        if row.version == 1:
            self._commands[row.path] = CommandView(row)
            if len(self._commands) > _MAX_COMMANDS:
                del self._commands[next(iter(self._commands))]
        elif known is not None and row.version is not None:
            self._commands[row.path] = known._replace(ended=row)
        self._command_list = None

    def _members(self, task: str) -> tuple[Member, ...]:
        end = self._ended.get(task)
        return tuple(list_members(task, self._agents.values(), self._spawned, self._terminated, end))
