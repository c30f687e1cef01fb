"""For OpenAI's function calling, and whatever speaks the chat completions API. Needs nothing but the toolbox.

The definitions are those of ``toolbox.get_tool_definitions("openai")``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Protocol

from watchroom.model import Json
from watchroom.toolbox import Toolbox


class CalledFunction(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def arguments(self) -> str:
        """JSON text, as the model wrote it."""
        ...


class FunctionCall(Protocol):
    """A tool call as the ``openai`` package has it."""

    @property
    def id(self) -> str: ...

    @property
    def function(self) -> CalledFunction: ...


def tool_messages(toolbox: Toolbox, calls: Iterable[FunctionCall] | None) -> list[dict[str, Json]]:
    """Run the tool ``calls`` of an answer by ``toolbox``, in order; returns the messages with their results.
    A refused call is a result as well: nothing that a model sends raises."""
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
