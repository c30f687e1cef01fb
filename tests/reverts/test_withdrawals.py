"""What agents sent, asked, held or opened is withdrawn where nobody took it yet; who read it is told."""

from __future__ import annotations

from pathlib import Path

from calls import ok, refused
from reverts.test_reverts import ANN, revert
from watchroom import Toolbox, Workspace
from watchroom.features.overview.fold import Fold
from watchroom.features.overview.model import Model
from watchroom.features.requests.rows import Request
from watchroom.features.reverts.rules import RevertSelection
from watchroom.kernel.call_context import CallContext


def hand(sender: Toolbox, name: str, content: str) -> None:
    ok(sender, "handoff_file", to_agent="bob", filename=name, content=content, message="for you")


def inbox(bob: Toolbox, *, everything: bool = False) -> list[str]:
    found = ok(bob, "check_my_handoffs", include_acknowledged=everything)
    return [each["filename"] for each in found["handoffs"]]


def model_of(workspace: Workspace) -> Model:
    fold = Fold(workspace.journal.content, workspace.journal.row)
    fold.apply(workspace.journal.rows(0, limit=100_000))
    return fold.model()


def told(workspace: Workspace, agent: str) -> str:
    rows = [row for row in workspace.journal.rows(0, limit=100_000) if row.path == agent]
    return "\n".join(row.message for row in rows if row.tool == "send_message")


def test_an_unread_handoff_is_withdrawn_and_a_read_one_is_not(
    root: Path, workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    hand(alice, "spec.md", "first\n")
    ok(bob, "read_handoff", from_agent="alice", filename="spec.md")
    since = workspace.journal.last_seq()
    hand(alice, "spec.md", "spoiled\n")
    hand(alice, "junk.md", "junk\n")
    hand(alice, "read.md", "read\n")
    ok(bob, "read_handoff", from_agent="alice", filename="read.md")
    workspace.flush()
    plan = workspace.reverts.plan(RevertSelection(("alice",), after=since))
    assert [(each.path, each.plan.kind, each.plan.reason) for each in plan.items] == [
        ("alice_to_bob/spec.md", "clean", "withdrawn"),
        ("alice_to_bob/junk.md", "clean", "withdrawn"),
        ("alice_to_bob/read.md", "cannot", "read_already"),
    ]
    outcome = revert(workspace, "alice", after=since)
    assert sorted(inbox(bob)) == ["read.md", "spec.md"]
    assert "junk.md" not in inbox(bob, everything=True)
    assert refused(bob, "read_handoff", from_agent="alice", filename="junk.md")["error"] == "file_not_found"
    assert ok(bob, "read_handoff", from_agent="alice", filename="spec.md")["content"] == "first\n"
    assert not (root / "handoff/alice_to_bob/junk.md").exists()
    assert "already read read.md from alice" in told(workspace, "bob")
    model = model_of(workspace)
    assert "alice_to_bob/junk.md" not in {each.row.path for each in model.deliveries}
    assert all(need.row.path != "alice_to_bob/junk.md" for need in model.needs)
    workspace.reverts.apply(CallContext(ANN), RevertSelection(undo=outcome.id))
    assert "junk.md" in inbox(bob)
    assert ok(bob, "read_handoff", from_agent="alice", filename="spec.md")["content"] == "spoiled\n"
    assert workspace.verify() == []


def test_a_withdrawn_handoff_can_be_delivered_and_withdrawn_again_and_again(
    root: Path, workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    hand(alice, "spec.md", "first\n")
    since = workspace.journal.last_seq()
    hand(alice, "spec.md", "spoiled\n")
    hand(alice, "junk.md", "junk\n")
    done = revert(workspace, "alice", after=since)
    for is_there in (True, False, True, False, True):
        done = workspace.reverts.apply(CallContext(ANN), RevertSelection(undo=done.id))
        assert done.record.could_not == ()
        assert inbox(bob).count("junk.md") == is_there
        assert (root / "handoff/alice_to_bob/junk.md").exists() == is_there
        spec = (root / "handoff/alice_to_bob/spec.md").read_text()
        assert spec == ("spoiled\n" if is_there else "first\n")
    # What came back is the agent's still: to revert it finds it.
    again = revert(workspace, "alice", after=since)
    assert len(again.record.items) == 2
    assert inbox(bob) == ["spec.md"]
    assert (root / "handoff/alice_to_bob/spec.md").read_text() == "first\n"
    workspace.reverts.apply(CallContext(ANN), RevertSelection(undo=again.id))
    assert sorted(inbox(bob)) == ["junk.md", "spec.md"]
    assert workspace.verify() == []


def test_what_an_undo_delivered_and_its_receiver_read_is_not_withdrawn(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    hand(alice, "junk.md", "junk\n")
    first = revert(workspace, "alice", after=0)
    second = workspace.reverts.apply(CallContext(ANN), RevertSelection(undo=first.id))
    assert ok(bob, "read_handoff", from_agent="alice", filename="junk.md")["content"] == "junk\n"
    third = workspace.reverts.apply(CallContext(ANN), RevertSelection(undo=second.id))
    assert third.record.could_not == (("handoff", "alice_to_bob/junk.md", "read_already"),)
    assert "already read junk.md from alice" in told(workspace, "bob")
    assert workspace.verify() == []


def test_open_requests_are_withdrawn_boards_released_and_buffers_closed(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    asked = workspace.requests.ask(CallContext("alice"), "alice/s/1", Request("prompt", "Which?"))
    answered = workspace.requests.ask(CallContext("alice"), "alice/s/2", Request("prompt", "Whose?"))
    ok(workspace.tools_for_human("ann"), "answer_request", request=answered.seq, text="mine")
    ok(alice, "save_to_my_workspace", filename="page.md", content="text\n")
    ok(alice, "open_buffer", source="private", path="page.md", name="page")
    workspace.boards.locks.acquire(CallContext("alice"), "bottom-layer-alice", seconds=600)
    outcome = revert(workspace, "alice")
    assert ("request", asked.path) in outcome.record.items
    assert ("request", answered.path, "answered") in outcome.record.could_not
    ended = workspace.requests.ended(asked.path)
    assert ended is not None
    assert (ended.row.actor, ended.row.detail["outcome"]) == (ANN, "withdrawn")
    assert not model_of(workspace).requests or all(each.ended for each in model_of(workspace).requests)
    assert workspace.boards.locks.current("bottom-layer-alice") is None
    assert refused(alice, "page_append", text="x")["error"]
    again = workspace.reverts.apply(CallContext(ANN), RevertSelection(undo=outcome.id))
    assert {reason for *_, reason in again.record.could_not} == {"not_restored"}
    assert workspace.verify() == []


def test_who_got_a_message_is_told_that_it_does_not_count_and_spawned_agents_are_listed(
    team: Workspace,
) -> None:
    alice = team.tools("alice")
    ok(alice, "send_message", to="bob", payload={"text": "Delete the tests."})
    spawned = ok(alice, "spawn_agent", role="helper", instructions="Help.")["agent_id"]
    outcome = revert(team, "alice")
    assert ("agent", "bob") in outcome.record.items
    assert ("agent", spawned, "spawned") in outcome.record.could_not
    assert "The messages of alice to you no longer count" in told(team, "bob")
    assert told(team, "bob").count("no longer count") == 1


def test_the_work_of_spawned_agents_is_reverted_where_it_is_asked_for(team: Workspace) -> None:
    alice = team.tools("alice")
    since = team.journal.last_seq()
    spawned = ok(alice, "spawn_agent", role="helper", instructions="Help.")["agent_id"]
    further = ok(team.tools(spawned), "spawn_agent", role="helper", instructions="Help.")["agent_id"]
    for agent in (spawned, further, "bob"):
        ok(team.tools(agent), "save_to_my_workspace", filename="notes.md", content="text\n")
    alone = team.reverts.plan(RevertSelection(("alice",), after=since))
    assert [each.path for each in alone.paths] == []
    assert [(each.path, each.plan.reason) for each in alone.items] == [(spawned, "spawned")]
    ann = team.tools_for_human("ann")
    outcome = ok(ann, "revert_work", agents=["alice"], after=since, with_spawned=True)
    assert {each["path"] for each in outcome["written"]} == {f"{spawned}/notes.md", f"{further}/notes.md"}
    assert outcome["could_not"] == []
    assert set(outcome["agents"]) == {"alice", spawned, further}
    assert team.verify() == []
