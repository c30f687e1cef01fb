"""Scenarios: the agents and their steps. docs/scenarios.md describes their files.

Names in a scenario are checked by validators of its fields, so that pydantic reports the place of an unknown
name. The known names are in the context of the validation (`Scenario.names`). Without a context, names are
not checked.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    ValidationInfo,
    field_validator,
    model_validator,
)

from watchroom.agents.simulation.template import FILTERS, PLACEHOLDER, placeholders
from watchroom.features.calls.tool_registry import all_tools
from watchroom.features.config.rows import Agent, Layer
from watchroom.features.sessions.runtime import ASK_PERSON
from watchroom.texts import Language

_MAX_FILE_BYTES: Final = 1_000_000
"""Maximum bytes of a file beside a scenario. Larger files are ignored."""

Seconds = Annotated[float, Field(ge=0, le=86_400)]
_ACTIONS: Final = ("call", "play", "wait", "hear", "choose", "set", "stop")
"""The action of a step is one of these fields."""
READ_ONLY: Final = frozenset(
    "me role layer supervisor others other team suffix folder n now opening text file number item".split()  # noqa: SIM905
)
"""The built-in values, which a scenario cannot set."""

GIVEN: Final = READ_ONLY | {"message", "problem", "who", "said"}
_BUFFER_TOOL: Final = re.compile(
    r".+_(replace|replace_selection|append|discard_selection|flush|refresh|diff|accept_source)"
)


def _check_name(name: str) -> str:
    if name in READ_ONLY:
        raise ValueError(f"{name!r} is the name of a built-in value; choose another name")
    return name


def _check_tool(name: str, info: ValidationInfo) -> str:
    if info.context and name and not _is_dynamic(name):
        tool = all_tools().get(name)
        if tool is None or not tool.is_for(human=False):
            raise ValueError(_unknown("tool", name, [*all_tools(), ASK_PERSON]))
    return name


def _check_placeholders(value: object, info: ValidationInfo) -> object:
    if info.context:
        problems = [problem for each in placeholders(value) for problem in _problems(each, info.context)]
        if problems:
            raise ValueError("; ".join(problems))
    return value


def named(kind: str) -> AfterValidator:
    """Return the validator of names. ``kind``: a key of the validation's context. Empty names pass."""

    def check(name: str, info: ValidationInfo) -> str:
        if info.context and name and name not in info.context[kind]:
            raise ValueError(_unknown(kind, name, info.context[kind]))
        return name

    return AfterValidator(check)


Name = Annotated[str, AfterValidator(_check_name)]
"""The name of a value set by a step."""

RoutineName = Annotated[str, named("routine")]
AgentName = Annotated[str, named("agent")]
ToolName = Annotated[str, AfterValidator(_check_tool)]
Text = Annotated[str, AfterValidator(_check_placeholders)]
Phrases = Annotated[str | tuple[str, ...], AfterValidator(_check_placeholders)]
"""A text, or several texts from which one is chosen at random."""

Value = Annotated[JsonValue, AfterValidator(_check_placeholders)]


def check_arguments(tool: str, given: Mapping[str, object]) -> None:
    """Raise ValueError if ``given`` are not valid arguments of ``tool``, unless the tool's name has
    placeholders."""
    known = None if _is_dynamic(tool) else all_tools().get(tool)
    if known is None:
        return
    fields = {each.alias or name: each for name, each in known.params.model_fields.items()}
    missing = [name for name, each in fields.items() if each.is_required() and name not in given]
    problems = [f"{tool} needs {', '.join(missing)}"] if missing else []
    problems += [_unknown("argument", name, fields) for name in given if name not in fields]
    if problems:
        raise ValueError("; ".join(problems))


def _is_dynamic(tool: str) -> bool:
    """Return whether the tool is known only at run time, or is not in the toolbox."""
    return bool(PLACEHOLDER.search(tool) or _BUFFER_TOOL.fullmatch(tool)) or tool == ASK_PERSON


def _problems(expression: str, names: Mapping[str, Collection[str]]) -> Iterator[str]:
    path, *filters = expression.split("|")
    root, *fields = path.strip().split(".")
    name = ".".join(fields)
    if root not in names["value"]:
        yield _unknown("value", root, names["value"])
    elif root in ("text", "file") and name not in names[root]:
        yield _unknown(root, name, names[root])
    elif root == "number" and not _is_range(fields):
        yield "write a random number as ${number.LOWEST.HIGHEST}"
    for each in filters:
        yield from _filter_problems(*each.partition(":")[::2])


def _filter_problems(name: str, argument: str) -> Iterator[str]:
    if name != "pick" and name not in FILTERS:
        yield _unknown("filter", name, ["pick", *FILTERS])
    elif name in ("cut", "plus") and not re.fullmatch(r"-?\d{1,9}", argument):
        yield f"{name} needs a number"
    elif name == "match":
        try:
            if re.compile(argument).groups != 1:
                yield "match needs a regular expression with one group"
        except re.error as error:
            yield f"match: {error}"


def _is_range(fields: Sequence[str]) -> bool:
    """Return whether ``fields`` are two whole numbers, the lower one first."""
    return len(fields) == 2 and all(map(str.isdecimal, fields)) and int(fields[0]) <= int(fields[1])


def _unknown(kind: str, name: str, known: Collection[str]) -> str:
    close = get_close_matches(name, known, 1)
    return f"there is no {kind} {name!r}" + (f"; did you mean {close[0]!r}?" if close else "")


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


def at_least_one(problem: str) -> AfterValidator:
    """Return the validator of a sequence that cannot be empty. ``problem``: the text of its error."""

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
    """Waits for a version.

    - ``zone``, ``path``, ``version``: the file or document, and its minimum version.
    - ``most``: timeout, in seconds at speed 1.
    """

    zone: Literal["private", "handoff", "collab", "board", "realtime", "file"] = "collab"
    path: Text
    version: int = Field(1, ge=1)
    most: Seconds = 60.0


class Step(_Table):
    """One step of a routine.

    It has exactly one of ``call``, ``play``, ``wait``, ``hear``, ``choose``, ``set`` and ``stop``, or only a
    ``pause``. The other fields are conditions, repetitions and reactions.
    """

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


class Limit(_Table):
    """The limits of a session: steps and tokens. 0: no limit."""

    steps: Annotated[int, Field(ge=0)] = 0
    tokens: Annotated[int, Field(ge=0)] = 0


class SessionPlan(_Table):
    """The steps of an agent in one session: a table ``routine`` of a scenario.

    - ``task``: the first message.
    - ``steps``: the steps, at least one.
    - ``done``: the last answer.
    - ``approve``: tools whose calls wait for a person's approval.
    - ``limit``: the limits of the session.
    - ``pace``: overrides the pace of the `Actor`.
    """

    task: Phrases = ()
    steps: Annotated[tuple[Step, ...], at_least_one("a routine has at least one step")]
    done: Phrases = ()
    approve: tuple[str, ...] = ()
    limit: Limit = Limit()
    pace: tuple[Seconds, Seconds] | None = None


class Actor(_Table):
    """An agent.

    - ``first``: routines that it plays once, in order.
    - ``then``: routines with weights. After ``first``, it repeatedly chooses a routine at random.
    - ``pace``: the range of seconds before each call, at speed 1.
    """

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
            raise ValueError(f"{supervisor!r} is not listed above this agent")
        return supervisor


class RequestPlan(_Table):
    """A routine that asks a person.

    - ``play``: the routine.
    - ``by``: the agents that can play it. A free agent is chosen.
    - ``after``: seconds until the first time. Afterwards, it takes turns with the other requests, at the
      interval ``request_every`` of the scenario.
    """

    play: RoutineName
    by: tuple[AgentName, ...]
    after: Seconds = 0.0


class Change(_Table):
    """Variants of a passage.

    - ``options``: the variants. A variant found in a text is replaced by the next.
    - ``messages``: the description of each variant.
    """

    options: tuple[str, ...] = Field(min_length=2)
    messages: tuple[str, ...]

    @model_validator(mode="after")
    def _has_a_message_each(self) -> Change:
        if len(self.options) != len(self.messages):
            raise ValueError(f"{len(self.options)} options need as many messages, not {len(self.messages)}")
        return self


class TaskPlan(_Table):
    """The task of the team. It has a folder in which agents run commands."""

    text: str


class Translation(_Table):
    """Replacements of texts, changes and the task in another language."""

    texts: Mapping[str, Phrases] = {}
    changes: Mapping[str, tuple[Change, ...]] = {}
    task: TaskPlan | None = None


class Scenario(_Table):
    """The content of a scenario file."""

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
    routines: Mapping[str, SessionPlan] = Field(alias="routine")
    texts: Mapping[str, Phrases] = {}
    changes: Mapping[str, tuple[Change, ...]] = {}
    zh: Translation = Translation()
    source: str = Field("", exclude=True)

    def names(self) -> Mapping[str, Collection[str]]:
        """Return the known names by kind: the context of the validation.

        ``above ID``: the agents that can supervise the agent ``ID``.
        """
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
        """Return the texts by name, in ``language`` if translated."""
        return {**self.texts, **self.zh.texts} if language == "zh" else self.texts

    def changes_in(self, language: Language) -> Mapping[str, tuple[Change, ...]]:
        """Return the changes by name, in ``language`` if translated."""
        return {**self.changes, **self.zh.changes} if language == "zh" else self.changes

    def task_in(self, language: Language) -> TaskPlan | None:
        """Return the task, in ``language`` if translated; None if the team has none."""
        return (self.zh.task if language == "zh" else None) or self.task

    def calls_in(self, routine: str) -> frozenset[str]:
        """Return the tools that ``routine`` can call, directly or through the routines that it plays."""
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
        """Return the texts in the folder ``files`` beside the scenario by name, without ``.txt``."""
        return _file_texts(os.path.join(os.path.dirname(self.source), self.files)) if self.files else {}

    def actor_of(self, agent: str) -> Actor | None:
        """Return the actor of ``agent``. A copy has the actor of its original (``coder-2`` has the actor of
        ``coder``)."""
        name = re.sub(r"-\d{1,6}$", "", agent)
        found = [each for each in self.agents if each.id in (agent, name)]
        return max(found, key=lambda each: len(each.id), default=None)

    def roster(self, count: int | None = None) -> list[Agent]:
        """Return a team of ``count`` agents, default all listed agents.

        For a larger team, numbered copies follow, without copies of the top layer. Raise ValueError if
        ``count`` is below ``at_least``.
        """
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
        if each.stat().st_size <= _MAX_FILE_BYTES
    }
