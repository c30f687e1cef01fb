"""A conflict as an object: what opens it, what it says, how it goes on, and what closes it."""

from __future__ import annotations

from pathlib import Path

from calls import ok, refused
from projections.folding import PLAN, folded, needs, shared_path, stale_write, write
from watchroom import Toolbox, Workspace
from watchroom.features.overview.fold import Fold
from watchroom.kernel.rules.conflicts import ConflictView
from watchroom.texts import catalogue
from watchroom_tui.formatters.need_texts import need_text


def conflicts(workspace: Workspace) -> tuple[ConflictView, ...]:
    workspace.flush()
    return folded(workspace.journal).conflicts


def test_a_conflict_names_both_sides_and_the_base(workspace: Workspace, conflict: int) -> None:
    (found,) = conflicts(workspace)
    assert (found.kind, found.id, found.path, found.actor, found.base) == ("write", conflict, PLAN, "bob", 1)
    assert found.against is not None
    assert (found.against.version, found.against.actor) == (2, "alice")
    assert (found.since, found.rounds, found.times) == (found.row, 1, 1)
    texts = [workspace.journal.content(row.seq) for row in (found.row, found.against)]
    assert texts == ["late", "two"]


def test_each_version_that_comes_while_it_is_open_is_one_more_round(
    workspace: Workspace, alice: Toolbox, charlie: Toolbox, conflict: int
) -> None:
    write(alice, "three", 2)
    write(charlie, "four", 3)
    (found,) = conflicts(workspace)
    assert (found.id, found.rounds, found.times) == (conflict, 3, 1)
    assert found.against is not None
    assert (found.against.version, found.against.actor) == (4, "charlie"), "what stands now"


def test_another_refusal_of_the_same_agent_is_the_same_conflict_with_a_newer_text(
    workspace: Workspace, alice: Toolbox, bob: Toolbox, conflict: int
) -> None:
    write(alice, "three", 2)
    again = stale_write(bob, 2)
    (found,) = conflicts(workspace)
    assert (found.id, found.since.seq, found.rounds, found.times) == (again, conflict, 2, 2)
    assert found.against is not None
    assert (found.base, found.against.version) == (2, 3)


def test_a_write_that_met_nothing_is_against_nothing(workspace: Workspace, bob: Toolbox) -> None:
    stale_write(bob, 3, "new.md")
    (found,) = conflicts(workspace)
    assert (found.path, found.base, found.against) == ("new.md", 3, None)


def test_a_write_that_met_nothing_is_against_the_version_that_came_since(
    workspace: Workspace, alice: Toolbox, bob: Toolbox, charlie: Toolbox
) -> None:
    stale_write(bob, 3, "new.md")
    write(alice, "one", 0, "new.md")
    write(charlie, "two", 1, "new.md")
    (found,) = conflicts(workspace)
    assert found.against is not None
    assert (found.against.version, found.against.actor, found.rounds) == (2, "charlie", 3)
    (need,) = needs(workspace)
    assert need_text(need, catalogue("en", "watchroom_tui.texts")) == "bob ↔ charlie"


def test_who_wrote_what_its_refused_text_collides_with_collides_with_itself(
    workspace: Workspace, alice: Toolbox
) -> None:
    write(alice, "one", 0)
    write(alice, "two", 1)
    stale_write(alice, 1)
    (need,) = needs(workspace)
    assert need_text(need, catalogue("en", "watchroom_tui.texts")) == "alice ↔ its own newer version"


def test_a_refused_text_that_is_current_needs_nobody(
    workspace: Workspace, alice: Toolbox, bob: Toolbox, conflict: int
) -> None:
    write(alice, "late", 2)
    assert conflicts(workspace) == (), "the version that came says the very same"
    write(alice, "three", 3)
    ok(bob, "collab_read", filepath=PLAN)
    refused(bob, "collab_write", filepath=PLAN, content="three", message="m", expected_version=1)
    assert conflicts(workspace) == (), "it says what stands already"
    error = refused(workspace.tools_for_human("dana"), "dismiss_conflict", conflict=conflict)["error"]
    assert error == "conflict_settled"


def test_what_an_agent_tried_before_the_text_that_stands_needs_nobody_either(
    workspace: Workspace, alice: Toolbox, bob: Toolbox, charlie: Toolbox, conflict: int
) -> None:
    theirs = stale_write(charlie, 1)
    refused(bob, "collab_write", filepath=PLAN, content="two", message="m", expected_version=1)
    assert [each.id for each in conflicts(workspace)] == [theirs]


def test_agents_collide_apart_and_the_newest_stands_first(
    workspace: Workspace, bob: Toolbox, charlie: Toolbox, conflict: int
) -> None:
    theirs = stale_write(charlie, 0)
    assert [each.id for each in conflicts(workspace)] == [theirs, conflict]
    again = stale_write(bob, 1)
    assert [each.id for each in conflicts(workspace)] == [again, theirs]
    write(charlie, "merged", 2)
    (left,) = conflicts(workspace)
    assert (left.id, left.rounds) == (again, 2)


def test_a_persons_refused_write_opens_nothing(workspace: Workspace, conflict: int) -> None:
    stale_write(workspace.tools_for_human("dana"), 1)
    assert [each.id for each in conflicts(workspace)] == [conflict]


def test_a_refusal_in_another_zone_is_no_conflict(root: Path, workspace: Workspace, alice: Toolbox) -> None:
    ok(alice, "handoff_file", to_agent="bob", filename="raw.md", content="data", message="m")
    (root / "handoff/alice_to_bob/raw.md").write_text("other data", encoding="utf-8")
    assert workspace.scan()
    refused(alice, "save_to_my_workspace", filename="../x", content="")
    assert conflicts(workspace) == ()


def test_edits_made_by_hand_are_one_conflict_that_no_agents_version_closes(
    root: Path, workspace: Workspace, alice: Toolbox
) -> None:
    write(alice, "one", 0)
    edits = []
    for text in ("by hand", "by hand, better"):
        shared_path(root).write_text(text, encoding="utf-8")
        edits += [row.seq for row in workspace.scan()]
    write(alice, "two", 1)
    (found,) = conflicts(workspace)
    assert (found.kind, found.actor, found.base) == ("outside", "outside", 1)
    assert (found.since.seq, found.id, found.times, found.rounds) == (*edits, 2, 2)


def test_an_edit_that_a_version_wrote_over_unseen_is_a_conflict(
    root: Path, workspace: Workspace, alice: Toolbox
) -> None:
    write(alice, "one", 0)
    shared_path(root).write_text("by hand", encoding="utf-8")
    write(alice, "two", 1)
    (found,) = conflicts(workspace)
    assert (found.kind, workspace.journal.content(found.id)) == ("outside", "by hand")
    ok(workspace.tools_for_human("dana"), "revert_outside_edit", filepath=PLAN)
    assert conflicts(workspace) == ()
    assert shared_path(root).read_text(encoding="utf-8") == "two"


def test_a_persons_plain_version_closes_all_of_its_file(
    workspace: Workspace, charlie: Toolbox, conflict: int
) -> None:
    stale_write(charlie, 1)
    elsewhere = stale_write(charlie, 3, "other.md")
    write(workspace.tools_for_human("dana"), "settled", 2)
    assert [each.id for each in conflicts(workspace)] == [elsewhere]


def test_conflicts_that_no_row_touches_are_the_same_object(
    workspace: Workspace, alice: Toolbox, bob: Toolbox, conflict: int
) -> None:
    fold = Fold(workspace.journal.content, workspace.journal.row)
    fold.apply(workspace.journal.rows())
    before = fold.model()
    ok(bob, "save_to_my_workspace", filename="x", content="")
    write(alice, "one", 0, "other.md")
    fold.apply(workspace.journal.rows(fold.seq))
    assert fold.model() is not before
    assert fold.model().conflicts is before.conflicts


# Needs of a kind of their own


def test_a_need_is_made_of_each_conflict(workspace: Workspace, bob: Toolbox, conflict: int) -> None:
    again = stale_write(bob, 1)
    workspace.flush()
    model = folded(workspace.journal)
    assert [(need.kind, need.row.seq, need.times) for need in model.needs] == [("conflict", again, 2)]
    assert [each.row for each in model.conflicts] == [need.row for need in model.needs]
