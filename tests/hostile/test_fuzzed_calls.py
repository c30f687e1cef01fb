"""Calls that nobody thought of: each is answered, with success or a whole refusal, in JSON that can be sent.

Every tool there is, by agents and by a person; ``python -m benchmarks fuzz --target calls`` goes on for as long
as one likes.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from reliability.fuzzing.calls import ALL_TOOLS, Calls, check_answer
from reliability.fuzzing.engine import fuzz
from watchroom import Json

INPUTS = 1000


def test_every_call_is_answered_in_json_and_leaves_the_workspace_whole(tmp_path: Path) -> None:
    result = fuzz(partial(Calls, tmp_path), "1/calls", seconds=600, inputs=INPUTS)
    assert (result.inputs, result.findings) == (INPUTS, {})
    assert result.kinds > INPUTS / 10


@pytest.fixture(scope="module")
def called(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Calls]:
    with Calls(tmp_path_factory.mktemp("fuzz")) as target:
        yield target


@pytest.mark.parametrize("tool", sorted(ALL_TOOLS))
def test_arguments_deeper_than_the_stack_are_answered(called: Calls, tool: str) -> None:
    alice = called.toolboxes[0]
    deep: Json = "x"
    for _ in range(20_000):
        deep = {"a": [deep]}
    arguments = [{name: deep} for name in ALL_TOOLS[tool].params.model_json_schema().get("properties", {})]
    for number, each in enumerate([*arguments, deep]):
        call = f"deep-{tool}-{number}"
        result = alice.dispatch_tool_call(tool, each, call=call)  # type: ignore[arg-type]
        check_answer(called.workspace, alice, tool, call, result)
