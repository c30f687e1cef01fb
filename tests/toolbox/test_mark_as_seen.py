"""A person looks, finds it fine, and says so: one row, and the need is closed. What was not seen stays."""

from __future__ import annotations

from pathlib import Path

import pytest
from calls import ok, refused
from evidence import all_rows
from projections.folding import PLAN, acknowledge, deliver, denied, needs, stale_write, write
from watchroom import Toolbox, Workspace
from watchroom.features.overview.model import Need


@pytest.fixture
def dana(workspace: Workspace) -> Toolbox:
    return workspace.tools_for_human("dana")


@pytest.fixture
def unchecked(workspace: Workspace, alice: Toolbox, bob: Toolbox) -> Need:
    """Bob wrote over Alice's version without looking."""
    write(alice, "one", 0)
    write(bob, "unseen", -1)
    (need,) = needs(workspace)
    assert need.kind == "unchecked"
    return need


def seen(person: Toolbox, need: Need) -> None:
    ok(person, "mark_as_seen", row=need.row.seq, message="it is fine")


def test_an_unchecked_overwrite_that_is_fine_is_closed_by_one_row_and_no_version(
    workspace: Workspace, dana: Toolbox, unchecked: Need
) -> None:
    before = len(all_rows(workspace.journal))
    seen(dana, unchecked)
    assert needs(workspace) == []
    rows = all_rows(workspace.journal)
    row = rows[-1]
    assert len(rows) == before + 1
    assert (row.actor, row.tool, row.path, row.version) == ("human:dana", "mark_as_seen", PLAN, None)
    assert row.message == "it is fine"
    assert row.detail["row"] == unchecked.row.seq
    head = workspace.journal.head("collab", PLAN)
    assert head is not None
    assert head.seq == unchecked.row.seq


def test_an_overwrite_that_came_after_the_look_stays_open(
    workspace: Workspace, alice: Toolbox, bob: Toolbox, dana: Toolbox, unchecked: Need
) -> None:
    write(alice, "three", 2)
    write(bob, "unseen again", -1)
    seen(dana, unchecked)
    (need,) = needs(workspace)
    assert (need.kind, need.times) == ("unchecked", 2)
    seen(dana, need)
    assert needs(workspace) == []


def test_a_stubborn_agent_is_a_new_matter_if_it_goes_on_after_the_look(
    workspace: Workspace, charlie: Toolbox, dana: Toolbox
) -> None:
    denied(charlie, 3)
    (need,) = needs(workspace)
    seen(dana, need)
    denied(charlie, 2)
    assert needs(workspace) == []
    denied(charlie, 1)
    (again,) = needs(workspace)
    assert again.kind == "denied"
    assert again.identity != need.identity


def test_a_handoff_that_was_looked_at_needs_nobody_and_still_waits_for_its_receiver(
    workspace: Workspace, alice: Toolbox, bob: Toolbox, dana: Toolbox
) -> None:
    deliver(alice)
    (need,) = needs(workspace)
    seen(dana, need)
    assert needs(workspace) == []
    (waiting,) = ok(bob, "check_my_handoffs")["handoffs"]
    assert waiting["filename"] == "raw.md"
    acknowledge(bob)
    assert needs(workspace) == []


def test_an_edit_of_a_delivered_file_is_closed_by_a_look(
    root: Path, workspace: Workspace, alice: Toolbox, bob: Toolbox, dana: Toolbox
) -> None:
    deliver(alice)
    acknowledge(bob)
    (root / "handoff/alice_to_bob/raw.md").write_text("by hand", encoding="utf-8")
    workspace.scan()
    (need,) = needs(workspace)
    assert need.kind == "outside"
    seen(dana, need)
    assert needs(workspace) == []


def test_a_look_at_one_thing_closes_no_other(
    workspace: Workspace, bob: Toolbox, dana: Toolbox, unchecked: Need
) -> None:
    for _ in range(3):
        refused(bob, "collab_write", filepath=PLAN, content="x", message="m", expected_version=-7)
    kinds = {need.kind: need for need in needs(workspace)}
    assert set(kinds) == {"unchecked", "denied"}
    seen(dana, kinds["denied"])
    assert [need.kind for need in needs(workspace)] == ["unchecked"]


def test_a_conflict_is_not_closed_by_a_look(workspace: Workspace, bob: Toolbox, dana: Toolbox) -> None:
    write(dana, "one", 0)
    write(dana, "two", 1)
    conflict = stale_write(bob, 1)
    result = refused(dana, "mark_as_seen", row=conflict)
    assert result["error"] == "nothing_waits"
    assert "resolve_conflict" in result["suggestion"]
    assert [need.kind for need in needs(workspace)] == ["conflict"]


@pytest.mark.parametrize("row", [1, 10_000])
def test_what_asks_for_nobody_cannot_be_marked(dana: Toolbox, row: int) -> None:
    assert refused(dana, "mark_as_seen", row=row)["error"] == "nothing_waits"


def test_an_agent_cannot_say_that_a_person_has_looked(
    workspace: Workspace, bob: Toolbox, unchecked: Need
) -> None:
    assert refused(bob, "mark_as_seen", row=unchecked.row.seq)["error"] == "permission_denied"
    assert "mark_as_seen" not in {each["name"] for each in bob.get_tool_definitions()}
    assert needs(workspace) == [unchecked]
