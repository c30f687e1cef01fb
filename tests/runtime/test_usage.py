"""What models use is counted by kind, and priced once, when its row is written."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from watchroom import Workspace
from watchroom.agents.clients.events import ClientInfo, MessageCompleted
from watchroom.agents.clients.session import ClientSession
from watchroom.features.budgets.rows import UsageTotal, usage_of
from watchroom.features.sessions.runtime import ChatAgent, ModelPayload
from watchroom.features.sessions.runtime.models import ModelChunk, Usage
from watchroom.features.sessions.runtime.models.chat_completions import AnswerReader
from watchroom.features.sessions.runtime.prices import price_usage

ANSWER = (
    '{"object": "chat.completion", "model": "gpt-4o", "choices": [{"index": 0, "finish_reason": "stop",'
    ' "message": {"role": "assistant", "content": "Hello"}}], "usage": {"prompt_tokens": 1000,'
    ' "completion_tokens": 100, "prompt_tokens_details": {"cached_tokens": 600}}}'
)


def test_cached_tokens_are_not_counted_twice() -> None:
    reader = AnswerReader(1_000_000, ())
    chunks = [*reader.feed(ANSWER.encode()), *reader.end("application/json")]
    (usage,) = [chunk.usage for chunk in chunks if chunk.usage]
    assert (usage.input_tokens, usage.cache_read_tokens, usage.output_tokens) == (400, 600, 100)
    assert usage.model == "gpt-4o"


@pytest.mark.parametrize(
    ("model", "used", "dollars"),
    [
        # 400 at $2.50, 600 cached at $1.25, 100 at $10 a million.
        ("gpt-4o", UsageTotal(400, 100, 600), 0.00275),
        # 400 at $3, 600 read at $0.30, 200 written at $3.75, 100 at $15 a million.
        ("claude-sonnet-4-5", UsageTotal(400, 100, 600, 200), 0.00363),
    ],
)
def test_the_table_of_prices_knows_what_was_cached(model: str, used: UsageTotal, dollars: float) -> None:
    priced = price_usage(used, model)
    assert priced.cost == pytest.approx(dollars)
    assert (priced.priced_by, priced.unpriced) == ("table", 0)


@pytest.mark.parametrize("model", ["", "nobody-knows-this-model"])
def test_what_nobody_knows_the_price_of_is_unpriced_and_never_free(model: str) -> None:
    priced = price_usage(UsageTotal(5, 7), model)
    assert priced.unpriced == 12
    assert priced.known_cost is None


async def says_hello(payload: ModelPayload) -> AsyncIterator[ModelChunk]:
    usage = Usage(input_tokens=400, output_tokens=100, cache_read_tokens=600, model="gpt-4o")
    yield ModelChunk(content="Hello", usage=usage, finish_reason="stop")


async def test_a_session_says_what_each_answer_cost(workspace: Workspace) -> None:
    messages = [{"role": "user", "content": "Say hello"}]
    agent = ChatAgent({}, model_runtime=says_hello)
    async with workspace.sessions.begin("alice", agent, messages=messages) as session:
        state = await session.run()
    spent = state.spent
    assert (spent.input_tokens, spent.cache_read_tokens, spent.output_tokens) == (400, 600, 100)
    assert spent.cost == pytest.approx(0.00275)
    records = [usage_of(row) for row in workspace.journal.history("session", session.path)]
    assert [each for each in records if each] == [
        ("gpt-4o", UsageTotal(400, 100, 600, cost=0.00275, priced_by="table"))
    ]


def test_what_a_client_says_it_cost_counts_before_the_table(workspace: Workspace) -> None:
    session = ClientSession(workspace, "alice", "s-1", ClientInfo("claude"))
    said = UsageTotal(400, 100, cost=0.5, priced_by="client")
    row = session.record(MessageCompleted("Hello", model="gpt-4o", used=said))
    assert row is not None
    assert usage_of(row) == ("gpt-4o", said)
    row = session.record(MessageCompleted("Hello", model="gpt-4o", used=UsageTotal(400, 100, 600)))
    assert row is not None
    record = usage_of(row)
    assert record is not None
    assert record.usage.cost == pytest.approx(0.00275)
