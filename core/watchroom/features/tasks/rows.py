"""The rows of tasks: their zones, tools and content, and the rows that spawn and end agents.

| zone | path | version 1 | version 2 | notes |
|---|---|---|---|---|
| `TASK` | ``TASK`` | the task begins | it ends | |
| `AGENT` | ``AGENT`` | the agent is spawned | it is terminated | messages to it |
| `COMMAND` | ``TASK/COMMAND`` | the command begins | it ends | its output |
| `FILE` | ``TASK/PATH`` | each version of a file | | readings, files left out |
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, TypeAlias

from watchroom.features.config.rows import LAYERS, Agent
from watchroom.kernel.rules.details import get_int, get_object, get_text
from watchroom.model import SPAWN, TERMINATE, Row, parse_object

TASK: Final = "task"
AGENT: Final = "agent"
COMMAND: Final = "command"
FILE: Final = "file"

SUBMIT: Final = "submit_requirement"
RUN: Final = "run_command"
END: Final = "end_command"
UNRECORDED: Final = "unrecorded"
"""The field of a command's last row with the code of the error that prevented the recording of its
changes."""

TaskStatus: TypeAlias = Literal["open", "done", "failed", "cancelled"]


class TaskLimits(NamedTuple):
    """The limits for the agents of a task.

    - ``depth``: the maximum number of layers below the first agent, default 4.
    - ``agents``: the maximum number of agents at a time, default 12.
    - ``steps``: the maximum number of steps of each agent, default 300.
    """

    depth: int = 4
    agents: int = 12
    steps: int = 300


class Task(NamedTuple):
    """A task.

    - ``text``: the requirement.
    - ``folder``: the absolute path of its folder, empty if it has none.
    - ``by``: the actor that submitted it.
    - ``created``: nanoseconds since the epoch, UTC.
    - ``model``: the model of its agents, empty if it must not be shown.
    - ``checkout``, ``machine``: the id of the checkout and the name of the machine with the folder. Both are
      empty if the journal has one machine only.
    """

    id: str
    text: str
    folder: str
    by: str
    created: int
    status: TaskStatus
    limits: TaskLimits = TaskLimits()
    model: str = ""
    checkout: str = ""
    machine: str = ""


def parse_task(row: Row, content: str) -> Task | None:
    """Return the open task that began with ``row``, None if the ``content`` of the row is damaged."""
    record = parse_object(content)
    if record is None or not isinstance(record.get("requirement"), str):
        return None
    limits = get_object(record, "limits")
    given = {name: limit for name in TaskLimits._fields if (limit := get_int(limits, name)) is not None}
    return Task(
        row.path,
        get_text(record, "requirement"),
        get_text(record, "workspacePath"),
        row.actor,
        row.time,
        "open",
        TaskLimits(**given),
        get_text(record, "model"),
        get_text(record, "checkout"),
        get_text(record, "machine"),
    )


def is_spawn(row: Row) -> bool:
    """Return whether ``row`` spawned an agent for a task."""
    return row.zone == AGENT and row.version == 1 and row.tool == SPAWN and "task" in row.detail


def is_termination(row: Row) -> bool:
    """Return whether ``row`` ended an agent, and all agents that it had spawned."""
    return row.zone == AGENT and row.version is not None and row.tool == TERMINATE


def spawned_agent(row: Row) -> Agent:
    """Return the agent that ``row`` spawned, for its registration.

    Fields that are missing or have another type are empty. The default layer is the bottom layer.
    """
    detail = row.detail
    layer = detail.get("layer")
    return Agent(
        row.path,
        get_text(detail, "role"),
        layer if layer in LAYERS else "bottom",
        get_text(detail, "parent"),
        get_text(detail, "task"),
    )
