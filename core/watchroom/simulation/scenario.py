"""Scenarios: who works, and what they do step by step. docs/scenarios.md explains their files."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from watchroom.rules.config import Agent, Layer
from watchroom.simulation.references import (
    GIVEN,
    AgentName,
    Name,
    Phrases,
    RoutineName,
    Text,
    ToolName,
    Value,
    check_arguments,
    named,
)
from watchroom.simulation.template import PLACEHOLDER
from watchroom.texts import Language

_LARGEST_FILE: Final = 1_000_000
"""Bytes of a file that a scenario may have beside it; larger ones are not there."""

Seconds = Annotated[float, Field(ge=0, le=86_400)]


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


def at_least_one(problem: str) -> AfterValidator:
    """The validator of a sequence that may not be empty; else there is this ``problem``."""

    def check(given: tuple[_Table, ...]) -> tuple[_Table, ...]:
        if not given:
            raise ValueError(problem)
        return given

    return AfterValidator(check)


def _check_team_size(given: int, info: ValidationInfo) -> int:
    listed = len(info.context["agent"]) if info.context else given
    if given > listed:
        raise ValueError(f"more than the agents listed ({listed})")
    return given


class WaitFor(_Table):
    """What a step waits for: a ``version`` of what is at ``path`` in ``zone``, for ``most`` seconds at
    speed 1."""

    zone: Literal["private", "handoff", "collab", "board", "realtime", "file"] = "collab"
    path: Text
    version: int = Field(1, ge=1)
    most: Seconds = 60.0


class Step(_Table):
    """One step of a routine: exactly one of ``call``, ``play``, ``wait``, ``hear``, ``choose``, ``set`` and
    ``stop``, or a ``pause`` alone; the other fields say when, how often and what then."""

    call: ToolName = ""
    args: Mapping[str, Value] = Field(default={}, validate_default=True)
    say: Phrases = ()
    result: Name = Field("", alias="as")
    on_error: Literal["stop", "continue"] | Mapping[str, RoutineName] = "stop"
    retry: Name = ""
    tries: int = Field(3, ge=0, le=20)
    again_on: tuple[str, ...] = ()
    play: RoutineName = ""
    given: Mapping[Name, Value] = Field(default={}, alias="with")
    each: Text = ""
    wait: WaitFor | None = None
    hear: tuple[Text, ...] = ()
    choose: Annotated[str, named("change")] = ""
    among: Text = Field("", alias="in")
    set: Mapping[Name, Value] = {}
    stop: bool = False
    when: Text = ""
    unless: Text = ""
    chance: float = Field(1.0, ge=0, le=1)
    repeat: int | tuple[int, int] = 1
    pause: tuple[Seconds, Seconds] | None = None

    @field_validator("args")
    @classmethod
    def _are_of_the_tool(cls, args: Mapping[str, Value], info: ValidationInfo) -> Mapping[str, Value]:
        if info.context and info.data.get("call"):
            check_arguments(info.data["call"], args)
        return args

    @model_validator(mode="after")
    def _has_one_action(self) -> Step:
        actions = [name for name in _ACTIONS if getattr(self, name)]
        if len(actions) > 1 or not (actions or self.pause):
            given = " and ".join(actions) or "none"
            raise ValueError(f"a step has one of {', '.join(_ACTIONS)}, or a pause; this one has {given}")
        if self.choose and not (self.among and self.result):
            raise ValueError("choose needs a text to choose for (in) and a name for what is chosen (as)")
        fewest, most = (self.repeat, self.repeat) if isinstance(self.repeat, int) else self.repeat
        if not 0 <= fewest <= most <= 1000:
            raise ValueError("repeat is a number from 0 to 1000, or two, the lower one first")
        return self


_ACTIONS: Final = ("call", "play", "wait", "hear", "choose", "set", "stop")


class Limit(_Table):
    """When a session of a routine is stopped: after so many steps or tokens. 0: never."""

    steps: Annotated[int, Field(ge=0)] = 0
    tokens: Annotated[int, Field(ge=0)] = 0


class Routine(_Table):
    """What an agent does in one session: told ``task``, it takes the ``steps`` and closes with ``done``.
    Calls of the tools in ``approve`` wait for a person's approval. ``pace`` goes before that of its agent."""

    task: Phrases = ()
    steps: Annotated[tuple[Step, ...], at_least_one("a routine has at least one step")]
    done: Phrases = ()
    approve: tuple[str, ...] = ()
    limit: Limit = Limit()
    pace: tuple[Seconds, Seconds] | None = None


class Actor(_Table):
    """An agent: its ``first`` routines are played once, in order, then those in ``then`` by weight, for ever.
    ``pace``: between so many seconds pass before each call, at speed 1."""

    id: str
    role: str = ""
    layer: Layer = "bottom"
    supervisor: str = ""
    first: tuple[RoutineName, ...] = ()
    then: Mapping[RoutineName, Annotated[float, Field(gt=0)]] = {}
    pace: tuple[Seconds, Seconds] = (0.8, 2.5)

    @field_validator("supervisor")
    @classmethod
    def _is_above(cls, supervisor: str, info: ValidationInfo) -> str:
        if info.context and supervisor not in info.context[f"above {info.data['id']}"]:
            raise ValueError(f"{supervisor!r} is no agent above this one")
        return supervisor


class RequestPlan(_Table):
    """A routine in which a person is asked: played by one of the agents in ``by`` who is free, the first time
    ``after`` so many seconds, then in turn with the others ``every`` so many."""

    play: RoutineName
    by: tuple[AgentName, ...]
    after: Seconds = 0.0


class Change(_Table):
    """Variants of a passage: what of ``options`` a text has is changed to the next one; ``messages`` say what
    each of them changes."""

    options: tuple[str, ...] = Field(min_length=2)
    messages: tuple[str, ...]

    @model_validator(mode="after")
    def _has_a_message_each(self) -> Change:
        if len(self.options) != len(self.messages):
            raise ValueError(f"{len(self.options)} options need as many messages, not {len(self.messages)}")
        return self


class TaskPlan(_Table):
    """The task that the team works on, in a folder of its own, in which agents run commands."""

    text: str


class Translation(_Table):
    """What replaces texts, changes and the task in another language."""

    texts: Mapping[str, Phrases] = {}
    changes: Mapping[str, tuple[Change, ...]] = {}
    task: TaskPlan | None = None


class Scenario(_Table):
    """A whole scenario, as its file says."""

    name: str
    about: str = ""
    at_least: Annotated[int, AfterValidator(_check_team_size)] = Field(1, ge=1)
    files: str = ""
    second_process: AgentName = ""
    on_message: RoutineName = ""
    answer_within: Annotated[float, Field(gt=0, le=604_800)] = 900.0
    open_requests: int = Field(3, ge=1)
    request_every: Annotated[float, Field(gt=0)] = 60.0
    task: TaskPlan | None = None
    agents: Annotated[tuple[Actor, ...], at_least_one("a scenario has at least one agent")] = Field(
        alias="agent"
    )
    requests: tuple[RequestPlan, ...] = Field(default=(), alias="request")
    routines: Mapping[str, Routine] = Field(alias="routine")
    texts: Mapping[str, Phrases] = {}
    changes: Mapping[str, tuple[Change, ...]] = {}
    zh: Translation = Translation()
    source: str = Field("", exclude=True)

    def names(self) -> Mapping[str, Collection[str]]:
        """What may be named in the scenario, by kind: the context in which its names are validated. ``above
        ID`` are the agents that may supervise that one."""
        ids = [each.id for each in self.agents]
        steps = [step for routine in self.routines.values() for step in routine.steps]
        bound = {name for step in steps for name in (*step.given, *step.set, step.result, step.retry) if name}
        return {
            "routine": self.routines,
            "agent": ids,
            "change": self.changes,
            "text": self.texts,
            "file": self.file_texts(),
            "value": GIVEN | {PLACEHOLDER.sub("", name) for name in bound},
            **{f"above {each}": ("", *ids[:at]) for at, each in enumerate(ids)},
        }

    def texts_in(self, language: Language) -> Mapping[str, Phrases]:
        """The texts by name, in ``language`` as far as they are there."""
        return {**self.texts, **self.zh.texts} if language == "zh" else self.texts

    def changes_in(self, language: Language) -> Mapping[str, tuple[Change, ...]]:
        """The changes by name, in ``language`` as far as they are there."""
        return {**self.changes, **self.zh.changes} if language == "zh" else self.changes

    def task_in(self, language: Language) -> TaskPlan | None:
        """The task, in ``language`` if it is there; None where the team has none."""
        return (self.zh.task if language == "zh" else None) or self.task

    def calls_in(self, routine: str) -> frozenset[str]:
        """The tools that the ``routine`` of that name calls, itself or in those that it plays."""
        known: set[str] = set()
        open_names, calls = [routine], set[str]()
        while open_names:
            name = open_names.pop()
            if name in known:
                continue
            known.add(name)
            for step in self.routines[name].steps:
                calls.add(step.call)
                open_names += [step.play] if step.play else []
                open_names += step.on_error.values() if isinstance(step.on_error, Mapping) else []
        return frozenset(calls - {""})

    def file_texts(self) -> Mapping[str, str]:
        """The texts in the folder ``files`` beside the scenario, by name, without a trailing ``.txt``."""
        return _file_texts(os.path.join(os.path.dirname(self.source), self.files)) if self.files else {}

    def actor_of(self, agent: str) -> Actor | None:
        """Whose part ``agent`` has: its own, or that of the one it is a copy of (``coder-2``: ``coder``)."""
        name = re.sub(r"-\d{1,6}$", "", agent)
        found = [each for each in self.agents if each.id in (agent, name)]
        return max(found, key=lambda each: len(each.id), default=None)

    def roster(self, count: int | None = None) -> list[Agent]:
        """A team of ``count`` agents (all that are listed, where it is None). Copies follow those listed,
        with a number; none is one of the top layer. Raises ValueError where ``count`` is below
        ``at_least``."""
        wanted = len(self.agents) if count is None else count
        if wanted < self.at_least:
            ids = ", ".join(each.id for each in self.agents[: self.at_least])
            raise ValueError(f"a team has at least {self.at_least} agents ({ids}), not {wanted}")
        made = [Agent(each.id, each.role or each.id, each.layer, each.supervisor) for each in self.agents]
        below = [agent for agent in made if agent.layer != "top"] or made
        copied = {agent.id for agent in below}
        while len(made) < wanted:
            number, place = divmod(len(made) - len(self.agents), len(below))
            agent, suffix = below[place], f"-{number + 2}"
            boss = agent.supervisor + suffix if agent.supervisor in copied else agent.supervisor
            role = agent.role if agent.layer == "bottom" else agent.role + suffix
            made.append(Agent(agent.id + suffix, role, agent.layer, boss))
        return made[:wanted]


@cache
def _file_texts(folder: str) -> Mapping[str, str]:
    if not os.path.isdir(folder):
        return {}
    paths = [each for each in sorted(Path(folder).iterdir()) if each.is_file()]
    return {
        each.name.removesuffix(".txt"): each.read_text(encoding="utf-8", errors="replace")
        for each in paths
        if each.stat().st_size <= _LARGEST_FILE
    }
