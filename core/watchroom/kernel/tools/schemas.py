"""Tool definitions in the dialects of several APIs.

All are created from pydantic's JSON Schema of a tool's arguments, without titles, and with descriptions from
the catalogue. The dialects differ in how an optional argument is expressed.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from threading import Lock
from typing import Any, Final, Literal, TypeAlias, cast

from pydantic import BaseModel

from watchroom.kernel.tools.models import ConflictFailure, Failure
from watchroom.kernel.tools.tool import AnyTool
from watchroom.model import Json
from watchroom.texts import Catalogue, Language, catalogue

Format: TypeAlias = Literal["plain", "openai", "anthropic", "mcp"]
Definition: TypeAlias = dict[str, Json]

_BUILDING: Final = Lock()
_LIMITS: Final = frozenset(
    {
        *("minLength", "maxLength", "minItems", "maxItems"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    }
)


def build_definition(tool: AnyTool, style: Format, language: Language) -> Definition:
    """Return the definition of ``tool`` in ``language``.

    ``style``: ``plain`` (name, description, parameters: FILES-J4), ``openai`` (strict function),
    ``anthropic`` (input_schema), or ``mcp`` (with annotations and outputSchema).
    """
    texts = catalogue(language, tool.texts)
    description = texts(f"{tool.text_key}.description", **tool.text_values)
    parameters = _build_parameters(tool, texts)
    if style == "openai":
        function: Definition = {
            "name": tool.name,
            "description": description,
            "strict": _is_closed(parameters),
            "parameters": _to_strict(parameters) if _is_closed(parameters) else parameters,
        }
        return {"type": "function", "function": function}
    if style == "anthropic":
        return {"name": tool.name, "description": description, "input_schema": parameters}
    if style == "mcp":
        return {
            "name": tool.name,
            "title": texts(f"{tool.text_key}.title", **tool.text_values),
            "description": description,
            "inputSchema": parameters,
            "outputSchema": _build_output(tool),
            "annotations": {
                "readOnlyHint": tool.annotations.reads_only,
                "destructiveHint": tool.annotations.destroys,
                "idempotentHint": tool.annotations.idempotent,
                "openWorldHint": False,
            },
        }
    return {"name": tool.name, "description": description, "parameters": parameters}


def _build_parameters(tool: AnyTool, texts: Catalogue) -> dict[str, Json]:
    schema = _plain_schema(cast("type[BaseModel]", tool.params))
    properties = {
        name: {**shape, "description": _describe_argument(tool, name, texts)}
        for name, shape in cast("Mapping[str, Mapping[str, Json]]", schema["properties"]).items()
    }
    return {**schema, "properties": properties}


def _describe_argument(tool: AnyTool, name: str, texts: Catalogue) -> str:
    own = f"{tool.text_key}.{name}"
    return texts(own if own in texts else f"argument.{name}")


@cache
def _plain_schema(params: type[BaseModel]) -> dict[str, Json]:
    raw = _json_schema(params)
    return _object_schema(raw, raw.get("$defs", {}))


def _json_schema(
    model: type[BaseModel], mode: Literal["validation", "serialization"] = "validation"
) -> dict[str, Any]:
    # Building the schema of a model is not thread-safe on its first use.
    with _BUILDING:
        return model.model_json_schema(by_alias=True, mode=mode)


def _object_schema(raw: dict[str, Any], shared: Mapping[str, dict[str, Any]]) -> dict[str, Json]:
    """Return the schema of an object with resolved references."""
    properties = {name: _simplify(shape, shared) for name, shape in raw.get("properties", {}).items()}
    return {
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name in raw.get("required", [])],
        "additionalProperties": False,
    }


def _simplify(shape: dict[str, Any], shared: Mapping[str, dict[str, Any]]) -> dict[str, Json]:
    """Return ``shape`` without null. An optional argument can be omitted instead, which is simpler for a
    model."""
    kinds = [kind for kind in shape.get("anyOf", [shape]) if kind.get("type") != "null"]
    if "$ref" in kinds[0]:
        target = shared[kinds[0]["$ref"].rpartition("/")[2]]
        return _object_schema(target, shared) if "properties" in target else target
    kept = {key: value for key, value in kinds[0].items() if key not in ("title", "default")}
    if "$ref" in kept.get("items", {}):
        kept["items"] = _simplify(kept["items"], shared)
    # A reference to any JSON value needs no schema: any value is allowed.
    return {**kept, "additionalProperties": True} if "$ref" in kept.get("additionalProperties", {}) else kept


def _is_closed(parameters: Mapping[str, Json]) -> bool:
    """Whether a schema lists all allowed fields. Strict mode accepts no other schemas."""
    if parameters.get("type") != "object":
        return "type" in parameters
    properties = cast("Mapping[str, Mapping[str, Json]]", parameters.get("properties", {}))
    return parameters.get("additionalProperties") is False and all(map(_is_closed, properties.values()))


def _to_strict(schema: Mapping[str, Json]) -> dict[str, Json]:
    """Return ``schema`` for OpenAI's strict mode: all arguments are required, optional arguments can be null,
    and there are no limits."""
    kept = {key: value for key, value in schema.items() if key not in _LIMITS}
    if "items" in kept:
        kept["items"] = _to_strict(cast("Mapping[str, Json]", kept["items"]))
    if "properties" in kept:
        required = cast("list[str]", kept["required"])
        properties: dict[str, Json] = {}
        for name, shape in cast("Mapping[str, Mapping[str, Json]]", kept["properties"]).items():
            strict = _to_strict(shape)
            if name not in required:
                strict["type"] = [cast("str", strict["type"]), "null"]
                if "enum" in strict:
                    strict["enum"] = [*cast("list[Json]", strict["enum"]), None]
            properties[name] = strict
        kept |= {"properties": properties, "required": list(properties)}
    return kept


def _build_output(tool: AnyTool) -> dict[str, Json]:
    """Return a single schema for successes and failures, in which only ``success`` is required."""
    properties: dict[str, Json] = {"success": {"type": "boolean"}}
    definitions: dict[str, Json] = {}
    shapes: tuple[type[BaseModel], ...] = (
        tool.result,
        ConflictFailure if tool.annotations.may_conflict else Failure,
    )
    for shape in shapes:
        schema = _strip_titles(_json_schema(shape, mode="serialization"))
        definitions.update(schema.pop("$defs", {}))
        properties.update({name: each for name, each in schema["properties"].items() if name != "success"})
    output: dict[str, Json] = {"type": "object", "properties": properties, "required": ["success"]}
    return {**output, "$defs": definitions} if definitions else output


def _strip_titles(schema: dict[str, Any]) -> dict[str, Any]:
    def clean(node: Any) -> Any:
        if isinstance(node, dict):
            return {
                key: clean(value)
                for key, value in node.items()
                if not (key in ("title", "description") and isinstance(value, str))
            }
        return [clean(each) for each in node] if isinstance(node, list) else node

    return cast("dict[str, Any]", clean(schema))
