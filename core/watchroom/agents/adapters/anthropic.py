"""Tool use with Anthropic's API, without further dependencies.

The tool definitions come from ``toolbox.get_tool_definitions("anthropic")``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from watchroom.features.calls.toolbox import Toolbox
from watchroom.model import Json


def tool_results(toolbox: Toolbox, content: Iterable[object]) -> list[dict[str, Json]]:
    """Run the tool calls of a response in order.

    - ``toolbox``: runs the calls.
    - ``content``: the blocks of the response.

    Return the content of the next user message, empty if there were no calls. A refused call becomes a
    result with ``is_error``. No input from the model raises an error.
    """
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
