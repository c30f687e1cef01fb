"""What agents ask of people, and how far their sessions are, as the rows tell."""

from __future__ import annotations

import asyncio
import time

from calls import ok
from projections.folding import folded
from runtime.weather import call, calling
from tui.sessions import asks, running, says
from watchroom import Json, Workspace
from watchroom.features.calls.proposals import proposal
from watchroom.features.overview.agents import AgentView
from watchroom.features.overview.model import urgent_needs


def view(workspace: Workspace, agent: str) -> AgentView:
    found = folded(workspace.journal).agent(agent)
    assert found is not None
    return found


async def asked(workspace: Workspace, count: int = 1) -> int:
    """Until so many requests are open; gives the number of the newest."""
    committed = asyncio.Event()
    loop = asyncio.get_running_loop()

    def wake() -> None:
        loop.call_soon_threadsafe(committed.set)

    end = workspace.subscribe(wake)
    while len(requests := folded(workspace.journal).requests) < count:
        await asyncio.wait_for(committed.wait(), 20)
        committed.clear()
    end()
    return requests[0].id


async def test_a_request_needs_a_person_until_it_is_answered(workspace: Workspace) -> None:
    save = call("save_to_my_workspace", filename="x.md", content="x")
    async with running(workspace, "bob", calling(save), says("Done."), ask=["save_to_my_workspace"]) as bob:
        number = await asked(workspace)
        model = folded(workspace.journal)
        (request,) = model.requests
        assert (request.id, request.agent, request.kind) == (number, "bob", "approve")
        assert (request.tools, request.subjects) == (("save_to_my_workspace",), ("x.md",))
        assert request.session == bob.session.path
        (need,) = model.needs
        assert (need.kind, need.row.seq, need.is_acknowledgeable) == ("request", number, False)
        assert view(workspace, "bob").request == request
        assert view(workspace, "bob").status(time.time_ns()) == "waiting"
        ok(workspace.tools_for_human("dana"), "answer_request", request=number, approved=True)
        await bob.ended()
    model = folded(workspace.journal)
    assert (model.requests, model.needs) == ((), ())
    (answered,) = model.ended_requests
    assert (answered.id, answered.outcome, answered.is_answered) == (number, "approved", True)
    assert view(workspace, "bob").request is None


async def test_a_request_whose_time_is_over_presses_nobody(workspace: Workspace) -> None:
    async with running(workspace, "bob", asks("Which?"), patience=3600):
        await asked(workspace)
        model = folded(workspace.journal)
        now = time.time_ns()
        assert [need.kind for need in urgent_needs(model, now)] == ["request"]
        assert view(workspace, "bob").status(now) == "waiting"
        later = now + 3600 * 1_000_000_000
        assert urgent_needs(model, later) == ()
        assert view(workspace, "bob").status(later) == "idle", "its process died, or it would have gone on"


async def test_a_request_goes_with_the_session_that_is_ended(workspace: Workspace) -> None:
    async with running(workspace, "bob", asks("Which?")) as bob:
        await asked(workspace)
        ok(workspace.tools_for_human("dana"), "cancel_agent", agent_id="bob")
        await bob.ended()
    model = folded(workspace.journal)
    assert model.requests == ()
    assert [each.outcome for each in model.ended_requests] == ["withdrawn"]


async def test_an_agents_newest_session_says_how_it_stands(workspace: Workspace) -> None:
    async with running(workspace, "bob", says("One."), task="The first task.\nWith details.") as bob:
        await bob.ended()
    async with running(workspace, "bob", says("Two."), task="The second task.") as bob:
        await bob.ended()
        session = view(workspace, "bob").session
        assert session is not None
        assert (session.path, session.title, session.status) == (bob.session.path, "The second task.", "done")
    bob_view = view(workspace, "bob")
    assert bob_view.status(bob_view.last_heard) == "done"


async def test_steps_are_rows_but_not_what_an_agent_did(workspace: Workspace) -> None:
    save = call("save_to_my_workspace", filename="x.md", content="x")
    async with running(workspace, "bob", calling(save), says("Done.")) as bob:
        await bob.ended()
    workspace.flush()
    model = folded(workspace.journal)
    assert [row.tool for row in model.recent if row.actor == "bob"] == ["save_to_my_workspace"]
    assert {"call_llm", "call_tool", "finish"} <= {row.tool for row in model.newest}
    bob_view = view(workspace, "bob")
    assert bob_view.rows == sum(bob_view.activity.values()) == 1
    assert bob_view.last is not None
    assert str(bob_view.last.detail["call"]).startswith(f"{bob.session.state.session_id}/")


def test_what_a_call_would_change_is_found_for_every_tool_that_writes(workspace: Workspace) -> None:
    alice, board = workspace.tools("alice"), "bottom-layer-alice"
    for number, text in enumerate(("one", "two")):
        write = {"filepath": "plan.md", "content": text, "message": text, "expected_version": number}
        ok(alice, "collab_write", **write)
        ok(alice, "whiteboard_write", board=board, content=text, message=text, expected_version=number)
    ok(alice, "save_to_my_workspace", filename="own.md", content="mine")
    ok(alice, "handoff_file", to_agent="bob", filename="raw.md", content="old", message="x")
    cases: dict[str, tuple[dict[str, Json], str, str]] = {
        "collab_write": ({"filepath": "plan.md", "content": "new", "expected_version": 1}, "two", "new"),
        "collab_rollback": ({"filepath": "plan.md", "to_version": 1}, "two", "one"),
        "save_to_my_workspace": ({"filename": "own.md", "content": "new"}, "mine", "new"),
        "delete_from_my_workspace": ({"filename": "own.md"}, "mine", ""),
        "handoff_file": ({"filename": "raw.md", "content": "new", "to_agent": "bob"}, "old", "new"),
        "whiteboard_write": ({"board": board, "content": "new", "expected_version": 1}, "two", "new"),
        "whiteboard_restore": ({"board": board, "version": 1}, "two", "one"),
    }
    for tool, (arguments, before, after) in cases.items():
        would = proposal(workspace.journal, "alice", tool, arguments)
        assert would is not None, tool
        assert (would.before, would.after) == (before, after), tool
        assert would.is_stale is (tool in ("collab_write", "whiteboard_write"))
        assert proposal(workspace.journal, "alice", tool, {}) is None
    assert proposal(workspace.journal, "alice", "collab_read", {"filepath": "plan.md"}) is None


def test_what_a_flush_would_write_is_found_in_its_buffer(workspace: Workspace) -> None:
    alice = workspace.tools("alice")
    ok(alice, "collab_write", filepath="plan.md", content="one\n", message="m")
    ok(alice, "open_buffer", source="collab", path="plan.md")
    ok(alice, "plan_append", text="two\n")
    would = proposal(workspace.journal, "alice", "plan_flush", {"message": "More."})
    assert would is not None
    assert (would.zone, would.path) == ("collab", "plan.md")
    assert (would.before, would.after, would.is_stale) == ("one\n", "one\ntwo\n", False)
    ok(
        workspace.tools("bob"),
        "collab_write",
        filepath="plan.md",
        content="x",
        message="m",
        expected_version=1,
    )
    would = proposal(workspace.journal, "alice", "plan_flush", {})
    assert would is not None
    assert would.is_stale
    assert proposal(workspace.journal, "bob", "plan_flush", {}) is None
    assert proposal(workspace.journal, "alice", "_flush", {}) is None
    ok(alice, "close_buffer", buffer="plan", discard=True)
    assert proposal(workspace.journal, "alice", "plan_flush", {}) is None
