"""The three flows of EDIT-5, as an agent goes through them with its tools."""

from __future__ import annotations

from calls import ok, refused
from watchroom import Toolbox, Workspace
from watchroom.kernel.call_context import CallContext

PLAN = "# Plan\n\nfoo is first.\nThen foo again.\nfoo ends it.\n"


def tools_of(toolbox: Toolbox) -> list[str]:
    """The tools of its open buffers that the agent is offered."""
    names = [str(each["name"]) for each in toolbox.get_tool_definitions(toolsets=["buffer"])]
    return [name for name in names if name not in ("open_buffer", "close_buffer")]


def opened(toolbox: Toolbox, content: str = PLAN) -> None:
    ok(toolbox, "collab_write", filepath="plan.md", content=content, message="A plan.")
    ok(toolbox, "open_buffer", source="collab", path="plan.md")


def test_5_1_a_text_that_stands_once_is_replaced(alice: Toolbox) -> None:
    opened(alice, "Let foo be.\n")
    answer = ok(alice, "plan_replace", old_text="foo", new_text="bar")
    assert (answer["status"], answer["workflow_state"]) == ("Success", "Idle")
    assert answer["metrics"] == {"delta": 0, "new_length": 12}
    assert answer["flags"] == []
    assert answer["markdown"].startswith("status: `Success`\nstate: `Idle`\nflags: -\n\n### [OK] Overview\n")


def test_5_2_of_several_places_the_agent_chooses_one(workspace: Workspace, alice: Toolbox) -> None:
    opened(alice)
    answer = refused(alice, "plan_replace", old_text="foo", new_text="bar")
    assert (answer["status"], answer["workflow_state"]) == ("MultiMatch", "SelectionPending")
    assert answer["metrics"] == {"delta": 0, "new_length": len(PLAN), "selection_count": 3}
    assert [each["id"] for each in answer["candidates"]] == [1, 2, 3]
    assert [each["occurrence"] for each in answer["candidates"]] == [0, 1, 2]
    assert answer["candidates"][1]["marker_start"] == "[[SEL#2]]"
    assert answer["candidates"][1]["marker_end"] == "[[/SEL#2]]"
    assert "| 2 | `[[SEL#2]]` | `[[/SEL#2]]` |" in answer["markdown"]
    # The agent looks at the snapshot.
    shown = alice.show_buffers()
    assert "[[SEL#1]]foo[[/SEL#1]] is first.\nThen [[SEL#2]]foo[[/SEL#2]] again.\n" in shown
    assert tools_of(alice) == ["plan_replace_selection", "plan_discard_selection"]
    answer = ok(alice, "plan_replace_selection", selection_id=2)
    assert (answer["status"], answer["workflow_state"]) == ("Success", "Idle")
    assert workspace.buffers.find(CallContext("alice"), "plan").text == PLAN.replace("Then foo", "Then bar")


def test_5_3_what_is_edited_is_noticed_flushed_and_in_step(workspace: Workspace, alice: Toolbox) -> None:
    opened(alice)
    assert tools_of(alice) == ["plan_replace", "plan_append"]
    answer = ok(alice, "plan_append", text="The end.\n")
    assert "call plan_flush" in answer["notice"]
    assert "call plan_flush" in alice.show_buffers()
    assert tools_of(alice) == ["plan_replace", "plan_append", "plan_flush", "plan_diff", "plan_accept_source"]
    assert ok(alice, "collab_read", filepath="plan.md")["content"] == PLAN
    answer = ok(alice, "plan_flush", message="Say where it ends.")
    assert (answer["status"], answer["workflow_state"]) == ("Success", "Synced")
    assert "notice" not in answer
    found = ok(alice, "collab_read", filepath="plan.md")
    assert (found["content"], found["version"]) == (PLAN + "The end.\n", 2)
    assert (found["author"], found["message"]) == ("alice", "Say where it ends.")
    assert tools_of(alice) == ["plan_replace", "plan_append"]
    assert workspace.verify() == []


def test_every_answer_tells_that_the_source_has_moved_on(alice: Toolbox, bob: Toolbox) -> None:
    opened(alice)
    ok(bob, "collab_write", filepath="plan.md", content="Another.\n", message="m", expected_version=1)
    assert "now at version 2" in refused(alice, "plan_replace", old_text="nowhere", new_text="x")["notice"]
    assert "call plan_refresh" in ok(alice, "plan_append", text="The end.\n")["notice"]
