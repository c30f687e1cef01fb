"""For Anthropic's tool use. Needs nothing but the toolbox.

The definitions are those of ``toolbox.get_tool_definitions("anthropic")``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from watchroom.model import Json
from watchroom.toolbox import Toolbox


def tool_results(toolbox: Toolbox, content: Iterable[object]) -> list[dict[str, Json]]:
    """Run the calls among the blocks ``content`` of an answer by ``toolbox``, in order; returns the content
    of the next user message, empty if nothing was called. A refused call is a result with ``is_error``:
    nothing that a model sends raises."""
    results: list[dict[str, Json]] = []
    for block in content:
        if getattr(block, "type", None) != "tool_use":
            continue
        given = getattr(block, "input", None)
        arguments: Mapping[str, Json] = given if isinstance(given, Mapping) else {}
        result = toolbox.dispatch_tool_call(str(getattr(block, "name", "")), arguments)
        results.append(
            {
                "type": "tool_result",
                "tool_use_id": str(getattr(block, "id", "")),
                "content": json.dumps(result, ensure_ascii=False),
                "is_error": result["success"] is not True,
            }
        )
    return results
