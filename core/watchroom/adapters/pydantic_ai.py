"""For Pydantic AI: ``pip install 'watchroom[pydantic-ai]'``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, cast

from pydantic_ai import Tool

from watchroom.model import Json
from watchroom.toolbox import Toolbox
from watchroom.toolbox.toolbox import ToolResult


def pydantic_ai_tools(toolbox: Toolbox, *, toolsets: Iterable[str] | None = None) -> list[Tool[Any]]:
    """Return the tools of ``toolbox``, or of some of its ``toolsets``. A refusal is a result that the model
    reads, never an exception."""
    return [
        Tool.from_schema(
            _caller(toolbox, str(each["name"])),
            name=str(each["name"]),
            description=str(each["description"]),
            json_schema=cast("dict[str, Any]", each["parameters"]),
        )
        for each in toolbox.get_tool_definitions(toolsets=toolsets)
    ]


def _caller(toolbox: Toolbox, name: str) -> Callable[..., ToolResult]:
    def call(**arguments: Json) -> ToolResult:
        return toolbox.dispatch_tool_call(name, arguments)

    return call
