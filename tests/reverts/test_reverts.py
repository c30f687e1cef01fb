"""What agents did is reverted by a person: all of it or nothing, and nothing that others wrote."""

from __future__ import annotations

from pathlib import Path

import pytest
from calls import ok, refused
from watchroom import Toolbox, Workspace
from watchroom.errors import RevertNotFound
from watchroom.features.overview.fold import Fold
from watchroom.features.reverts.rules import RevertSelection
from watchroom.features.reverts.service import RevertOutcome
from watchroom.kernel.call_context import CallContext

ANN = "human:ann"
STALE = {"filepath": "plan.md", "content": "x", "expected_version": 3, "message": "m"}


def text_of(workspace: Workspace, zone: str, path: str) -> str | None:
    head = workspace.journal.head(zone, path)  # type: ignore[arg-type]
    assert head is not None
    return workspace.journal.content(head.seq)


def revert(workspace: Workspace, *agents: str, after: int = 0, **options: bool | str) -> RevertOutcome:
    return workspace.reverts.apply(CallContext(ANN), RevertSelection(agents, after=after), **options)  # type: ignore[arg-type]


def write(toolbox: Toolbox, path: str, text: str, expected: int) -> None:
    ok(toolbox, "collab_write", filepath=path, content=text, expected_version=expected, message="m")


def write_in_turn(alice: Toolbox, bob: Toolbox, path: str) -> None:
    """The second line is bob's, then alice's, then bob's again."""
    write(bob, path, "1\n2\n3\n", 0)
    write(alice, path, "1\nalice\n3\n", 1)
    write(bob, path, "1\nalice and bob\n3\n", 2)


def conflicts(workspace: Workspace) -> list[str]:
    fold = Fold(workspace.journal.content, workspace.journal.row)
    fold.apply(workspace.journal.rows(0, limit=100_000))
    return [each.row.path for each in fold.model().conflicts]


def test_what_one_agent_did_goes_and_what_others_wrote_stays(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    text = "one\ntwo\nthree\nfour\nfive\n"
    write(bob, "plan.md", text, 0)
    since = workspace.journal.last_seq()
    spoiled = text.replace("one", "ONE")
    write(alice, "plan.md", spoiled, 1)
    mended = spoiled.replace("five", "FIVE")
    write(bob, "plan.md", mended, 2)
    write(alice, "junk.md", "junk\n", 0)
    ok(alice, "save_to_my_workspace", filename="own.md", content="own\n")

    outcome = revert(workspace, "alice", after=since)

    assert sorted(outcome.record.written) == [
        ("collab", "junk.md", 2),
        ("collab", "plan.md", 4),
        ("private", "alice/own.md", 2),
    ]
    assert text_of(workspace, "collab", "plan.md") == text.replace("five", "FIVE")
    assert text_of(workspace, "collab", "junk.md") is None
    root = Path(workspace.root)
    assert (root / "collaborative/current/plan.md").read_text() == text.replace("five", "FIVE")
    assert not (root / "collaborative/current/junk.md").exists()
    assert not (root / "agents/alice/own.md").exists()
    assert workspace.verify() == []
    # Who is concerned hears of it with the next tool, and whoever goes on from the old version is refused.
    (to_alice,) = workspace.messages.find_waiting("alice")
    assert "plan.md" in to_alice.text
    assert workspace.messages.find_waiting("bob") != []
    assert refused(alice, "collab_write", **STALE)["error"] == "version_conflict"


def test_a_preview_changes_nothing(workspace: Workspace, alice: Toolbox) -> None:
    write(alice, "a.md", "a\n", 0)
    workspace.flush()
    before = workspace.journal.last_seq()
    (planned,) = workspace.reverts.plan(RevertSelection(("alice",))).paths
    assert (planned.path, planned.plan.kind, planned.plan.content) == ("a.md", "clean", None)
    assert workspace.journal.last_seq() == before


def test_what_both_wrote_waits_for_a_person_and_stands_meanwhile(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    write(bob, "a.md", "top\nx\nend\n", 0)
    write(alice, "a.md", "TOP\nalice\nend\n", 1)
    write(bob, "a.md", "TOP\nalice and bob\nend\n", 2)
    outcome = revert(workspace, "alice")
    assert outcome.record.conflicts == (("collab", "a.md"),)
    assert text_of(workspace, "collab", "a.md") == "TOP\nalice and bob\nend\n"
    assert conflicts(workspace) == ["a.md"]
    (waiting,) = workspace.journal.refused("collab", "a.md")
    assert workspace.journal.content(waiting.seq) == "top\nx\nalice and bob\nend\n"
    # A person decides as about any other conflict.
    ann = workspace.tools_for_human("ann")
    ok(
        ann,
        "resolve_conflict",
        filepath="a.md",
        content="top\nbob\nend\n",
        message="m",
        expected_version=3,
        conflicts=[waiting.seq],
    )
    assert conflicts(workspace) == []
    assert text_of(workspace, "collab", "a.md") == "top\nbob\nend\n"


def test_only_what_is_clean_where_that_is_asked_for(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    write_in_turn(alice, bob, "both.md")
    write(alice, "own.md", "a\n", 0)
    outcome = revert(workspace, "alice", clean_only=True)
    assert [path for _, path, _ in outcome.record.written] == ["own.md"]
    assert conflicts(workspace) == []


def test_a_revert_is_reverted_and_the_lines_are_their_authors_again(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    write(bob, "a.md", "1\n2\n3\n", 0)
    write(alice, "a.md", "1\n2\n3\nalice\n", 1)
    write(alice, "new.md", "new\n", 0)
    first = revert(workspace, "alice")
    undone = workspace.reverts.apply(CallContext(ANN), RevertSelection(undo=first.id))
    assert text_of(workspace, "collab", "a.md") == "1\n2\n3\nalice\n"
    assert text_of(workspace, "collab", "new.md") == "new\n"
    # They are found again, by her name, and by that of the revert of the revert.
    workspace.reverts.apply(CallContext(ANN), RevertSelection(undo=undone.id))
    assert text_of(workspace, "collab", "a.md") == "1\n2\n3\n"
    workspace.reverts.apply(CallContext(ANN), RevertSelection(undo=undone.id))
    assert text_of(workspace, "collab", "a.md") == "1\n2\n3\n"
    with pytest.raises(RevertNotFound):
        workspace.reverts.apply(CallContext(ANN), RevertSelection(undo="none"))


def test_a_conflict_of_a_revert_goes_with_it(workspace: Workspace, alice: Toolbox, bob: Toolbox) -> None:
    write_in_turn(alice, bob, "a.md")
    first = revert(workspace, "alice")
    assert conflicts(workspace) == ["a.md"]
    workspace.reverts.apply(CallContext(ANN), RevertSelection(undo=first.id))
    assert conflicts(workspace) == []


def test_the_same_id_makes_one_revert(workspace: Workspace, alice: Toolbox) -> None:
    write(alice, "a.md", "a\n", 0)
    first = revert(workspace, "alice", revert_id="once")
    last = workspace.journal.last_seq()
    assert revert(workspace, "alice", revert_id="once") == first
    assert workspace.journal.last_seq() == last


def test_files_of_a_task_are_put_back_on_disk(team: Workspace, tmp_path: Path) -> None:
    folder = tmp_path / "project"
    alice, bob = team.tools("alice"), team.tools("bob")
    ok(bob, "write_file", path="main.py", content="def main():\n    pass\n\n\nmain()\n")
    since = team.journal.last_seq()
    ok(alice, "write_file", path="main.py", content="def main():\n    boom()\n\n\nmain()\n")
    ok(alice, "write_file", path="deep/in/junk.py", content="junk\n")
    (folder / "notes.txt").write_text("by hand\n")
    outcome = revert(team, "alice", after=since)
    assert (folder / "main.py").read_text() == "def main():\n    pass\n\n\nmain()\n"
    assert not (folder / "deep/in/junk.py").exists()
    assert (folder / "notes.txt").read_text() == "by hand\n"
    assert outcome.row.version == 2
    assert team.verify() == []
    team.reverts.apply(CallContext(ANN), RevertSelection(undo=outcome.id))
    assert (folder / "deep/in/junk.py").read_text() == "junk\n"
    assert "boom" in (folder / "main.py").read_text()


def test_in_files_of_a_task_a_person_can_decide_that_all_goes(team: Workspace, tmp_path: Path) -> None:
    alice, bob = team.tools("alice"), team.tools("bob")
    ok(bob, "write_file", path="main.py", content="1\n2\n3\n")
    ok(alice, "write_file", path="main.py", content="1\nalice\n3\n")
    ok(bob, "write_file", path="main.py", content="1\nalice and bob\n3\n")
    place = next(head.path for head in team.journal.heads("file") if head.path.endswith("/main.py"))
    person = team.tools_for_human("ann")
    kept = ok(person, "revert_work", agents=["alice"], clean_only=True, take_back=["file/elsewhere"])
    assert kept["written"] == []
    done = ok(person, "revert_work", agents=["alice"], take_back=[f"file/{place}"])
    assert [each["path"] for each in done["written"]] == [place]
    assert done["conflicts"] == []
    # What others wrote stays, beside what stood there before.
    assert sorted((tmp_path / "project/main.py").read_text().splitlines()) == ["1", "2", "3", "alice and bob"]
    assert team.verify() == []
