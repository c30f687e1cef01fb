"""Module J: the dispatcher and the tools' definitions (FILES)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest
from calls import ok
from watchroom import Toolbox, Workspace
from watchroom.kernel.tools.schemas import Format
from watchroom.texts import LANGUAGES, Language


def test_J_1_dispatch(alice: Toolbox) -> None:
    assert alice.dispatch_tool_call("save_to_my_workspace", {"filename": "test.md", "content": "hello"})[
        "success"
    ]


@pytest.mark.parametrize("language", LANGUAGES)
def test_J_2_unknown_tool(workspace: Workspace, language: Language) -> None:
    alice = workspace.tools("alice", language=language)
    result = alice.dispatch_tool_call("nonexistent_tool", {})
    assert result["success"] is False
    assert "未知工具" in str(result["message"])
    assert suggested(result) == offered(alice)
    assert not {"write_file", "close_buffer", "answer_request"} & suggested(result)
    ok(alice, "open_buffer", source="private", path="plan.md")
    result = alice.dispatch_tool_call("nonexistent_tool", {})
    assert suggested(result) == offered(alice)
    assert {"close_buffer", "plan_append"} <= suggested(result)


def suggested(result: Mapping[str, object]) -> set[str]:
    """The tools that a refusal names."""
    return set(re.findall(r"[a-z]+(?:_[a-z]+)+", str(result["suggestion"])))


def offered(toolbox: Toolbox) -> set[str]:
    return {str(each["name"]) for each in toolbox.get_tool_definitions()}


def test_J_3_missing_arguments(alice: Toolbox) -> None:
    result = alice.dispatch_tool_call("save_to_my_workspace", {})
    assert (result["success"], result["error"]) == (False, "invalid_arguments")
    assert "filename" in str(result["message"])
    assert "content" in str(result["message"])


@pytest.mark.parametrize("language", LANGUAGES)
def test_J_4_definitions_are_well_formed(workspace: Workspace, language: Language) -> None:
    definitions: list[Any] = workspace.tools("alice", language=language).get_tool_definitions()
    for each in definitions:
        assert set(each) == {"name", "description", "parameters"}
        assert each["parameters"]["type"] == "object"
        assert set(each["parameters"].get("required", [])) <= set(each["parameters"]["properties"])
        assert all(shape["description"] for shape in each["parameters"]["properties"].values())
    names = [each["name"] for each in definitions]
    assert len(names) == len(set(names)) > 10


def test_openai_definitions_are_strict(alice: Toolbox) -> None:
    definitions: list[Any] = alice.get_tool_definitions("openai")
    open_tools = set()
    for each in definitions:
        parameters = each["function"]["parameters"]
        if not each["function"]["strict"]:
            # It takes any JSON, which strict mode does not allow.
            open_tools.add(each["function"]["name"])
            continue
        assert parameters["additionalProperties"] is False
        assert parameters["required"] == list(parameters["properties"])
        for shape in parameters["properties"].values():
            assert shape.get("required", []) == list(shape.get("properties", []))
    assert open_tools == {"realtime_create_document", "realtime_set_field", "realtime_merge_state"}
    write = next(each["function"] for each in definitions if each["function"]["name"] == "collab_write")
    assert write["parameters"]["properties"]["expected_version"]["type"] == ["integer", "null"]
    assert (
        ok(alice, "collab_write", filepath="x", content="x", message="m", expected_version=None)["version"]
        == 1
    )


def test_anthropic_definitions_leave_optionals_optional(alice: Toolbox) -> None:
    definitions: list[Any] = alice.get_tool_definitions("anthropic")
    write = next(each for each in definitions if each["name"] == "collab_write")
    assert "expected_version" not in write["input_schema"]["required"]
    assert "anyOf" not in json.dumps(definitions)


def test_mcp_definitions_carry_annotations_and_output(alice: Toolbox) -> None:
    definitions: list[Any] = alice.get_tool_definitions("mcp")
    for each in definitions:
        assert set(each["annotations"]) == {
            "readOnlyHint",
            "destructiveHint",
            "idempotentHint",
            "openWorldHint",
        }
        assert each["outputSchema"]["required"] == ["success"]
    by_name = {each["name"]: each for each in definitions}
    assert by_name["collab_read"]["annotations"]["readOnlyHint"] is True
    assert by_name["collab_write"]["annotations"]["destructiveHint"] is True
    assert "current_content" in by_name["collab_write"]["outputSchema"]["properties"]


def test_toolsets_can_be_chosen(alice: Toolbox) -> None:
    names = [each["name"] for each in alice.get_tool_definitions(toolsets=["handoff"])]
    assert names == ["handoff_file", "check_my_handoffs", "read_handoff", "acknowledge_handoff"]


@pytest.mark.parametrize("style", ["plain", "openai", "anthropic", "mcp"])
def test_definitions_are_json_and_always_the_same(workspace: Workspace, style: Format) -> None:
    first, second = (json.dumps(workspace.tools("alice").get_tool_definitions(style)) for _ in range(2))
    assert first == second


@pytest.mark.parametrize("language", LANGUAGES)
def test_system_prompt_names_the_agent_its_team_and_its_tools(
    workspace: Workspace, language: Language
) -> None:
    """FILES-5.5."""
    prompt = workspace.tools("alice", language=language).system_prompt()
    for word in ("'alice'", "bob", "charlie", "collab_write", "check_my_handoffs", "is_conflict"):
        assert word in prompt


@pytest.mark.parametrize("language", LANGUAGES)
def test_system_prompt_explains_what_its_tools_are_for_and_nothing_else(
    workspace: Workspace, language: Language
) -> None:
    """One place for each toolset, also of packages that bring their own."""
    alice = workspace.tools("alice", language=language)
    about = {
        "private": "1. .*save_to_my_workspace",
        "handoff": "2. .*handoff_file",
        "collab": "3. .*collab_read",
        "realtime": "4. .*realtime_create_document",
        "board": "5. .*whiteboard_read.*bottom-layer-AGENT",
        "buffer": "(?m)^[^-].*open_buffer",
    }
    prompt = alice.system_prompt()
    assert [toolset for toolset, words in about.items() if not re.search(words, prompt)] == []
    assert re.search("(?m)^[^-].*whiteboard_append.*whiteboard_update_section", prompt)
    some = alice.system_prompt(toolsets=["private", "board"])
    assert re.search("1. .*save_to_my_workspace(?s:.)*2. .*whiteboard_read", some)
    for word in ("collab_read", "realtime", "handoff_file", "open_buffer"):
        assert word not in some
    assert "1." not in alice.system_prompt(toolsets=["request"])
