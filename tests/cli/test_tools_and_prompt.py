"""``watchroom tools`` and ``watchroom prompt``: the input of a model."""

from __future__ import annotations

import pytest
from cli.running import Captured, misuse, printed, printed_json, refusal
from watchroom.features.calls.tool_registry import all_tools

FOR_AGENTS = [tool.name for tool in all_tools().values() if tool.is_for(human=False)]
AT_FIRST = [
    name
    for name in FOR_AGENTS
    if all_tools()[name].toolset not in ("file", "agent") and name != "close_buffer"
]
"""The tools of an agent without a task and an open buffer."""


@pytest.mark.parametrize("form", ["plain", "openai", "anthropic", "mcp"])
def test_tools_prints_every_tool_of_agents_in_each_format(capsys: Captured, form: str) -> None:
    definitions = printed_json(capsys, "tools", "--format", form)
    names = [each.get("name") or each["function"]["name"] for each in definitions]
    assert names == FOR_AGENTS


def test_tools_takes_a_choice_of_toolsets_and_a_language(capsys: Captured) -> None:
    definitions = printed_json(capsys, "tools", "--toolsets", "private,handoff", "--language", "zh")
    names = {each["name"] for each in definitions}
    chosen = [tool for tool in all_tools().values() if tool.toolset in ("private", "handoff")]
    assert names == {tool.name for tool in chosen if tool.audience != "people"}
    assert definitions != printed_json(capsys, "tools", "--toolsets", "private,handoff")


def test_an_unknown_format_is_wrong_usage(capsys: Captured) -> None:
    assert "--format" in misuse(capsys, "tools", "--format", "yaml")


def test_an_unknown_toolset_is_wrong_usage_and_not_an_empty_list(capsys: Captured) -> None:
    assert "colab" in misuse(capsys, "tools", "--toolsets", "colab")


def test_prompt_names_the_agent_its_team_and_its_tools(capsys: Captured, team: str) -> None:
    prompt = printed(capsys, "prompt", team, "alice")
    for word in ("alice", "bob", "charlie", *AT_FIRST):
        assert word in prompt
    assert "resolve_conflict" not in prompt
    assert "get_workspace_info" not in prompt
    assert "close_buffer" not in prompt
    assert "mallory" in refusal(capsys, "prompt", team, "mallory")
