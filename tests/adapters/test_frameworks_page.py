"""The page on other frameworks, tried as it is written, with the frameworks' own fakes for models."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from watchroom import Toolbox, Workspace

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage
    from pydantic_ai.models.function import AgentInfo

PAGE = (Path(__file__).parents[2] / "docs/frameworks.md").read_text(encoding="utf-8")
WRITES: dict[str, Any] = {"filepath": "plan.md", "content": "# Plan\n", "message": "First draft"}
BAD: dict[str, Any] = {"filepath": "../plan.md", "content": "# Plan\n", "message": "m"}
CALLS = [("collab_write", BAD), ("collab_write", WRITES)]
"""What the models call, one after the other, before their last word."""


def example(name: str) -> str:
    (found,) = re.findall(rf"```python {name}\n(.*?)```", PAGE, flags=re.DOTALL)
    return str(found)


@pytest.fixture
def alice(workspace: Workspace) -> Iterator[Toolbox]:
    """Who is refused once, and then writes the plan."""
    yield workspace.tools("alice")
    head = workspace.journal.head("collab", "plan.md")
    assert head is not None
    assert (head.actor, head.version, workspace.journal.content(head.seq)) == ("alice", 1, "# Plan\n")
    (refused,) = [row for row in workspace.journal.rows(limit=1000) if row.outcome == "denied"]
    assert refused.error == "invalid_path"


def answering(*answers: dict[str, Any]) -> tuple[httpx2.Client, list[dict[str, Any]]]:
    """A connection that gives these answers, and what it was asked."""
    waiting, asked = list(answers), []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(json.loads(request.content))
        return httpx2.Response(200, json=waiting.pop(0))

    return httpx2.Client(transport=httpx2.MockTransport(answer)), asked


# The frameworks take seconds to load, and whoever collects the tests imports this module: each is loaded by its test.


def test_openai(alice: Toolbox) -> None:
    from openai import OpenAI

    def says(message: dict[str, Any]) -> dict[str, Any]:
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", **message}}
        return {"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}

    def calls(number: int, tool: str, arguments: object) -> dict[str, Any]:
        function = {"name": tool, "arguments": json.dumps(arguments)}
        return says(
            {"content": None, "tool_calls": [{"id": str(number), "type": "function", "function": function}]}
        )

    answers = [calls(number, *call) for number, call in enumerate(CALLS)]
    http, asked = answering(*answers, says({"content": "Done."}))
    client = OpenAI(api_key="none", base_url="https://models.example.org/v1", http_client=http)
    exec(example("openai"), {"alice": alice, "client": client})
    assert [tool["function"]["name"] for tool in asked[0]["tools"]][:1] == ["save_to_my_workspace"]
    told = [json.loads(each["content"]) for each in asked[-1]["messages"] if each["role"] == "tool"]
    assert [each["success"] for each in told] == [False, True]


def test_anthropic(alice: Toolbox) -> None:
    from anthropic import Anthropic

    def says(*content: dict[str, Any]) -> dict[str, Any]:
        usage = {"input_tokens": 1, "output_tokens": 1}
        more = {"stop_reason": "end_turn", "stop_sequence": None, "usage": usage}
        return {"id": "1", "type": "message", "role": "assistant", "model": "m", "content": content, **more}

    def calls(number: int, tool: str, arguments: object) -> dict[str, Any]:
        return says({"type": "tool_use", "id": f"t{number}", "name": tool, "input": arguments})

    answers = [calls(number, *call) for number, call in enumerate(CALLS)]
    http, asked = answering(*answers, says({"type": "text", "text": "Done."}))
    client = Anthropic(api_key="none", base_url="https://models.example.org", http_client=http)
    exec(example("anthropic"), {"alice": alice, "client": client})
    assert asked[0]["tools"][0]["input_schema"]["type"] == "object"
    told = [block for each in asked[-1]["messages"] if each["role"] == "user" for block in each["content"]]
    assert [block["is_error"] for block in told if isinstance(block, dict)] == [True, False]


def test_langchain(alice: Toolbox) -> None:
    from adapters.scripted_chat_model import ScriptedChatModel

    model = ScriptedChatModel(calls=CALLS)
    exec(example("langchain"), {"alice": alice, "model": model})
    assert len(model.bound) == len(alice.get_tool_definitions())
    told = [json.loads(str(each.content)) for each in model.seen[-1] if each.type == "tool"]
    assert [each["success"] for each in told] == [False, True]


def test_pydantic_ai(alice: Toolbox) -> None:
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
    from pydantic_ai.models.function import FunctionModel

    told: list[Any] = []

    def scripted(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        assert len(info.function_tools) == len(alice.get_tool_definitions())
        told[:] = [
            part.content for each in messages for part in each.parts if isinstance(part, ToolReturnPart)
        ]
        if len(told) < len(CALLS):
            return ModelResponse(parts=[ToolCallPart(*CALLS[len(told)])])
        return ModelResponse(parts=[TextPart("Done.")])

    with closing(asyncio.new_event_loop()) as loop:
        # ``run_sync`` takes the thread's loop, and leaves behind one that it makes.
        asyncio.set_event_loop(loop)
        exec(example("pydantic-ai"), {"alice": alice, "model": FunctionModel(scripted)})
        asyncio.set_event_loop(None)
    assert [each["success"] for each in told] == [False, True]
