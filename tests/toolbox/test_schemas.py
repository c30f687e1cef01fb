"""The definitions of all tools are JSON Schemas of draft 2020-12, in each dialect, and say what is accepted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, get_args

import pytest
from calls import ok
from jsonschema import Draft202012Validator
from jsonschema_specifications import REGISTRY
from pydantic import TypeAdapter
from watchroom import Agent, Workspace
from watchroom.features.calls.tool_registry import all_tools
from watchroom.kernel.tools.schemas import Format

VOCABULARIES: Final = (
    "core",
    "applicator",
    "unevaluated",
    "validation",
    "meta-data",
    "format-annotation",
    "content",
)
KEYWORDS: Final = frozenset(
    keyword
    for vocabulary in VOCABULARIES
    for keyword in REGISTRY.contents(f"https://json-schema.org/draft/2020-12/meta/{vocabulary}")["properties"]
)
FORMATS: Final = get_args(Format)
NOT_STRICT: Final = frozenset(
    {
        *("minLength", "maxLength", "pattern", "format"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
        *("minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties", "default"),
    }
)
"""Keywords that strict mode does not take, or took only later."""


@pytest.fixture
def offered(workspace: Workspace, tmp_path: Path) -> dict[str, dict[str, Any]]:
    """By dialect and name, the definitions of all tools, those of an open buffer among them."""
    task = workspace.tasks.submit("human:dana", "Build something.", tmp_path / "one")
    workspace.register([Agent("worker", task=task.id)])
    worker, person = workspace.tools("worker"), workspace.tools_for_human("dana")
    ok(worker, "collab_write", filepath="plan.md", content="x\n", message="m")
    ok(worker, "open_buffer", source="collab", path="plan.md")
    found: dict[str, dict[str, Any]] = {style: {} for style in FORMATS}
    for style in FORMATS:
        for tools in (worker, person):
            each: Any
            for each in tools.get_tool_definitions(style):
                found[style][each.get("name") or each["function"]["name"]] = each
    for definitions in found.values():
        assert all_tools().keys() < definitions.keys(), "and those of the buffer"
    return found


def schemas_of(definition: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The schemas of ``definition``, of whichever dialect."""
    function = definition.get("function", definition)
    for name in ("parameters", "input_schema", "inputSchema", "outputSchema"):
        if name in function:
            yield function[name]


def walk(schema: object) -> Iterator[Mapping[str, Any]]:
    """``schema`` and all schemas within it."""
    if not isinstance(schema, Mapping):
        return
    yield schema
    for name in ("properties", "$defs", "patternProperties"):
        for each in schema.get(name, {}).values():
            yield from walk(each)
    for name in ("items", "additionalProperties", "propertyNames", "contains", "not"):
        yield from walk(schema.get(name))
    for name in ("anyOf", "oneOf", "allOf", "prefixItems"):
        for each in schema.get(name, []):
            yield from walk(each)


@pytest.mark.parametrize("style", FORMATS)
def test_all_tools_have_valid_schemas_without_unknown_keywords(offered: Any, style: str) -> None:
    for name, definition in offered[style].items():
        for schema in schemas_of(definition):
            Draft202012Validator.check_schema(schema)
            for each in walk(schema):
                assert each.keys() <= KEYWORDS, name
                assert set(each.get("required", [])) <= each.get("properties", {}).keys(), name


def test_limits_of_numbers_are_those_that_a_call_has(offered: Any) -> None:
    properties = offered["plain"]["collab_write"]["parameters"]["properties"]
    assert (properties["expected_version"]["minimum"], properties["expected_version"]["maximum"]) == (
        -1,
        2**31 - 1,
    )
    properties = offered["anthropic"]["run_command"]["input_schema"]["properties"]
    assert (properties["timeoutMs"]["minimum"], properties["timeoutMs"]["maximum"]) == (1, 3_600_000)
    properties = offered["mcp"]["whiteboard_write"]["inputSchema"]["properties"]
    assert (properties["wait_seconds"]["minimum"], properties["wait_seconds"]["maximum"]) == (0, 60)


def test_strict_functions_require_all_arguments_and_have_no_limits(offered: Any) -> None:
    strict = [each["function"] for each in offered["openai"].values() if each["function"]["strict"]]
    assert len(strict) > 30
    for function in strict:
        for schema in walk(function["parameters"]):
            assert not schema.keys() & NOT_STRICT, function["name"]
            if "object" in schema["type"]:
                assert schema["additionalProperties"] is False, function["name"]
                assert sorted(schema["required"]) == sorted(schema["properties"]), function["name"]


def test_what_may_be_left_out_may_be_null_in_strict_mode(offered: Any) -> None:
    for name, definition in offered["openai"].items():
        function = definition["function"]
        plain = offered["plain"][name]["parameters"]
        if function["strict"]:
            optional = plain["properties"].keys() - set(plain["required"])
            for each in optional:
                schema = function["parameters"]["properties"][each]
                assert Draft202012Validator(schema).is_valid(None), f"{name}: {each}"


@pytest.mark.parametrize("name", all_tools())
def test_null_stands_for_an_argument_that_is_left_out(name: str) -> None:
    fields = all_tools()[name].params.model_fields
    for each, field in fields.items():
        if not field.is_required():
            TypeAdapter(field.rebuild_annotation()).validate_python(None), each
