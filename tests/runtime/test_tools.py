"""Tools of one's own: a function with types is one, and what a model could not be offered is an error at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field
from runtime.steps import raw, result_of, told
from runtime.weather import definition
from watchroom import Json
from watchroom.features.sessions.runtime import AgentTool, CallOrigin, ChatAgent, InvalidTool, tool


class Unit(StrEnum):
    CELSIUS = "C"
    KELVIN = "K"


class Place(BaseModel):
    city: str
    title: str = ""


@tool(repeatable=True)
async def forecast(
    place: Place,
    days: Annotated[int, Field(ge=1, le=14, description="How far ahead.")] = 3,
    unit: Unit = Unit.CELSIUS,
    *,
    copy: bool = False,
    origin: CallOrigin,
) -> Mapping[str, Json]:
    """Tell the weather of a place.

    In words.
    """
    return {"city": place.city, "days": days, "unit": unit.name, "copy": copy, "key": bool(origin.key)}


def test_a_function_says_all_that_a_model_has_to_know() -> None:
    assert (forecast.name, forecast.repeatable) == ("forecast", True)
    told_of: Any = forecast.definition["function"]
    assert told_of["description"] == "Tell the weather of a place.\n\nIn words."
    schema = told_of["parameters"]
    assert (schema["type"], schema["required"], schema["additionalProperties"]) == (
        "object",
        ["place"],
        False,
    )
    assert list(schema["properties"]) == ["place", "days", "unit", "copy"]
    days = {"type": "integer", "minimum": 1, "maximum": 14, "default": 3, "description": "How far ahead."}
    assert schema["properties"]["days"] == days
    assert schema["$defs"]["Place"]["properties"] == {
        "city": {"type": "string"},
        "title": {"type": "string", "default": ""},
    }
    ChatAgent([forecast])


async def test_its_arguments_are_checked_before_it_is_called() -> None:
    given = '{"place": {"city": "Oslo"}, "unit": "K", "copy": true}'
    result = await result_of(forecast, raw(given))
    assert told(result) == {"city": "Oslo", "days": 3, "unit": "KELVIN", "copy": True, "key": True}
    for broken, problem in (
        ('{"place": {"city": "Oslo"}, "days": 15}', "days: "),
        ('{"place": {"city": 7}}', "place.city: "),
        ('{"place": {"city": "Oslo"}, "argument_0": 1}', "argument_0: "),
        ("{}", "place: "),
    ):
        refusal = told(await result_of(forecast, raw(broken)))
        assert (refusal["error"], problem in refusal["message"]) == ("invalid_arguments", True)


async def test_a_plain_function_runs_in_a_thread_and_may_fail() -> None:
    @tool
    def divide(number: int, by: int) -> float:
        """Divide a number."""
        return number / by

    assert told(await result_of(divide, raw('{"number": 6, "by": 4}'))) == 1.5
    failure = told(await result_of(divide, raw('{"number": 6, "by": 0}')))
    assert (failure["error"], "division by zero" in failure["message"]) == ("tool_failed", True)


def run(arguments: Mapping[str, Json], origin: CallOrigin) -> Json:
    return None


def defined(**function: Json) -> AgentTool:
    return AgentTool("read", run, {"type": "function", "function": {"name": "read", **function}})


READ = defined()
NEVER_OFFERED: list[tuple[Any, str]] = [
    ([run], "decorate it with `@tool`"),
    ({"read": run}, "decorate it with `@tool`"),
    ({"read": lambda given: None}, "decorate it with `@tool`"),
    ([AgentTool("read", run)], "no definition"),
    ([AgentTool("read", run, {"name": "read", "parameters": {}})], "with the type `function`"),
    ([AgentTool("read", run, {"type": "function", "function": "read"})], "with the type `function`"),
    ([AgentTool("read", run, definition("write"))], "the tool's name"),
    ([AgentTool("read it", run, definition("read it"))], "letters"),
    ([defined(parameters={"path": "string"})], "JSON Schema"),
    ([defined(parameters={"path": {"type": "string"}})], "JSON Schema"),
    ([defined(parameters={"type": "object", "properties": {"path": "string"}})], "JSON Schema"),
    ([defined(parameters="path")], "JSON Schema"),
    ({"write": READ}, "a name that is not its own"),
    ([READ, READ], "another tool has that name"),
]


@pytest.mark.parametrize(("tools", "why"), NEVER_OFFERED)
def test_a_tool_that_would_never_be_offered_is_an_error_at_once(tools: Any, why: str) -> None:
    with pytest.raises(InvalidTool) as refused:
        ChatAgent(tools)
    assert why in refused.value.message()
    assert "@tool" in refused.value.suggestion("zh")
    assert ChatAgent([READ]).tools == {"read": READ}


def undescribed(path: str) -> None: ...


def untyped(path) -> None:  # type: ignore[no-untyped-def]
    """It says nothing of its parameter."""


def unnamed(path: str, /) -> None:
    """Its parameter has no name."""


def many(*paths: str) -> None:
    """It takes any number."""


def unknown(path: Elsewhere) -> None:  # type: ignore[name-defined]  # noqa: F821
    """Its type is not known."""


def opaque(path: Callable[[int], Any]) -> None:
    """Its type has no schema."""


@pytest.mark.parametrize("function", [undescribed, untyped, unnamed, many, unknown, opaque])
def test_a_function_that_says_too_little_is_refused_as_it_is_made(function: Any) -> None:
    with pytest.raises(InvalidTool, match=function.__name__):
        tool(function)
