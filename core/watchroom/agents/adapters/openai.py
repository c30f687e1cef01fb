"""Function calling with the chat completions API of OpenAI and others, without further dependencies.

The tool definitions come from ``toolbox.get_tool_definitions("openai")``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Protocol

from watchroom.features.calls.toolbox import Toolbox
from watchroom.model import Json


class CalledFunction(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def arguments(self) -> str:
        """The arguments as JSON text from the model."""
        ...


class FunctionCall(Protocol):
    """A tool call of the ``openai`` package."""

    @property
    def id(self) -> str: ...

    @property
    def function(self) -> CalledFunction: ...


def tool_messages(toolbox: Toolbox, calls: Iterable[FunctionCall] | None) -> list[dict[str, Json]]:
    """Run the tool calls of a response in order. Return the messages with their results.

    A refused call also becomes a result. No input from the model raises an error.
    """
    return [
        {
            "role": "tool",
            "tool_call_id": call.id,
            "content": _text(toolbox.dispatch_tool_call(call.function.name, call.function.arguments)),
        }
        for call in calls or ()
    ]


def _text(result: Mapping[str, Json]) -> str:
    return json.dumps(result, ensure_ascii=False)
