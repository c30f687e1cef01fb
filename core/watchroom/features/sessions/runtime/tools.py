"""Custom tools: `tool` makes them from functions, and `checked_tools` checks them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from types import SimpleNamespace
from typing import Any, Final, TypeAlias, cast, get_type_hints, overload

from pydantic import BaseModel, ConfigDict, ValidationError, create_model
from pydantic import Field as Argument
from pydantic.errors import PydanticUserError

from watchroom import validation
from watchroom.errors import InvalidArguments, InvalidTool
from watchroom.features.sessions.runtime.agent import AgentTool, CallOrigin, Tool
from watchroom.features.sessions.runtime.models.answer_accumulator import describe_validation_error
from watchroom.model import Json

Function: TypeAlias = Callable[..., object]
"""A function that returns JSON. It may be a coroutine function."""
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""The names of tools that providers accept."""
_MAX_PROBLEMS: Final = 8


@overload
def tool(function: Function, /) -> AgentTool: ...


@overload
def tool(
    *,
    name: str = "",
    repeatable: bool = False,
    checksum: Callable[[Mapping[str, Json]], str] | None = None,
) -> Callable[[Function], AgentTool]: ...


def tool(
    function: Function | None = None,
    /,
    *,
    name: str = "",
    repeatable: bool = False,
    checksum: Callable[[Mapping[str, Json]], str] | None = None,
) -> AgentTool | Callable[[Function], AgentTool]:
    """Make a tool from a typed function. A decorator, with or without arguments.

    - ``name``: default the function's name.
    - ``repeatable``, ``checksum``: see `AgentTool`.

    Models read the docstring. The types of the parameters are the schema, and invalid arguments are refused
    before the function is called. ``Annotated[int, Field(description=…)]`` describes a parameter. A parameter
    of the type `CallOrigin` receives the call's origin and is not an argument.

    Raise `InvalidTool` if the function has no docstring, or if a parameter has no type or cannot be given by
    name.
    """

    def decorate(decorated: Function) -> AgentTool:
        tool_name = name or _name_of(decorated)
        types = _parameter_types(decorated, tool_name)
        origins = [each for each, kind in types.items() if kind is CallOrigin]
        params = _params_model(decorated, tool_name, types, origins)
        definition = _build_definition(decorated, tool_name, params)
        run = _build_runner(decorated, tool_name, params, origins)
        return AgentTool(tool_name, run, definition, repeatable, checksum=checksum)

    return decorate if function is None else decorate(function)


def checked_tools(tools: Iterable[AgentTool] | Mapping[str, Tool]) -> dict[str, AgentTool]:
    """Return ``tools`` by name. Raise `InvalidTool` if one cannot be offered to a model."""
    named = list(tools.items()) if isinstance(tools, Mapping) else [(_name_of(each), each) for each in tools]
    found: dict[str, AgentTool] = {}
    for name, each in named:
        if not isinstance(each, AgentTool):
            raise InvalidTool(tool=_escape_name(name), rule="tool_function")
        if name in found:
            raise InvalidTool(tool=_escape_name(name), rule="tool_name_taken")
        rule = _find_broken_rule(each) if each.name == name else "tool_name_differs"
        if rule:
            raise InvalidTool(tool=_escape_name(name), rule=rule)
        found[name] = each
    return found


def _name_of(tool: object) -> str:
    return tool.name if isinstance(tool, AgentTool) else str(getattr(tool, "__name__", type(tool).__name__))


def _escape_name(name: str) -> str:
    return validation.escape_unstorable(name, 100)


def _find_broken_rule(tool: AgentTool) -> str | None:
    """Return the rule that the definition of ``tool`` breaks, None if it breaks none."""
    if not tool.definition:
        return "tool_undefined"
    function = tool.definition.get("function")
    if tool.definition.get("type") != "function" or not isinstance(function, Mapping):
        return "tool_dialect"
    if function.get("name") != tool.name or not _NAME.fullmatch(tool.name):
        return "tool_name"
    return None if _is_schema_of_object(function.get("parameters", _NO_PARAMETERS)) else "tool_schema"


_NO_PARAMETERS: Final[Mapping[str, Json]] = {"type": "object", "properties": {}}


def _is_schema_of_object(schema: object) -> bool:
    if not isinstance(schema, Mapping) or schema.get("type") != "object":
        return False
    properties = schema.get("properties", {})
    return isinstance(properties, Mapping) and all(
        isinstance(each, Mapping | bool) for each in properties.values()
    )


def _parameter_types(function: Function, name: str) -> dict[str, Any]:
    """Return the type of each parameter."""
    try:
        whole = inspect.unwrap(function)
        # The annotation of the result may be a name that only type checkers know.
        annotations = {each: kind for each, kind in whole.__annotations__.items() if each != "return"}
        types = get_type_hints(
            SimpleNamespace(__annotations__=annotations), whole.__globals__, include_extras=True
        )
        parameters = inspect.signature(function).parameters.values()
    except (AttributeError, NameError, TypeError, ValueError) as error:
        raise InvalidTool(tool=_escape_name(name), rule="tool_types") from error
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    if any(each.kind not in by_name or each.name not in types for each in parameters):
        raise InvalidTool(tool=_escape_name(name), rule="tool_types")
    return {each.name: types[each.name] for each in parameters}


def _params_model(
    function: Function, name: str, types: Mapping[str, Any], origins: Iterable[str]
) -> type[BaseModel]:
    """Return a model of the arguments. Its fields have other names, with the parameters as aliases, because
    pydantic reserves some names."""
    parameters = inspect.signature(function).parameters
    fields: dict[str, Any] = {}
    for number, (parameter, kind) in enumerate(types.items()):
        if parameter not in origins:
            default = parameters[parameter].default
            given = ... if default is inspect.Parameter.empty else default
            fields[f"argument_{number}"] = (kind, Argument(given, alias=parameter))
    try:
        return create_model(name, __config__=ConfigDict(extra="forbid"), **fields)
    except (PydanticUserError, TypeError) as error:
        raise InvalidTool(tool=_escape_name(name), rule="tool_types") from error


def _build_definition(function: Function, name: str, arguments: type[BaseModel]) -> Mapping[str, Json]:
    description = inspect.getdoc(function)
    if not description:
        raise InvalidTool(tool=_escape_name(name), rule="tool_undescribed")
    try:
        schema = _without_titles(arguments.model_json_schema())
    except (PydanticUserError, TypeError) as error:
        raise InvalidTool(tool=_escape_name(name), rule="tool_types") from error
    described: dict[str, Json] = {"name": name, "description": description, "parameters": schema}
    return {"type": "function", "function": described}


def _without_titles(schema: Any) -> Any:
    """Return ``schema`` without generated titles, which cost tokens."""
    if isinstance(schema, dict):
        return {
            key: _without_titles(value)
            for key, value in schema.items()
            if not (key == "title" and isinstance(value, str))
        }
    return [_without_titles(each) for each in schema] if isinstance(schema, list) else schema


def _build_runner(
    function: Function, name: str, model: type[BaseModel], origins: Iterable[str]
) -> Callable[[Mapping[str, Json], CallOrigin], Any]:
    def bind(arguments: Mapping[str, Json], origin: CallOrigin) -> dict[str, object]:
        try:
            checked = model.model_validate(arguments)
        except ValidationError as error:
            problems = describe_validation_error(error, _MAX_PROBLEMS)
            raise InvalidArguments(tool=_escape_name(name), problems=problems) from error
        # Omitted arguments get the function's own defaults.
        found = {each: model.model_fields[each].alias or each for each in checked.model_fields_set}
        given = {name: getattr(checked, each) for each, name in found.items()}
        return {**given, **dict.fromkeys(origins, origin)}

    if inspect.iscoroutinefunction(function):

        async def run_async(arguments: Mapping[str, Json], origin: CallOrigin) -> Json:
            return cast("Json", await function(**bind(arguments, origin)))

        return run_async
    return lambda arguments, origin: function(**bind(arguments, origin))
