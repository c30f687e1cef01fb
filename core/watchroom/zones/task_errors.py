"""What can be refused to the agents of a task."""

from __future__ import annotations

from watchroom.errors import DeniedError, PermissionDenied, WatchroomError


class NotInTask(DeniedError):
    """The agent works on no task. Values: agent."""

    code = "not_in_task"


class AgentEnded(WatchroomError):
    """The agent has ended, or its task has: it does nothing more, and hears nothing. Values: agent."""

    code = "agent_ended"


class AgentNotOwned(PermissionDenied):
    """An agent ends what it made, and no other; a task is ended by its first agent. Values: agent."""

    texts = "not_yours"


class TaskNotOwned(PermissionDenied):
    """An agent ends its own task, and no other one. Values: task."""

    texts = "not_your_task"


class TaskInUse(WatchroomError):
    """Somebody else lets the agents of the task work. Values: task."""

    code = "task_taken"


class OtherMachine(WatchroomError):
    """The task's files are on another machine. Values: task, machine."""

    code = "other_machine"


class AgentLimitExceeded(DeniedError):
    """A task may have no more agents, or none deeper. Values: limit (depth, agents), most."""

    code = "society_limit"
