"""What agents did, as spans."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from calls import ok
from runtime.weather import Model, call, calling
from watchroom import Json, Toolbox, Workspace
from watchroom.agents.clients.events import (
    CallFinished,
    CallStarted,
    ClientInfo,
    MessageCompleted,
    PromptSubmitted,
    SessionEnded,
    TurnEnded,
    UsageAdded,
)
from watchroom.agents.clients.registry import PROVIDERS
from watchroom.agents.clients.session import ClientSession
from watchroom.features.budgets.rows import UsageTotal
from watchroom.features.calls.agent_tools import agent_tools
from watchroom.features.sessions.runtime import ChatAgent
from watchroom.history.spans import SpanProjection, SpanReader, SpanRecord

CLAUDE = ClientInfo("claude", model="asked-for")
HELLO = ({"role": "user", "content": "Say the secret word"},)
USED = {"input_tokens": 400, "output_tokens": 100, "cache_read_tokens": 600, "model": "gpt-4o"}
CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def spans_of(workspace: Workspace, *, since: int = 0, with_content: bool = False) -> list[SpanRecord]:
    workspace.flush()
    reader = SpanReader(workspace.journal, since=since, with_content=with_content, providers=PROVIDERS)
    return list(reader.read())


def named(spans: list[SpanRecord], name: str) -> SpanRecord:
    (found,) = [span for span in spans if span.name == name]
    return found


async def run_alice(workspace: Workspace) -> None:
    """A session of two answers, and two calls, of which one fails."""
    write: dict[str, Json] = {
        "filepath": "plan.md",
        "content": "one",
        "message": "m",
        "expected_version": 0,
    }
    calls = calling(call("collab_write", "c1", **write), call("collab_read", "c2", filepath="none.md"))
    answers = [*calls, {"usage": USED, "finish_reason": "tool_calls"}]
    model = Model(answers, [{"content": "Done.", "usage": USED, "finish_reason": "stop"}])
    agent = ChatAgent(agent_tools(workspace.tools("alice")), model_runtime=model)
    async with workspace.sessions.begin("alice", agent, messages=HELLO) as session:
        await session.run()


async def test_a_session_is_a_span_with_its_answers_and_calls_within(workspace: Workspace) -> None:
    await run_alice(workspace)
    spans = spans_of(workspace)
    assert [span.name for span in spans] == [
        "chat gpt-4o",
        "execute_tool collab_write",
        "execute_tool collab_read",
        "chat gpt-4o",
        "invoke_agent alice",
    ]
    whole = spans[-1]
    assert (whole.parent_id, whole.kind, whole.error) == ("", "internal", "")
    assert {span.trace_id for span in spans} == {whole.trace_id}
    assert {span.parent_id for span in spans[:-1]} == {whole.span_id}
    assert len({span.span_id for span in spans}) == 5
    assert all(whole.start <= span.start <= span.end <= whole.end for span in spans)
    assert [span.kind for span in spans[:2]] == ["client", "internal"]
    assert (spans[1].error, spans[2].error) == ("", "file_not_found")
    assert spans[2].attributes["error.type"] == "file_not_found"
    assert spans[1].attributes["gen_ai.tool.call.id"] == "c1"
    assert spans[0].attributes["gen_ai.response.finish_reasons"] == ("tool_calls",)
    for span in spans:
        assert span.attributes["gen_ai.agent.name"] == "alice"
        assert str(span.attributes["gen_ai.conversation.id"]).startswith("alice/")
    assert [span.attributes["gen_ai.operation.name"] for span in spans] == [
        span.name.partition(" ")[0] for span in spans
    ]


async def test_usage_is_that_of_the_answers_and_cached_tokens_are_input(workspace: Workspace) -> None:
    await run_alice(workspace)
    (first, *_) = spans = spans_of(workspace)
    assert first.attributes["gen_ai.usage.input_tokens"] == 1000
    assert first.attributes["gen_ai.usage.output_tokens"] == 100
    assert first.attributes["gen_ai.usage.cache_read.input_tokens"] == 600
    assert first.attributes["gen_ai.response.model"] == "gpt-4o"
    assert first.attributes["watchroom.usage.cost"] == pytest.approx(0.00275)
    counted = [span.attributes.get("gen_ai.usage.output_tokens", 0) for span in spans]
    assert sum(int(str(each)) for each in counted) == 200


@pytest.mark.parametrize(
    ("client", "provider"), [("claude", "anthropic"), ("codex", "openai"), ("opencode", None)]
)
def test_the_provider_is_told_where_the_client_knows_but_one(
    workspace: Workspace, client: str, provider: str | None
) -> None:
    session = ClientSession(workspace, "alice", "s-1", ClientInfo(client, model="big"))
    session.record(PromptSubmitted("Write"))
    session.record(MessageCompleted("Done.", model="big", used=UsageTotal(1, 2, cache_write=5)))
    chat = named(spans_of(workspace), "chat big")
    assert chat.attributes.get("gen_ai.provider.name") == provider
    assert chat.attributes["gen_ai.usage.input_tokens"] == 6
    assert chat.attributes["gen_ai.usage.cache_write.input_tokens"] == 5


async def test_what_waited_for_a_person_is_not_in_the_time_of_a_step(workspace: Workspace) -> None:
    await run_alice(workspace)
    projection = SpanProjection(workspace.journal.content)
    spans: list[SpanRecord] = []
    for row in workspace.journal.rows():
        steps = row.version or 0
        worked = re.sub(r'"seconds": [0-9.]+', f'"seconds": {2 * steps}', row.detail_json)
        spans += projection.apply(row._replace(time=row.seq * 10**10, detail_json=worked))
    assert [span.end - span.start for span in spans[:-1]] == [2 * 10**9] * 4
    assert spans[-1].end - spans[-1].start > 5 * 10**10


async def test_no_text_is_told_unless_it_is_wanted(workspace: Workspace) -> None:
    await run_alice(workspace)
    told = json.dumps([dict(span.attributes) for span in spans_of(workspace)])
    assert not any(text in told for text in ("secret", "Done.", "plan.md", "none.md"))
    spans = spans_of(workspace, with_content=True)
    given = json.loads(str(spans[0].attributes["gen_ai.input.messages"]))
    assert given[-1] == {"role": "user", "parts": [{"type": "text", "content": "Say the secret word"}]}
    said = json.loads(str(spans[-2].attributes["gen_ai.output.messages"]))
    assert said == [{"role": "assistant", "parts": [{"type": "text", "content": "Done."}]}]
    assert "plan.md" in str(spans[1].attributes["gen_ai.tool.call.arguments"])
    assert json.loads(str(spans[1].attributes["gen_ai.tool.call.result"]))["success"] is True


async def test_they_are_the_same_whenever_and_in_how_many_parts_they_are_read(workspace: Workspace) -> None:
    await run_alice(workspace)
    spans = spans_of(workspace)
    for cut in {span.row for span in spans}:
        assert [span for span in spans if span.row > cut] == spans_of(workspace, since=cut)
    projection = SpanProjection(workspace.journal.content)
    assert [span for row in workspace.journal.rows() for span in projection.apply(row)] == spans


def test_a_client_s_answer_is_one_span_though_its_usage_comes_later(workspace: Workspace) -> None:
    session = ClientSession(workspace, "alice", "s-1", CLAUDE)
    for event in (
        PromptSubmitted("Write"),
        MessageCompleted("I write."),
        CallStarted("c1", "Write", '{"file_path": "a"}'),
        UsageAdded(UsageTotal(10, 5, cost=0.5, priced_by="client"), "big"),
        CallFinished("c1", "no such folder", is_error=True),
        MessageCompleted("It did not work."),
        TurnEnded(),
        PromptSubmitted("Try again"),
        MessageCompleted("Written."),
        TurnEnded(),
        UsageAdded(UsageTotal(10, 5), "big"),
        SessionEnded(),
    ):
        session.record(event)
    *spans, whole = spans_of(workspace)
    chat, call = "chat asked-for", "execute_tool Write"
    assert [span.name for span in spans] == [chat, call, chat, chat]
    measured, made, unmeasured, late = spans
    assert measured.attributes["gen_ai.request.model"] == "asked-for"
    assert measured.attributes["gen_ai.response.model"] == "big"
    assert measured.attributes["watchroom.usage.cost"] == 0.5
    assert "gen_ai.usage.input_tokens" not in unmeasured.attributes
    assert made.error == "failed"
    rows = {row.version: row.time for row in workspace.journal.history("session", session.path)}
    assert (made.start, made.end) == (rows[4], rows[6])
    assert (measured.start, measured.end) == (rows[2], rows[3])
    assert (unmeasured.start, unmeasured.end) == (rows[6], rows[7])
    assert (late.start, late.end) == (rows[9], rows[10]), "its usage was told after the turn had ended"
    assert late.attributes["gen_ai.usage.output_tokens"] == 5
    assert {span.parent_id for span in spans} == {whole.span_id}


def test_usage_that_is_told_after_the_call_is_of_the_answer_before_it(workspace: Workspace) -> None:
    session = ClientSession(workspace, "alice", "s-1", CLAUDE)
    for event in (
        PromptSubmitted("Write"),
        CallStarted("c1", "Write", "{}"),
        CallFinished("c1", "written"),
        UsageAdded(UsageTotal(10, 5), "big"),
        MessageCompleted("Done.", model="big", used=UsageTotal(10, 5)),
    ):
        session.record(event)
    (_, first, second) = spans_of(workspace)
    rows = {row.version: row.time for row in workspace.journal.history("session", session.path)}
    assert (first.start, first.end) == (rows[2], rows[5])
    assert (second.start, second.end) == (rows[5], rows[6])


def test_a_session_that_goes_on_after_its_end_is_another_span_and_the_first_stays(
    workspace: Workspace,
) -> None:
    session = ClientSession(workspace, "alice", "s-1", CLAUDE)
    session.record(PromptSubmitted("One"))
    session.record(SessionEnded("error", "lost"))
    session.record(SessionEnded("done"))
    before = spans_of(workspace)
    (first,) = before
    assert (first.error, first.attributes["watchroom.session.status"]) == ("client_failed", "error")
    session.record(PromptSubmitted("Two"))
    session.record(CallStarted("c1", "Read"))
    session.record(CallFinished("c1", "text"))
    session.record(SessionEnded("done"))
    spans = spans_of(workspace)
    assert spans[:1] == before
    (_, made, second) = spans
    assert second.links == (first.span_id,)
    assert made.parent_id == second.span_id != first.span_id
    assert second.trace_id == first.trace_id
    assert second.attributes["gen_ai.conversation.id"] == first.attributes["gen_ai.conversation.id"]
    assert first.end <= second.start


def test_subagents_are_below_the_calls_that_they_come_from(workspace: Workspace) -> None:
    main = ClientSession(workspace, "alice", "s-1", CLAUDE)
    main.record(CallStarted("t1", "Task"))
    main.record(CallStarted("t2", "Task"))
    children = [
        ClientSession(workspace, "alice", f"s-1.{number}", CLAUDE, parent=main.path) for number in (1, 2, 3)
    ]
    for child in children:
        child.record(SessionEnded())
    main.record(CallFinished("t2", "done"))
    main.record(CallFinished("t1", "done"))
    main.record(SessionEnded())
    spans = spans_of(workspace)
    by_call = {span.attributes.get("gen_ai.tool.call.id"): span.span_id for span in spans[3:5]}
    below = [span.parent_id for span in spans[:3]]
    assert below == [by_call["t1"], by_call["t2"], spans[-1].span_id]
    assert len({span.trace_id for span in spans}) == 1


async def test_an_agent_is_below_the_call_that_spawned_it(workspace: Workspace, tmp_path: Path) -> None:
    task = workspace.tasks.submit("human:dana", "Build something.", tmp_path / "folder")
    workspace.members.start(task)
    given = {"role": "architect", "instructions": "Plan it."}
    answers = (
        calling(call("check_my_handoffs", "c1"), call("spawn_agent", "c2", **given)),
        [{"content": "x"}],
    )
    agent = ChatAgent(agent_tools(workspace.tools("root")), model_runtime=Model(*answers))
    async with workspace.sessions.begin("root", agent, messages=HELLO) as session:
        await session.run()
    ClientSession(workspace, "architect", "s-1", CLAUDE).record(SessionEnded())
    spans = spans_of(workspace)
    spawn, child = named(spans, "execute_tool spawn_agent"), named(spans, "invoke_agent architect")
    assert (child.parent_id, child.trace_id) == (spawn.span_id, spawn.trace_id)


def test_a_call_over_mcp_is_below_the_span_of_its_caller(workspace: Workspace, alice: Toolbox) -> None:
    write: dict[str, Json] = {
        "filepath": "plan.md",
        "content": "one",
        "message": "m",
        "expected_version": 0,
    }
    for _ in range(2):
        alice.dispatch_tool_call("collab_write", write, trace=alice.begin_trace(CALLER))
    alice.dispatch_tool_call("collab_list", {}, trace=alice.begin_trace(CALLER[:-1] + "0"))
    ok(alice, "collab_read", filepath="plan.md")
    made, refused = spans_of(workspace)
    assert (made.trace_id, made.parent_id) == ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331")
    assert (made.name, made.kind, made.is_parent_remote) == ("tools/call collab_write", "server", True)
    assert made.span_id != refused.span_id
    assert (made.error, refused.error) == ("", "version_conflict")


def test_what_a_caller_does_not_record_is_no_span(workspace: Workspace, alice: Toolbox) -> None:
    trace = alice.begin_trace(CALLER[:-2] + "00")
    alice.dispatch_tool_call("save_to_my_workspace", {"filename": "a.md", "content": "x"}, trace=trace)
    assert spans_of(workspace) == []


def test_an_agent_that_is_spawned_over_mcp_is_in_the_trace_of_the_caller(
    workspace: Workspace, tmp_path: Path
) -> None:
    task = workspace.tasks.submit("human:dana", "Build something.", tmp_path / "folder")
    workspace.members.start(task)
    root = workspace.tools("root")
    given = {"role": "architect", "instructions": "Plan it."}
    root.dispatch_tool_call("spawn_agent", given, trace=root.begin_trace(CALLER))
    ClientSession(workspace, "architect", "s-1", CLAUDE).record(SessionEnded())
    spawn, child = spans_of(workspace)
    assert (child.parent_id, child.trace_id) == (spawn.span_id, spawn.trace_id)
    assert spawn.parent_id == "b7ad6b7169203331"


def test_what_agents_write_is_bounded_and_an_error_that_is_no_code_is_text(workspace: Workspace) -> None:
    session = ClientSession(workspace, "alice", "s-1", CLAUDE)
    session.record(CallStarted("c" * 5000, "T" * 5000, json.dumps({"text": "\ud800" + "x" * 50_000})))
    session.record(CallFinished("c" * 5000, '{"success": false, "error": "the secret word"}'))
    session.record(PromptSubmitted("y" * 50_000))
    for _ in range(30):
        session.record(PromptSubmitted("z" * 9_000))
    session.record(MessageCompleted("\ud800", model="M" * 5000, used=UsageTotal(2**80)))
    call, chat = spans_of(workspace, with_content=True)
    assert (call.error, call.attributes["error.type"]) == ("_OTHER", "_OTHER")
    assert len(call.name) < 300
    assert chat.attributes["gen_ai.usage.input_tokens"] == 2**63 - 1
    given = json.loads(str(chat.attributes["gen_ai.input.messages"]))
    assert len(given) == 11
    for span in (call, chat):
        assert all(len(str(value).encode()) < 110_000 for value in span.attributes.values())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nonsense",
        "[]",
        "[" * 100_000,
        '{"messages": 7, "events": {"type": "error"}, "metadata": []}',
        '{"messages": [7, {"role": "assistant", "tool_calls": [null, {"id": 7}]}], "events": [{"type": []}]}',
    ],
    ids=lambda text: text[:20],
)
def test_content_that_is_damaged_refuses_nothing(workspace: Workspace, text: str) -> None:
    session = ClientSession(workspace, "alice", "s-1", CLAUDE)
    session.record(MessageCompleted("Hello", used=UsageTotal(1)))
    session.record(SessionEnded())
    projection = SpanProjection(lambda seq: text, with_content=True)
    spans = [span for row in workspace.journal.rows() for span in projection.apply(row)]
    assert [span.name for span in spans] == ["chat", "invoke_agent alice"]
