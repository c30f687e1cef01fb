"""Call tools as an agent would, and check the outcome."""

from __future__ import annotations

from typing import Any

from watchroom import Toolbox


def ok(toolbox: Toolbox, tool: str, **arguments: object) -> dict[str, Any]:
    """Return the result of a call that must succeed."""
    result: dict[str, Any] = toolbox.dispatch_tool_call(tool, arguments)  # type: ignore[arg-type]
    assert result["success"] is True, result
    return result


def refused(toolbox: Toolbox, tool: str, **arguments: object) -> dict[str, Any]:
    """Return the result of a call that must be refused, with error, message and suggestion."""
    result: dict[str, Any] = toolbox.dispatch_tool_call(tool, arguments)  # type: ignore[arg-type]
    assert result["success"] is False, result
    assert result["error"]
    assert result["message"]
    assert result["suggestion"]
    return result
