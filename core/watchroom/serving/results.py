"""Results of tools as those of the protocol: structured, and as text for clients that read only that."""

from __future__ import annotations

import json

from mcp import types

from watchroom.toolbox.toolbox import ToolResult


def to_call_tool_result(result: ToolResult, notice: str = "") -> types.CallToolResult:
    """Return ``result`` as the protocol has it: a refusal or a conflict is an error that the model reads,
    never one of the protocol. ``notice`` is what else the model is told."""
    markdown = result.get("markdown")
    text = markdown if isinstance(markdown, str) else json.dumps(result, ensure_ascii=False)
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=each) for each in (notice, text) if each],
        structured_content=result,
        is_error=result.get("success") is not True,
    )
