"""Tools for Pydantic AI: ``pip install 'watchroom[pydantic-ai]'``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, cast

from pydantic_ai import Tool

from watchroom.features.calls.toolbox import Toolbox, ToolResult
from watchroom.model import Json


def pydantic_ai_tools(toolbox: Toolbox, *, toolsets: Iterable[str] | None = None) -> list[Tool[Any]]:
    """Return the tools of ``toolbox``.

    ``toolsets``: the names of the toolsets, default all. A refusal becomes a result for the model, never an
    exception.
    """
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
