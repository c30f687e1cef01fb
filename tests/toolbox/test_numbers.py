"""Where a tool takes a number, true and false are refused: Python would count them as 1 and 0."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError
from watchroom.features.calls.tool_registry import all_tools
from watchroom.kernel.tools.models import ParamsModel


def models() -> Iterator[type[BaseModel]]:
    pending: list[type[BaseModel]] = [ParamsModel, *(tool.params for tool in all_tools().values())]
    found = set(pending)
    while pending:
        model = pending.pop()
        yield model
        more = set(model.__subclasses__()) - found
        found |= more
        pending += more


def numbers() -> list[tuple[str, Any]]:
    """The fields that take a number and no truth value."""
    found = {}
    for model in models():
        for name, field in model.model_fields.items():
            schema = TypeAdapter(field.rebuild_annotation()).json_schema()
            types = {each.get("type") for each in schema.get("anyOf", [schema])}
            if types & {"integer", "number"} and "boolean" not in types:
                found[f"{model.__name__}.{name}"] = field.rebuild_annotation()
    return sorted(found.items())


@pytest.mark.parametrize(("name", "annotation"), numbers())
def test_truth_values_are_no_numbers(name: str, annotation: Any) -> None:
    number = TypeAdapter(annotation)
    assert number.validate_python(3) == 3
    for given in (True, False):
        with pytest.raises(ValidationError) as refusal:
            number.validate_python(given)
        assert {"int_type", "float_type"} & {each["type"] for each in refusal.value.errors()}


def test_the_fields_are_found() -> None:
    assert {
        "CollabWriteParams.expected_version",
        "EditCounterParams.amount",
        "TextRange.position",
        "BoardWriteParams.wait_seconds",
    } <= {name for name, _ in numbers()}
