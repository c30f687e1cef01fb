"""Arguments deeper than the stack: every tool answers, with success or a whole refusal."""

from __future__ import annotations

import json
from typing import Final

import pytest
from watchroom import Json, Toolbox
from watchroom.features.calls.tool_registry import all_tools

DEPTH: Final = 20_000


@pytest.mark.parametrize("tool", sorted(all_tools()))
def test_arguments_deeper_than_the_stack_are_answered(alice: Toolbox, tool: str) -> None:
    deep: Json = "x"
    for _ in range(DEPTH):
        deep = {"a": [deep]}
    arguments = [{name: deep} for name in all_tools()[tool].params.model_json_schema().get("properties", {})]
    for each in (*arguments, deep):
        result = alice.dispatch_tool_call(tool, each)  # type: ignore[arg-type]
        assert json.dumps(result)
        if not result["success"]:
            assert all(
                isinstance(result[key], str) and result[key] for key in ("error", "message", "suggestion")
            )
