"""Calls that nobody thought of: each is answered, with success or a whole refusal."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from calls import ok
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from watchroom import Json, Workspace
from watchroom.toolbox.definitions import TOOLS

json_values: st.SearchStrategy[Json] = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.integers(min_value=2**62),
        st.floats(),
        st.text(),
        st.sampled_from(["plan.md", "notes.md", "alice", "bob", "data.csv", "..", "\0", "\ud800"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)


argument_names = sorted({name for tool in TOOLS.values() for name in tool.takes.model_fields})


wild_arguments = st.dictionaries(
    st.sampled_from(argument_names) | st.text(max_size=5), json_values, max_size=5
)


@st.composite
def nearly_right_arguments(draw: st.DrawFn) -> tuple[str, dict[str, Json]]:
    """A tool with the arguments that it takes, most of them sensible, any of them wild."""
    tool = draw(st.sampled_from(sorted(TOOLS)))
    sensible: dict[str, list[Json]] = {
        "agent_id": ["alice", "bob"],
        "to_agent": ["bob"],
        "from_agent": ["bob"],
        "version": [1, 2],
        "to_version": [1, 2],
        "expected_version": [-1, 0, 1],
        "limit": [1, 5],
        "include_acknowledged": [True, False],
    }
    arguments = {
        name: draw(st.sampled_from(sensible.get(name, ["plan.md", "notes.md", "data.csv"])) | json_values)
        for name in TOOLS[tool].takes.model_fields
    }
    return tool, arguments


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    root = tmp_path_factory.mktemp("fuzz") / "team"
    with Workspace.open(root, agents=["alice", "bob"]) as workspace:
        bob = workspace.tools("bob")
        ok(bob, "collab_write", filepath="plan.md", content="x", message="m")
        ok(bob, "handoff_file", to_agent="alice", filename="data.csv", content="1", message="m")
        yield workspace
        assert workspace.verify() == []


fuzzing = settings(
    max_examples=400,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


def _check_answer(workspace: Workspace, tool: str, arguments: Any) -> None:
    result = workspace.tools("alice").dispatch_tool_call(tool, arguments)
    json.dumps(result, allow_nan=False)
    if result["success"] is not True:
        assert all(isinstance(result[key], str) and result[key] for key in ("error", "message", "suggestion"))


@fuzzing
@given(tool=st.sampled_from(sorted(TOOLS)) | st.text(max_size=20), arguments=wild_arguments)
def test_wild_calls_are_answered(fuzzed: Workspace, tool: str, arguments: dict[str, Json]) -> None:
    _check_answer(fuzzed, tool, arguments)


@fuzzing
@given(call=nearly_right_arguments())
def test_nearly_right_calls_are_answered(fuzzed: Workspace, call: tuple[str, dict[str, Json]]) -> None:
    _check_answer(fuzzed, *call)


@fuzzing
@given(tool=st.sampled_from(sorted(TOOLS)), arguments=st.text() | json_values.map(json.dumps))
@example(tool="collab_list", arguments="{}")
def test_texts_in_place_of_arguments_are_answered(fuzzed: Workspace, tool: str, arguments: str) -> None:
    _check_answer(fuzzed, tool, arguments)
