"""The trace that a client's call belongs to is kept in the rows of the call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest
from calls import ok
from mcp import Client
from mcp.types import RequestParamsMeta
from serving.clients import within
from watchroom import Toolbox, Workspace
from watchroom.kernel.rules.trace_context import parse_traceparent, traced_call
from watchroom.model import Row

GIVEN = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
CALL = {"filepath": "plan.md", "content": "one", "message": "m", "expected_version": 0}


async def call(client: Client, tool: str, traceparent: object, **arguments: Any) -> None:
    meta = cast("RequestParamsMeta", {"traceparent": traceparent})
    await client.call_tool(tool, arguments, meta=meta)


def rows_of(workspace: Workspace, *tools: str) -> Sequence[Row]:
    workspace.flush()
    return [row for row in workspace.journal.rows() if row.tool in tools]


async def test_the_rows_of_a_call_say_which_span_made_it(workspace: Workspace, alice: Toolbox) -> None:
    before = workspace.journal.now()
    async with within(workspace, alice) as client:
        await call(client, "collab_write", GIVEN, **CALL)
        await call(client, "collab_write", GIVEN, **CALL)
        await call(client, "collab_read", GIVEN, filepath="plan.md")
    written, refused, read = rows_of(workspace, "collab_write", "collab_read")
    assert [row.outcome for row in (written, refused, read)] == ["ok", "conflict", "ok"]
    for row in (written, refused, read):
        found = traced_call(row)
        assert found is not None
        assert found.parent == ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", True)
        assert before <= found.began <= row.time


def test_of_several_rows_of_a_call_the_first_stands_for_it(workspace: Workspace, alice: Toolbox) -> None:
    ok(alice, "open_buffer", source="collab", path="plan.md")
    ok(alice, "plan_append", text="one\n")
    before = workspace.journal.last_seq()
    alice.dispatch_tool_call("plan_flush", {}, trace=alice.begin_trace(GIVEN))
    workspace.flush()
    rows = workspace.journal.rows(before)
    assert len(rows) > 1
    assert [traced_call(row) is not None for row in rows] == [True] + [False] * (len(rows) - 1)
    assert {row.detail["traceparent"] for row in rows} == {GIVEN}


async def test_a_call_that_nobody_approves_of_belongs_to_its_caller_too(
    workspace: Workspace, alice: Toolbox
) -> None:
    async with within(workspace, alice, approval_tools=["collab_write"], seconds=0) as client:
        await call(client, "collab_write", GIVEN, **CALL)
    (row,) = rows_of(workspace, "collab_write")
    assert row.error == "call_unanswered"
    assert traced_call(row) is not None


@pytest.mark.parametrize(
    "given",
    [
        GIVEN.upper(),
        GIVEN[:-1],
        GIVEN + "-x",
        GIVEN + "\n",
        "ff" + GIVEN[2:],
        "00-" + "0" * 32 + GIVEN[35:],
        GIVEN[:36] + "0" * 16 + "-01",
        "0" * 1_000_000,
        "",
        7,
        ["00"],
        None,
    ],
    ids=lambda given: repr(given)[:30],
)
def test_what_is_no_traceparent_is_ignored(alice: Toolbox, given: object) -> None:
    assert parse_traceparent(given) is None
    assert alice.begin_trace(given) is None


async def test_a_call_with_a_malformed_one_is_made_all_the_same(workspace: Workspace, alice: Toolbox) -> None:
    async with within(workspace, alice) as client:
        await call(client, "collab_write", "<script>", **CALL)
    (row,) = rows_of(workspace, "collab_write")
    assert row.outcome == "ok"
    assert "trace" not in row.detail_json
