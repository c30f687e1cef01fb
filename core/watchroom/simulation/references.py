"""Checks what a scenario names: routines, agents, texts, values, tools and their arguments.

They are validators of the scenario's fields, so that pydantic says where a name stands. What the scenario has
they are told by the validation's context (`Scenario.names`); without one they let everything pass.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Annotated, Final

from pydantic import AfterValidator, JsonValue, ValidationInfo

from watchroom.runtime import ASK_PERSON
from watchroom.simulation.template import FILTERS, PLACEHOLDER, placeholders
from watchroom.toolbox.tool_registry import all_tools

READ_ONLY: Final = frozenset(
    "me role layer supervisor others other team suffix folder n now opening text file number item".split()  # noqa: SIM905
)
"""The values that are always there, and are nobody's to set."""

GIVEN: Final = READ_ONLY | {"message", "problem", "who", "said"}
_BUFFER_TOOL: Final = re.compile(
    r".+_(replace|replace_selection|append|discard_selection|flush|refresh|diff|accept_source)"
)


def _check_name(name: str) -> str:
    if name in READ_ONLY:
        raise ValueError(f"{name!r} is the name of a value that is always there; choose another one")
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
    """The validator of a name of that ``kind``, a key of the validation's context; empty is no name."""

    def check(name: str, info: ValidationInfo) -> str:
        if info.context and name and name not in info.context[kind]:
            raise ValueError(_unknown(kind, name, info.context[kind]))
        return name

    return AfterValidator(check)


Name = Annotated[str, AfterValidator(_check_name)]
"""The name that a step gives to a value."""

RoutineName = Annotated[str, named("routine")]
AgentName = Annotated[str, named("agent")]
ToolName = Annotated[str, AfterValidator(_check_tool)]
Text = Annotated[str, AfterValidator(_check_placeholders)]
Phrases = Annotated[str | tuple[str, ...], AfterValidator(_check_placeholders)]
"""A text, or several of which chance chooses one."""

Value = Annotated[JsonValue, AfterValidator(_check_placeholders)]


def check_arguments(tool: str, given: Mapping[str, object]) -> None:
    """Raise ValueError where ``given`` are not arguments of ``tool``, if that can be known."""
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
    """Whether only playing shows which tool that is, or it is none of the toolbox."""
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
        yield "a number is drawn as ${number.LOWEST.HIGHEST}"
    for each in filters:
        yield from _filter_problems(*each.partition(":")[::2])


def _filter_problems(name: str, argument: str) -> Iterator[str]:
    if name != "pick" and name not in FILTERS:
        yield _unknown("filter", name, ["pick", *FILTERS])
    elif name in ("cut", "plus") and not re.fullmatch(r"-?\d{1,9}", argument):
        yield f"{name} takes a number"
    elif name == "match":
        try:
            if re.compile(argument).groups != 1:
                yield "match takes a regular expression with one group"
        except re.error as error:
            yield f"match: {error}"


def _is_range(fields: Sequence[str]) -> bool:
    """Whether ``fields`` are two whole numbers, the lower one first."""
    return len(fields) == 2 and all(map(str.isdecimal, fields)) and int(fields[0]) <= int(fields[1])


def _unknown(kind: str, name: str, known: Collection[str]) -> str:
    close = get_close_matches(name, known, 1)
    return f"there is no {kind} {name!r}" + (f"; did you mean {close[0]!r}?" if close else "")
