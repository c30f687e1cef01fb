"""Calls that nobody thought of: each is answered, with success or a whole refusal, in JSON that can be sent.

Every tool there is, by agents and by a person, in batches: 1,000 calls each time, 20,000 with WATCHROOM_HUNT=1.
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import pytest
from calls import ok
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from watchroom import Agent, Json, Toolbox, Workspace
from watchroom.editing.tool_visibility import EDIT_TOOLS, SYNC_TOOLS
from watchroom.toolbox.buffers import buffer_tool
from watchroom.toolbox.tool_registry import all_tools

CALLS_IN_A_BATCH: Final = 25
NUMBERS: Final = itertools.count()
BATCHES: Final = 800 if "WATCHROOM_HUNT" in os.environ else 40

BUFFER_TOOLS: Final = {
    tool.name: tool for name in (*EDIT_TOOLS, *SYNC_TOOLS) for tool in (buffer_tool("alice", "plan", name),)
}
ALL_TOOLS: Final = {**all_tools(), **BUFFER_TOOLS}

TELLING: Final[Sequence[Json]] = (
    *("plan.md", "notes.md", "data.csv", "alice", "bob", "human:eve", "global", "top-layer", "plan", "doc"),
    *("..", "a/" * 40 + "b", "\0", "\ud800", "\U0001f600", "x" * 3000, "", " ", "e\u0301", "\x1b[2J"),
    *(True, False, None, 0, 1, 2, -1, 2**31, 2**53, 2**63, -(2**70), 1.5, 1e308),
    *("title", "body", "tags", "meta", "votes", "increment", "insert", "add", "replace", "lww_register"),
)
"""Values that mean something to some tool, or should not."""

SENSIBLE: Final[dict[str, Sequence[Json]]] = {
    "filename": ("notes.md", "data.csv"),
    "filepath": ("plan.md",),
    "path": ("plan.md", "global"),
    "agent_id": ("alice", "bob", "ada"),
    "to": ("bob", "ada", "user"),
    "to_agent": ("bob",),
    "from_agent": ("bob",),
    "doc_id": ("doc",),
    "field_name": ("title", "body", "tags", "meta", "votes"),
    "operation": ("insert", "delete", "replace", "add", "remove", "list", "increment", "value"),
    "args": ({"position": 0, "text": "x"}, {"from": 0, "to": 1}, {"from": 0, "to": 2, "text": "y"}),
    "amount": (1, 2),
    "expected_version": (-1, 0, 1, 2),
    "version": (1, 2),
    "to_version": (1,),
    "limit": (1, 5),
    "payload": ({"text": "Go on."},),
    "schema": ({"title": "lww_register"},),
    "source": ("private", "collab", "board", "file"),
    "status": ("done", "failed"),
}
"""What an argument of that name takes."""

values: st.SearchStrategy[Json] = st.recursive(
    st.sampled_from(TELLING) | st.text(st.characters(codec=None), max_size=8) | st.integers() | st.floats(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(codec=None), max_size=4), inner, max_size=3)
    ),
    max_leaves=4,
)


class FuzzedCall(NamedTuple):
    """One call: who makes it (an index into the toolboxes), and what is sent."""

    caller: int
    tool: Any
    arguments: Any


@st.composite
def calls(draw: st.DrawFn) -> FuzzedCall:
    """A tool with its own arguments, most of them sensible, any of them wild; now and then something else."""
    tool = draw(st.sampled_from(sorted(ALL_TOOLS)))
    caller = draw(st.integers(0, 2))
    kind = draw(st.integers(0, 19))
    if kind == 0:
        return FuzzedCall(caller, draw(values), draw(values))
    if kind == 1:
        return FuzzedCall(caller, tool, draw(st.text() | values.map(json.dumps)))
    names = list(ALL_TOOLS[tool].params.model_json_schema().get("properties", {}))
    arguments: dict[Any, Json] = {}
    for name in names:
        how = draw(st.integers(0, 9))
        if how:
            arguments[name] = draw(
                values if how == 1 else st.sampled_from(SENSIBLE.get(name, TELLING)) | values
            )
    if kind == 2:
        arguments[draw(st.text(st.characters(codec=None), max_size=6))] = draw(values)
    if "command" in arguments:
        # What a shell does with nonsense is the sandbox's to bound, and slow.
        arguments["command"] = draw(st.sampled_from(["true", "", "\0", "exit 3"]))
    return FuzzedCall(caller, tool, arguments)


def check_answer(workspace: Workspace, toolbox: Toolbox, tool: Any, arguments: Any) -> None:
    """Call, and insist on a whole answer in JSON that can be sent, and on one row that says why where the call
    was refused."""
    call = f"call-{next(NUMBERS)}"
    result = toolbox.dispatch_tool_call(tool, arguments, call=call)
    json.dumps(result, allow_nan=False, ensure_ascii=False).encode()
    assert isinstance(result["success"], bool)
    if not result["success"]:
        told = [result[key] for key in ("error", "message", "suggestion")]
        assert all(isinstance(each, str) and each for each in told), result
        assert result["error"] != "internal_error", result
        # Editing tools that did not do what was wanted, and commands, have rows of their own kind.
        if "workflow_state" not in result and tool != "run_command":
            rows = workspace.journal.rows_of_call(toolbox.actor, call)
            assert [row.error for row in rows if row.error] == [result["error"]], (result, rows)


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Workspace, list[Toolbox]]]:
    root = tmp_path_factory.mktemp("fuzz")
    with Workspace.open(root / "team", agents=["alice", "bob"]) as workspace:
        alice, bob = workspace.tools("alice"), workspace.tools("bob")
        ok(bob, "collab_write", filepath="plan.md", content="x", message="m")
        ok(bob, "handoff_file", to_agent="alice", filename="data.csv", content="1", message="m")
        fields = {
            "title": "lww_register",
            "body": "rga",
            "tags": "or_set",
            "meta": "lww_map",
            "votes": "pn_counter",
        }
        ok(bob, "realtime_create_document", doc_id="doc", schema=fields)
        ok(alice, "open_buffer", source="collab", path="plan.md", name="plan")
        task = workspace.tasks.submit("human:eve", "Build something.", root / "project")
        workspace.register([Agent("ada", task=task.id)])
        yield workspace, [alice, workspace.tools_for_human("eve"), workspace.tools("ada")]


@settings(
    max_examples=BATCHES,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)
@given(batch=st.lists(calls(), min_size=CALLS_IN_A_BATCH, max_size=CALLS_IN_A_BATCH))
def test_every_call_is_answered_in_json(
    fuzzed: tuple[Workspace, list[Toolbox]], batch: list[FuzzedCall]
) -> None:
    workspace, toolboxes = fuzzed
    for call in batch:
        check_answer(workspace, toolboxes[call.caller], call.tool, call.arguments)


@pytest.mark.parametrize("tool", sorted(ALL_TOOLS))
def test_arguments_deeper_than_the_stack_are_answered(
    fuzzed: tuple[Workspace, list[Toolbox]], tool: str
) -> None:
    deep: Json = "x"
    for _ in range(20_000):
        deep = {"a": [deep]}
    for name in ALL_TOOLS[tool].params.model_json_schema().get("properties", {}):
        check_answer(fuzzed[0], fuzzed[1][0], tool, {name: deep})
    check_answer(fuzzed[0], fuzzed[1][0], tool, deep)


def test_what_was_called_left_the_workspace_whole(fuzzed: tuple[Workspace, list[Toolbox]]) -> None:
    workspace, _ = fuzzed
    assert workspace.verify() == []
