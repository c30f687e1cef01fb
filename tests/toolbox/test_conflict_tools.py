"""People settle conflicts with tools of their own: each act is a row, and nothing goes that was not seen."""

from __future__ import annotations

from pathlib import Path

import pytest
from calls import ok, refused
from evidence import all_rows
from projections.folding import PLAN, folded, shared_path, stale_write, write
from watchroom import Row, Toolbox, Workspace
from watchroom.kernel.rules.conflicts import ConflictView


@pytest.fixture
def dana(workspace: Workspace) -> Toolbox:
    return workspace.tools_for_human("dana")


@pytest.fixture
def conflict(alice: Toolbox, bob: Toolbox) -> int:
    """Bob's refused write to a file of which Alice wrote two versions; gives its row's number."""
    write(alice, "one", 0)
    write(alice, "two", 1)
    return stale_write(bob, 1)


def conflicts(workspace: Workspace) -> tuple[ConflictView, ...]:
    workspace.flush()
    return folded(workspace.journal).conflicts


def resolve(person: Toolbox, text: str, expected: int, *numbers: int, path: str = PLAN) -> int:
    result = ok(
        person,
        "resolve_conflict",
        filepath=path,
        content=text,
        message="decided",
        expected_version=expected,
        conflicts=list(numbers),
    )
    return int(result["version"])


def refused_resolve(person: Toolbox, expected: int, *numbers: int, path: str = PLAN) -> dict[str, object]:
    return refused(
        person,
        "resolve_conflict",
        filepath=path,
        content="decided",
        message="m",
        expected_version=expected,
        conflicts=list(numbers),
    )


def last_row(workspace: Workspace) -> Row:
    workspace.flush()
    return all_rows(workspace.journal)[-1]


# Who has them


@pytest.mark.parametrize("tool", ["resolve_conflict", "dismiss_conflict", "revert_outside_edit"])
def test_only_people_have_the_tools_and_an_agents_try_is_a_row(
    workspace: Workspace, alice: Toolbox, dana: Toolbox, conflict: int, tool: str
) -> None:
    arguments = {"filepath": PLAN, "content": "mine", "conflict": conflict}
    assert refused(alice, tool, **arguments)["error"] == "permission_denied"
    row = last_row(workspace)
    assert (row.actor, row.tool, row.outcome) == ("alice", tool, "denied")
    names = {each["name"] for each in dana.get_tool_definitions()}
    assert tool in names
    assert tool not in {each["name"] for each in alice.get_tool_definitions()}
    assert [each.id for each in conflicts(workspace)] == [conflict]


# Resolving


def test_a_resolution_is_the_next_version_and_names_what_it_settles(
    root: Path, workspace: Workspace, dana: Toolbox, conflict: int
) -> None:
    assert resolve(dana, "both", 2, conflict) == 3
    row = last_row(workspace)
    assert (row.actor, row.tool, row.version, row.message) == ("human:dana", "resolve_conflict", 3, "decided")
    assert row.detail == {"resolves": [conflict]}
    assert workspace.journal.content(row.seq) == "both"
    assert shared_path(root).read_text(encoding="utf-8") == "both"
    assert conflicts(workspace) == ()
    assert workspace.verify() == []


def test_a_resolution_settles_only_what_it_names(
    workspace: Workspace, charlie: Toolbox, dana: Toolbox, conflict: int
) -> None:
    other = stale_write(charlie, 1)
    resolve(dana, "both", 2, conflict)
    (left,) = conflicts(workspace)
    assert (left.id, left.rounds) == (other, 2)


def test_what_an_agent_tries_after_the_named_row_stays_open(
    workspace: Workspace, bob: Toolbox, dana: Toolbox, conflict: int
) -> None:
    later = stale_write(bob, 1)
    resolve(dana, "both", 2, conflict)
    (left,) = conflicts(workspace)
    assert (left.id, left.since.seq, left.times, left.rounds) == (later, later, 1, 2)


def test_a_stale_resolution_is_refused_with_all_that_is_needed_to_go_on(
    workspace: Workspace, alice: Toolbox, dana: Toolbox, conflict: int
) -> None:
    write(alice, "three", 2)
    result = refused_resolve(dana, 2, conflict)
    assert (result["error"], result["current_version"], result["current_content"]) == (
        *("version_conflict", 3),
        "three",
    )
    assert "resolve_conflict" in str(result["suggestion"])
    (left,) = conflicts(workspace)
    assert (left.id, left.rounds) == (conflict, 2), (
        "a person's refused write opens nothing and closes nothing"
    )
    assert resolve(dana, "all three", 3, conflict) == 4


def test_a_resolution_where_nothing_stands_expects_version_0(
    workspace: Workspace, bob: Toolbox, dana: Toolbox
) -> None:
    number = stale_write(bob, 3, "new.md")
    assert resolve(dana, "text", 0, number, path="new.md") == 1
    assert conflicts(workspace) == ()


@pytest.mark.parametrize("expected", [-1, None])
def test_a_resolution_cannot_be_unchecked(dana: Toolbox, conflict: int, expected: int | None) -> None:
    given: dict[str, object] = {"filepath": PLAN, "content": "x", "message": "m", "conflicts": [conflict]}
    if expected is not None:
        given["expected_version"] = expected
    result = refused(dana, "resolve_conflict", **given)
    assert result["error"] == "invalid_arguments"
    assert "expected_version" in result["message"]


def test_a_resolution_names_only_conflicts_of_its_file(
    workspace: Workspace, alice: Toolbox, bob: Toolbox, dana: Toolbox, conflict: int
) -> None:
    write(alice, "one", 0, "other.md")
    accepted = last_row(workspace).seq
    elsewhere = stale_write(bob, 0, "other.md")
    refused_resolve(dana, 0, conflict)
    by_a_person = next(row.seq for row in all_rows(workspace.journal)[::-1] if row.actor == "human:dana")
    for number in (elsewhere, accepted, by_a_person, 10**6):
        assert refused_resolve(dana, 2, conflict, number)["error"] == "not_a_conflict", number
    assert refused_resolve(dana, 2)["error"] == "invalid_arguments", "it has to name one"
    assert {each.id for each in conflicts(workspace)} == {conflict, elsewhere}


# Dismissing


def test_a_dismissal_closes_the_conflict_and_changes_no_file(
    root: Path, workspace: Workspace, dana: Toolbox, conflict: int
) -> None:
    ok(dana, "dismiss_conflict", conflict=conflict, message="not needed")
    row = last_row(workspace)
    assert (row.actor, row.path, row.version, row.detail) == (
        *("human:dana", PLAN, None),
        {"conflict": conflict},
    )
    assert conflicts(workspace) == ()
    assert shared_path(root).read_text(encoding="utf-8") == "two"
    assert workspace.journal.content(conflict) == "late"


def test_a_settled_conflict_is_not_dismissed_again(
    workspace: Workspace, bob: Toolbox, charlie: Toolbox, dana: Toolbox, conflict: int
) -> None:
    ok(dana, "dismiss_conflict", conflict=conflict)
    assert refused(dana, "dismiss_conflict", conflict=conflict)["error"] == "conflict_settled"
    by_its_agent = stale_write(bob, 1)
    write(bob, "merged", 2)
    assert refused(dana, "dismiss_conflict", conflict=by_its_agent)["error"] == "conflict_settled"
    named = stale_write(charlie, 1)
    resolve(dana, "decided", 3, named)
    assert refused(dana, "dismiss_conflict", conflict=named)["error"] == "conflict_settled"
    open_again = stale_write(charlie, 1)
    ok(dana, "dismiss_conflict", conflict=open_again)


def test_what_is_no_conflict_cannot_be_dismissed(workspace: Workspace, dana: Toolbox, conflict: int) -> None:
    for number in (conflict - 1, 10**6):
        assert refused(dana, "dismiss_conflict", conflict=number)["error"] == "not_a_conflict"
    assert [each.id for each in conflicts(workspace)] == [conflict]


# Edits made by hand


@pytest.fixture
def edit(root: Path, workspace: Workspace, alice: Toolbox) -> int:
    """An edit by hand of a shared file of one version; gives its row's number."""
    write(alice, "one", 0)
    return edited(root, workspace, "by hand")


def edited(root: Path, workspace: Workspace, text: str) -> int:
    shared_path(root).write_text(text, encoding="utf-8")
    (row,) = workspace.scan()
    return row.seq


def test_an_edit_is_accepted_by_resolving_it_with_its_text(
    root: Path, workspace: Workspace, dana: Toolbox, edit: int
) -> None:
    resolve(dana, "by hand", 1, edit)
    assert shared_path(root).read_text(encoding="utf-8") == "by hand"
    assert conflicts(workspace) == ()
    assert workspace.scan() == []
    assert workspace.verify() == []
    history = workspace.journal.history("collab", PLAN)
    assert [workspace.journal.content(row.seq) for row in history] == ["one", "by hand"]


def test_an_edit_is_merged_and_its_text_is_not_taken_for_one_more_edit(
    root: Path, workspace: Workspace, dana: Toolbox, edit: int
) -> None:
    resolve(dana, "one, by hand", 1, edit)
    assert shared_path(root).read_text(encoding="utf-8") == "one, by hand"
    assert (conflicts(workspace), workspace.scan(), workspace.verify()) == ((), [], [])


def test_an_edit_cannot_be_dismissed(workspace: Workspace, dana: Toolbox, edit: int) -> None:
    result = refused(dana, "dismiss_conflict", conflict=edit)
    assert result["error"] == "outside_conflict"
    assert "revert_outside_edit" in result["suggestion"]
    assert [each.id for each in conflicts(workspace)] == [edit]


def test_a_reverted_edit_gives_way_to_the_journals_version_and_stays_in_the_journal(
    root: Path, workspace: Workspace, dana: Toolbox, edit: int
) -> None:
    assert ok(dana, "revert_outside_edit", filepath=PLAN, conflict=edit)["version"] == 1
    assert shared_path(root).read_text(encoding="utf-8") == "one"
    row = last_row(workspace)
    origin = workspace.host.edit_detail() if workspace.journal.is_shared else None
    assert (row.tool, row.version) == ("revert_outside_edit", None)
    assert row.detail == {"conflict": edit, **(origin or {})}
    assert workspace.journal.content(edit) == "by hand"
    assert (conflicts(workspace), workspace.scan(), workspace.verify()) == ((), [], [])
    assert refused(dana, "revert_outside_edit", filepath=PLAN)["error"] == "conflict_settled"


def test_a_removed_file_comes_back(root: Path, workspace: Workspace, alice: Toolbox, dana: Toolbox) -> None:
    write(alice, "one", 0)
    shared_path(root).unlink()
    workspace.scan()
    ok(dana, "revert_outside_edit", filepath=PLAN)
    assert shared_path(root).read_text(encoding="utf-8") == "one"
    assert conflicts(workspace) == ()


def test_a_file_that_the_journal_does_not_know_goes_and_its_text_stays(
    root: Path, workspace: Workspace, dana: Toolbox
) -> None:
    number = edited(root, workspace, "of my own")
    assert ok(dana, "revert_outside_edit", filepath=PLAN)["version"] == 0
    assert not shared_path(root).exists()
    assert workspace.journal.content(number) == "of my own"
    assert (conflicts(workspace), workspace.scan()) == ((), [])


def test_a_file_edited_once_more_is_not_reverted_before_somebody_could_see_it(
    root: Path, workspace: Workspace, dana: Toolbox, edit: int
) -> None:
    shared_path(root).write_text("by hand, better", encoding="utf-8")
    result = refused(dana, "revert_outside_edit", filepath=PLAN)
    assert result["error"] == "edited_again"
    assert shared_path(root).read_text(encoding="utf-8") == "by hand, better"
    (now,) = conflicts(workspace)
    assert str(now.id) in result["message"]
    assert (now.since.seq, now.times, workspace.journal.content(now.id)) == (edit, 2, "by hand, better")
    assert refused(dana, "revert_outside_edit", filepath=PLAN, conflict=edit)["error"] == "edited_again"
    ok(dana, "revert_outside_edit", filepath=PLAN, conflict=now.id)
    assert shared_path(root).read_text(encoding="utf-8") == "one"
    assert conflicts(workspace) == ()


def test_what_cannot_be_kept_is_not_reverted(
    root: Path, workspace: Workspace, dana: Toolbox, edit: int
) -> None:
    shared_path(root).write_bytes(b"\xff\0")
    assert refused(dana, "revert_outside_edit", filepath=PLAN)["error"] == "edited_again"
    assert refused(dana, "revert_outside_edit", filepath=PLAN)["error"] == "not_text"
    assert shared_path(root).read_bytes() == b"\xff\0"


def test_the_same_edit_made_again_after_a_revert_is_a_conflict_again(
    root: Path, workspace: Workspace, alice: Toolbox, dana: Toolbox, edit: int
) -> None:
    ok(dana, "revert_outside_edit", filepath=PLAN)
    again = edited(root, workspace, "by hand")
    assert [each.id for each in conflicts(workspace)] == [again]
    ok(dana, "revert_outside_edit", filepath=PLAN)
    shared_path(root).write_text("by hand", encoding="utf-8")
    write(alice, "two", 1)
    assert [workspace.journal.content(each.id) for each in conflicts(workspace)] == ["by hand"], "unseen"


def test_an_earlier_edit_made_again_is_the_newest_one(root: Path, workspace: Workspace, edit: int) -> None:
    edited(root, workspace, "better")
    again = edited(root, workspace, "by hand")
    (now,) = conflicts(workspace)
    assert (now.id, now.times, workspace.scan()) == (again, 3, [])


def test_a_file_without_an_edit_has_nothing_to_revert(dana: Toolbox, conflict: int) -> None:
    for path in (PLAN, "nowhere.md"):
        assert refused(dana, "revert_outside_edit", filepath=path)["error"] == "no_outside_edit"
