"""What needs a person: it opens, counts up, and closes when it is dealt with, and only then."""

from __future__ import annotations

from pathlib import Path

from calls import ok, refused
from projections.folding import (
    PLAN,
    acknowledge,
    deliver,
    denied,
    needs,
    shared_path,
    stale_write,
    write,
)
from watchroom import Toolbox, Workspace
from watchroom.features.overview.needs import MAX_COUNTED_PATHS

# -- conflicts


def test_a_refused_write_opens_a_conflict_that_names_both_sides(workspace: Workspace, conflict: int) -> None:
    (need,) = needs(workspace)
    assert (need.kind, need.row.seq, need.row.actor, need.against) == ("conflict", conflict, "bob", "alice")
    assert (need.row.path, need.times) == (PLAN, 1)


def test_another_refused_write_of_the_same_agent_counts_up_and_does_not_add_a_need(
    workspace: Workspace, bob: Toolbox, conflict: int
) -> None:
    again = stale_write(bob, 1)
    (need,) = needs(workspace)
    assert (need.row.seq, need.times) == (again, 2)


def test_a_conflict_closes_when_the_same_agent_gets_through_on_that_path(
    workspace: Workspace, bob: Toolbox, conflict: int
) -> None:
    write(bob, "merged", 2)
    assert needs(workspace) == []


def test_a_conflict_stays_when_the_agent_gets_through_on_another_path(
    workspace: Workspace, bob: Toolbox, conflict: int
) -> None:
    write(bob, "elsewhere", 0, "other.md")
    assert [need.row.seq for need in needs(workspace)] == [conflict]


def test_a_conflict_stays_when_somebody_else_writes_on(
    workspace: Workspace, alice: Toolbox, charlie: Toolbox, conflict: int
) -> None:
    write(alice, "three", 2)
    write(charlie, "four", 3)
    assert [need.row.seq for need in needs(workspace, "conflict")] == [conflict]


def test_a_persons_version_settles_the_conflicts_of_all_agents_on_that_path_only(
    workspace: Workspace, bob: Toolbox, charlie: Toolbox, conflict: int
) -> None:
    stale_write(charlie, 1)
    write(bob, "one", 0, "other.md")
    elsewhere = stale_write(charlie, 0, "other.md")
    write(workspace.tools_for_human("dana"), "settled", 2)
    assert [need.row.seq for need in needs(workspace)] == [elsewhere]


def test_a_persons_rollback_settles_a_conflict_too(workspace: Workspace, conflict: int) -> None:
    ok(workspace.tools_for_human("dana"), "collab_rollback", filepath=PLAN, to_version=1)
    assert needs(workspace) == []


# -- edits made by hand


def test_an_outside_edit_of_a_shared_file_opens_a_need_and_a_persons_version_closes_it(
    root: Path, workspace: Workspace, alice: Toolbox
) -> None:
    write(alice, "one", 0)
    shared_path(root).write_text("by hand", encoding="utf-8")
    (row,) = workspace.scan()
    (need,) = needs(workspace)
    assert (need.kind, need.row) == ("outside", row)
    write(workspace.tools_for_human("dana"), "settled", 1)
    assert needs(workspace) == []


def test_an_agents_next_version_does_not_settle_an_outside_edit(
    root: Path, workspace: Workspace, alice: Toolbox
) -> None:
    write(alice, "one", 0)
    shared_path(root).write_text("by hand", encoding="utf-8")
    workspace.scan()
    write(alice, "two", 1)
    assert "outside" in {need.kind for need in needs(workspace)}


def test_an_outside_edit_of_a_private_file_needs_nobody(
    root: Path, workspace: Workspace, alice: Toolbox
) -> None:
    ok(alice, "save_to_my_workspace", filename="a.md", content="one")
    (root / "agents/alice/a.md").write_text("two", encoding="utf-8")
    assert workspace.scan()
    assert needs(workspace) == []


def test_an_outside_edit_of_a_delivered_file_opens_a_need(
    root: Path, workspace: Workspace, alice: Toolbox
) -> None:
    ok(alice, "handoff_file", to_agent="bob", filename="raw.md", content="data", message="for you")
    (root / "handoff/alice_to_bob/raw.md").write_text("other data", encoding="utf-8")
    assert workspace.scan()
    assert [need.kind for need in needs(workspace)] == ["outside", "handoff"]


# -- unchecked overwrites


def test_an_unchecked_overwrite_of_somebody_else_opens_a_need(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    write(alice, "one", 0)
    write(bob, "two", -1)
    (need,) = needs(workspace)
    assert (need.kind, need.row.actor, need.against) == ("unchecked", "bob", "alice")


def test_an_unchecked_write_to_a_new_or_an_own_file_needs_nobody(
    workspace: Workspace, alice: Toolbox
) -> None:
    write(alice, "one", -1)
    write(alice, "two", -1)
    assert needs(workspace) == []


def test_a_persons_version_settles_an_unchecked_overwrite(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    write(alice, "one", 0)
    write(bob, "two", -1)
    ok(workspace.tools_for_human("dana"), "collab_rollback", filepath=PLAN, to_version=1)
    assert needs(workspace) == []


# -- refusals in a row


def test_two_denials_in_a_row_are_a_slip_and_three_need_a_person(
    workspace: Workspace, alice: Toolbox
) -> None:
    denied(alice, 2)
    assert needs(workspace) == []
    denied(alice, 1)
    (need,) = needs(workspace)
    assert (need.kind, need.row.actor, need.times) == ("denied", "alice", 3)
    denied(alice, 2)
    assert [need.times for need in needs(workspace)] == [5]


def test_refusals_are_counted_for_each_path_apart(workspace: Workspace, alice: Toolbox) -> None:
    """What is said of a path is true of it: ``../a`` was refused four times, ``../b`` once."""
    for name in ("../a", "../a", "../b", "../a", "../a"):
        refused(alice, "save_to_my_workspace", filename=name, content="")
    (need,) = needs(workspace)
    assert (need.kind, need.row.path, need.times) == ("denied", "../a", 4)
    for _ in range(2):
        refused(alice, "save_to_my_workspace", filename="../b", content="")
    assert {(need.row.path, need.times) for need in needs(workspace)} == {("../a", 4), ("../b", 3)}
    ok(alice, "save_to_my_workspace", filename="x", content="")
    assert needs(workspace) == []


def test_of_many_paths_those_that_became_a_need_stay_counted(workspace: Workspace, alice: Toolbox) -> None:
    denied(alice, 3)
    for number in range(MAX_COUNTED_PATHS + 5):
        refused(alice, "save_to_my_workspace", filename=f"../{number}", content="")
    denied(alice, 1)
    assert [(need.row.path, need.times) for need in needs(workspace)] == [("../x", 4)]


def test_a_success_ends_a_row_of_denials_and_starts_the_count_anew(
    workspace: Workspace, alice: Toolbox
) -> None:
    denied(alice, 3)
    ok(alice, "save_to_my_workspace", filename="x", content="")
    assert needs(workspace) == []
    denied(alice, 2)
    assert needs(workspace) == []


def test_denials_of_several_agents_are_counted_apart(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    denied(alice, 2)
    denied(bob, 2)
    assert needs(workspace) == []


def test_a_success_of_somebody_else_does_not_end_a_row_of_denials(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    denied(alice, 3)
    ok(bob, "save_to_my_workspace", filename="x", content="")
    assert [need.row.actor for need in needs(workspace)] == ["alice"]


# -- handoffs


def test_a_handoff_waits_until_its_receiver_acknowledges_it(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    deliver(alice)
    (need,) = needs(workspace)
    assert (need.kind, need.row.actor, need.against) == ("handoff", "alice", "bob")
    ok(bob, "read_handoff", from_agent="alice", filename="raw.md")
    assert len(needs(workspace)) == 1, "reading is not acknowledging"
    acknowledge(bob)
    assert needs(workspace) == []


def test_a_later_delivery_of_an_acknowledged_file_waits_again(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    deliver(alice)
    acknowledge(bob)
    deliver(alice, content="newer data")
    (need,) = needs(workspace)
    assert (need.kind, need.row.version, need.times) == ("handoff", 2, 1)


def test_acknowledging_one_delivery_leaves_the_others_waiting(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    deliver(alice, name="one.md")
    deliver(alice, name="two.md")
    acknowledge(bob, name="one.md")
    assert [need.row.path for need in needs(workspace)] == ["alice_to_bob/two.md"]


# -- their order


def test_needs_stand_by_urgency_and_within_a_kind_oldest_first(
    root: Path, workspace: Workspace, alice: Toolbox, bob: Toolbox, charlie: Toolbox
) -> None:
    deliver(alice, name="one.md")
    deliver(alice, name="two.md")
    denied(charlie, 3)
    write(alice, "one", 0, "unchecked.md")
    write(bob, "two", -1, "unchecked.md")
    write(alice, "one", 0)
    shared_path(root).write_text("by hand", encoding="utf-8")
    workspace.scan()
    stale_write(bob, 0)
    assert [(need.kind, need.row.path) for need in needs(workspace)] == [
        ("conflict", PLAN),
        ("outside", PLAN),
        ("unchecked", "unchecked.md"),
        ("denied", "../x"),
        ("handoff", "alice_to_bob/one.md"),
        ("handoff", "alice_to_bob/two.md"),
    ]


# -- identity


def test_a_conflict_keeps_its_identity_over_retries_and_rounds(
    workspace: Workspace, alice: Toolbox, bob: Toolbox, conflict: int
) -> None:
    (before,) = needs(workspace)
    for _ in range(3):
        stale_write(bob, 1)
    write(alice, "three", 2)
    (after,) = needs(workspace)
    assert after.times == 4
    assert after.identity == before.identity


def test_what_was_settled_and_comes_again_is_another_thing(
    workspace: Workspace, bob: Toolbox, conflict: int
) -> None:
    (before,) = needs(workspace)
    write(bob, "merged", 2)
    stale_write(bob, 1)
    (again,) = needs(workspace)
    assert (again.kind, again.key) == (before.kind, before.key)
    assert again.identity != before.identity


def test_an_agent_that_keeps_being_refused_is_one_thing(workspace: Workspace, charlie: Toolbox) -> None:
    denied(charlie, 3)
    (before,) = needs(workspace)
    denied(charlie, 4)
    (after,) = needs(workspace)
    assert after.times == 7
    assert after.identity == before.identity
