"""docs/traces.md names each attribute that spans have, by the kinds of spans, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from watchroom import Workspace
from watchroom.agents.clients.events import (
    CallFinished,
    CallStarted,
    ClientInfo,
    MessageCompleted,
    PromptSubmitted,
    SessionEnded,
)
from watchroom.agents.clients.registry import PROVIDERS
from watchroom.agents.clients.session import ClientSession
from watchroom.features.budgets.rows import UsageTotal
from watchroom.features.sessions import reads as sessions
from watchroom.features.sessions.runtime import ChatAgent
from watchroom.features.sessions.runtime.models import ModelChunk
from watchroom.history.spans import MAX_MESSAGES, SpanReader

PAGE = (Path(__file__).parents[2] / "docs" / "traces.md").read_text(encoding="utf-8")
KINDS = {"invoke_agent": "turn", "chat": "chat", "execute_tool": "call", "tools/call": "MCP call"}
"""The kinds of spans in the table, by the first word of their names."""
ERRORS = {"error.type"}
CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


async def test_it_names_every_attribute_and_the_bounds(workspace: Workspace) -> None:
    async def says_hello(payload: object):  # type: ignore[no-untyped-def]  # chunks, one after the other
        yield ModelChunk(content="Hello", finish_reason="stop")

    agent = ChatAgent({}, model_runtime=says_hello)
    async with workspace.sessions.begin("bob", agent, messages=[{"role": "user", "content": "Hi"}]) as run:
        await run.run()
    session = ClientSession(workspace, "alice", "s-1", ClientInfo("claude", model="big"))
    for event in (
        PromptSubmitted("Write"),
        MessageCompleted("I write.", model="big", used=UsageTotal(1, 2, 3, 4, 0.5, priced_by="client")),
        CallStarted("c1", "Write", '{"file_path": "a"}'),
        CallFinished("c1", "no such folder", is_error=True),
        SessionEnded(),
    ):
        session.record(event)
    alice = workspace.tools("alice")
    arguments = {"filename": "a.md", "content": "mine"}
    alice.dispatch_tool_call("save_to_my_workspace", arguments, trace=alice.begin_trace(CALLER))
    spans = [*SpanReader(workspace.journal, with_content=True, providers=PROVIDERS).read()]
    given = {name for span in spans for name in span.attributes}
    found = set(re.findall(r"`((?:gen_ai|watchroom|mcp|error)\.[a-z_.]+)`", PAGE))
    assert found == given
    # Which spans have an error depends on what failed.
    by_kind = {
        (name, KINDS[span.name.partition(" ")[0]]) for span in spans for name in {*span.attributes} - ERRORS
    }
    assert table() == by_kind
    assert {f"| `{name} " in PAGE for name in KINDS} == {True}
    assert f"{sessions.MAX_TEXT:,} characters of a text" in PAGE
    assert f"{MAX_MESSAGES:,} of the messages" in PAGE


def table() -> set[tuple[str, str]]:
    """The attributes in the table, each with each kind of span that has it, but for errors."""
    _, _, section = PAGE.partition("## Attributes")
    found = set()
    for line in section.splitlines():
        if line.startswith("| `"):
            names, kinds, _ = (each.strip() for each in line.strip("|").split("|", 2))
            listed = [*KINDS.values()] if kinds == "all" else kinds.split(", ")
            found |= {(name, kind) for name in re.findall("`([^`]+)`", names) for kind in listed}
    return {(name, kind) for name, kind in found if name not in ERRORS}
