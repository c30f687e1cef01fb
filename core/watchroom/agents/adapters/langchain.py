"""Tools for LangChain and LangGraph: ``pip install 'watchroom[langchain]'``."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, cast

from langchain_core.tools import BaseTool, StructuredTool

from watchroom.features.calls.toolbox import Toolbox
from watchroom.model import Json


def langchain_tools(toolbox: Toolbox, *, toolsets: Iterable[str] | None = None) -> list[BaseTool]:
    """Return the tools of ``toolbox``.

    ``toolsets``: the names of the toolsets, default all. The tools return JSON. A refusal becomes a result
    for the model, never an exception.
    """
    return [
        StructuredTool(
            name=str(each["name"]),
            description=str(each["description"]),
            args_schema=cast("dict[str, Any]", each["parameters"]),
            func=_caller(toolbox, str(each["name"])),
        )
        for each in toolbox.get_tool_definitions(toolsets=toolsets)
    ]


def _caller(toolbox: Toolbox, name: str) -> Callable[..., str]:
    def call(**arguments: Json) -> str:
        return json.dumps(toolbox.dispatch_tool_call(name, arguments), ensure_ascii=False)

    return call
