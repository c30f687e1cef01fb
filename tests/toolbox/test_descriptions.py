"""What the definitions of tools say of their arguments."""

from __future__ import annotations

import pytest
from watchroom import Workspace


@pytest.mark.parametrize("tool", ["pause_agent", "resume_agent", "cancel_agent"])
def test_an_agent_that_is_steered_is_not_described_as_a_workspace(workspace: Workspace, tool: str) -> None:
    definitions = workspace.tools_for_human("dana").get_tool_definitions("mcp")
    schema = next(each["inputSchema"] for each in definitions if each["name"] == tool)
    assert isinstance(schema, dict)
    assert schema["properties"]["agent_id"]["description"] == "The agent's id."
