"""Reads scenario files: what is wrong with one is said with its line."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from watchroom.rules.config import Agent
from watchroom.runtime import ASK_PERSON
from watchroom.simulation.errors import InvalidScenario
from watchroom.simulation.scenario import Scenario, Step
from watchroom.simulation.template import FILTERS, PLACEHOLDER, placeholders
from watchroom.simulation.toml_lines import Path as KeyPath
from watchroom.simulation.toml_lines import line_numbers
from watchroom.toolbox.tool_registry import all_tools

BUILT_IN: Final = Path(__file__).parent / "scenarios"
"""The folder of the scenarios that come with Watchroom."""

DEMO: Final = BUILT_IN / "software_team.toml"

_LARGEST: Final = 4_000_000
_READ_ONLY: Final = frozenset(
    "me role layer supervisor others other team suffix folder n now opening text file number item".split()  # noqa: SIM905
)
_GIVEN_VALUES: Final = _READ_ONLY | {"message", "problem", "who", "said"}
_BUFFER_TOOL: Final = re.compile(
    r".+_(replace|replace_selection|append|discard_selection|flush|refresh|diff|accept_source)"
)


def load(path: str | os.PathLike[str]) -> Scenario:
    """Read the scenario in the file at ``path``. Raises `InvalidScenario`, which names the line of each
    problem, and OSError where the file cannot be read."""
    name = os.path.abspath(path)
    with open(name, "rb") as file:
        raw = file.read(_LARGEST + 1)
    if len(raw) > _LARGEST:
        raise InvalidScenario(file=name, problems=f"line 1: the file has more than {_LARGEST:,} bytes")
    try:
        text = raw.decode()
        given = tomllib.loads(text)
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise InvalidScenario(file=name, problems=f"line {line}: not UTF-8") from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InvalidScenario(file=name, problems=_syntax_problem(error)) from error
    lines = line_numbers(text)
    try:
        scenario = Scenario.model_validate({**given, "source": name})
    except ValidationError as error:
        found = [_problem(each["loc"], each["msg"], lines) for each in error.errors()]
        raise InvalidScenario(file=name, problems=_listed(found, lines)) from error
    if problems := list(_Checker(scenario).problems()):
        raise InvalidScenario(file=name, problems=_listed(problems, lines))
    return scenario


@cache
def demo() -> Scenario:
    """The built-in scenario, read once: a small software team."""
    return load(DEMO)


def roster(count: int) -> list[Agent]:
    """A team of ``count`` agents of the built-in scenario. Raises ValueError where there are too few."""
    return demo().roster(count)


def _syntax_problem(error: Exception) -> str:
    said = str(error)
    match = re.search(r"\(at line (\d+), column (\d+)\)", said)
    if match is None:
        return f"the end of the file: {said.removesuffix(' (at end of document)')}"
    return f"line {match[1]}, column {match[2]}: {said[: match.start()].strip()}"


def _problem(where: Sequence[str | int], problem: str, lines: Mapping[KeyPath, int]) -> tuple[KeyPath, str]:
    """Where in the file a problem is that pydantic found, and what it is."""
    keys: KeyPath = ()
    for each in where:
        if (*keys, each) not in lines:
            break
        keys = (*keys, each)
    if problem == "Field required":
        return keys, f"{where[-1]!r} is missing"
    if problem == "Extra inputs are not permitted":
        return keys, "there is no such key"
    return keys, problem.removeprefix("Value error, ")


def _listed(problems: Sequence[tuple[KeyPath, str]], lines: Mapping[KeyPath, int]) -> str:
    found = []
    for keys, problem in problems:
        place = keys
        while place and place not in lines:
            place = place[:-1]
        found.append((lines.get(place, 1), f"{_dotted(keys)}: {problem}" if keys else problem))
    return "\n".join(f"line {line}: {said}" for line, said in sorted(dict.fromkeys(found)))


def _dotted(keys: KeyPath) -> str:
    parts = (f"[{each + 1}]" if isinstance(each, int) else f".{each}" for each in keys)
    return "".join(parts).removeprefix(".")


class _Checker:
    """Finds what a scenario names that is not there."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._ids = {each.id for each in scenario.agents}
        steps = [step for routine in scenario.routines.values() for step in routine.steps]
        bound = {name for step in steps for name in (*step.given, *step.set, step.result, step.retry) if name}
        self._names = _GIVEN_VALUES | {PLACEHOLDER.sub("", name) for name in bound}

    def problems(self) -> Iterator[tuple[KeyPath, str]]:
        scenario = self._scenario
        if not scenario.agents:
            yield ("agent",), "a scenario has at least one agent"
        for at, actor in enumerate(scenario.agents):
            for name in (*actor.first, *actor.then):
                yield from self._routine(("agent", at), name)
            if actor.supervisor and actor.supervisor not in {each.id for each in scenario.agents[:at]}:
                problem = f"{actor.supervisor!r} is no agent above this one"
                yield ("agent", at, "supervisor"), problem
        for at, request in enumerate(scenario.requests):
            yield from self._routine(("request", at, "play"), request.play)
            for agent in request.by:
                if agent not in self._ids:
                    yield ("request", at, "by"), self._unknown("agent", agent, self._ids)
        if scenario.on_message:
            yield from self._routine(("on_message",), scenario.on_message)
        if scenario.second_process and scenario.second_process not in self._ids:
            yield ("second_process",), self._unknown("agent", scenario.second_process, self._ids)
        for name, routine in scenario.routines.items():
            place: KeyPath = ("routine", name)
            yield from self._placeholders((*place, "task"), routine.task)
            yield from self._placeholders((*place, "done"), routine.done)
            for at, step in enumerate(routine.steps):
                yield from self._step((*place, "steps", at), step)
        yield from self._placeholders(("texts",), scenario.texts)
        yield from self._placeholders(("zh", "texts"), scenario.zh.texts)

    def _step(self, place: KeyPath, step: Step) -> Iterator[tuple[KeyPath, str]]:
        if step.play:
            yield from self._routine((*place, "play"), step.play)
        if isinstance(step.on_error, Mapping):
            for name in step.on_error.values():
                yield from self._routine((*place, "on_error"), name)
        if step.choose and step.choose not in self._scenario.changes:
            yield (*place, "choose"), self._unknown("change", step.choose, self._scenario.changes)
        if step.call:
            yield from self._call(place, step)
        if step.wait:
            yield from self._placeholders((*place, "wait"), step.wait.path)
        for name in {*step.given, *step.set, step.result, step.retry} & _READ_ONLY:
            yield place, f"{name!r} is the name of a value that is always there; choose another one"
        for part in ("args", "say", "given", "each", "hear", "among", "set", "when", "unless"):
            yield from self._placeholders((*place, _ALIASES.get(part, part)), getattr(step, part))

    def _call(self, place: KeyPath, step: Step) -> Iterator[tuple[KeyPath, str]]:
        if PLACEHOLDER.search(step.call) or step.call == ASK_PERSON or _BUFFER_TOOL.fullmatch(step.call):
            return
        known = all_tools()
        tool = known.get(step.call)
        if tool is None or not tool.is_for(human=False):
            yield (*place, "call"), self._unknown("tool", step.call, [*known, ASK_PERSON])
            return
        fields = {each.alias or name: each for name, each in tool.params.model_fields.items()}
        for name in step.args.keys() - fields.keys():
            yield (*place, "args", name), self._unknown("argument", name, fields)
        missing = [name for name, each in fields.items() if each.is_required() and name not in step.args]
        if missing:
            yield (*place, "args"), f"{step.call} needs {', '.join(missing)}"

    def _placeholders(self, place: KeyPath, value: object) -> Iterator[tuple[KeyPath, str]]:
        if isinstance(value, Mapping):
            for name, each in value.items():
                yield from self._placeholders((*place, str(name)), each)
            return
        for expression in placeholders(value):
            path, *filters = expression.split("|")
            root, *fields = path.strip().split(".")
            name = ".".join(fields)
            if root not in self._names:
                yield place, self._unknown("value", root, self._names)
            elif root == "text" and name not in self._scenario.texts:
                yield place, self._unknown("text", name, self._scenario.texts)
            elif root == "file" and name not in self._scenario.file_texts():
                yield place, self._unknown("file", name, self._scenario.file_texts())
            elif root == "number" and not _is_range(fields):
                yield place, "a number is drawn as ${number.LOWEST.HIGHEST}"
            for each in filters:
                yield from ((place, problem) for problem in self._filter_problems(each))

    def _filter_problems(self, given: str) -> Iterator[str]:
        name, _, argument = given.partition(":")
        if name != "pick" and name not in FILTERS:
            yield self._unknown("filter", name, ["pick", *FILTERS])
        elif name in ("cut", "plus") and not re.fullmatch(r"-?\d{1,9}", argument):
            yield f"{name} takes a number"
        elif name == "match":
            try:
                if re.compile(argument).groups != 1:
                    yield "match takes a regular expression with one group"
            except re.error as error:
                yield f"match: {error}"

    def _routine(self, place: KeyPath, name: str) -> Iterator[tuple[KeyPath, str]]:
        if name not in self._scenario.routines:
            yield place, self._unknown("routine", name, self._scenario.routines)

    @staticmethod
    def _unknown(
        kind: str, name: str, known: Sequence[str] | Mapping[str, object] | frozenset[str] | set[str]
    ) -> str:
        close = get_close_matches(name, list(known), 1)
        return f"there is no {kind} {name!r}" + (f"; did you mean {close[0]!r}?" if close else "")


_ALIASES: Final = {"given": "with", "among": "in"}


def _is_range(fields: Sequence[str]) -> bool:
    """Whether ``fields`` are two whole numbers, the lower one first."""
    return len(fields) == 2 and all(map(str.isdecimal, fields)) and int(fields[0]) <= int(fields[1])
