"""When the journal refuses a row about a working tree, nothing goes on as if it were there."""

from __future__ import annotations

from pathlib import Path

import pytest
from refusing import refusing
from trees.git_repo import git, make_repository
from trees.git_repository import Repository
from trees.recorded_tree import RecordedTree
from trees.test_landing import TEXT, Tree, collide, conflict_path, land, resolve
from trees.test_preview import predicted
from trees.tree_client import ScriptedClient
from watchroom import Workspace
from watchroom.errors import JournalError, WorkUnrecorded
from watchroom.features.races.service import RacePlan
from watchroom.features.trees.landing import read_landing
from watchroom.features.trees.pull_requests import PullRequestOptions
from watchroom.features.trees.rows import (
    COMMIT_AGENT,
    LAND,
    PREDICT,
    PULL_REQUEST,
    REPO,
    read_commit,
)
from watchroom.features.trees.service import Holder
from watchroom.features.trees.uses import FileWrite, ToolUse
from watchroom.features.trees.write_rules import WholeText
from watchroom.kernel.call_context import CallContext
from watchroom.texts import catalogue


def test_a_race_whose_rows_are_refused_leaves_nothing(kept: Workspace, repository: Repository) -> None:
    call, here = CallContext("human:dana"), str(repository.folder)
    plan = RacePlan("one", "Fix it.", ("opencode", "opencode"), 60.0)
    second = "NEW.tool = 'begin_race' AND NEW.detail LIKE '%\"number\": 2%'"
    with refusing(repository.root, second), pytest.raises(JournalError):
        kept.races.begin(call, plan, here)
    assert len(kept.own_trees.list_trees()) == 1
    assert "race" not in repository.git("branch", "--list")
    race, trees = kept.races.begin(call, plan, here)
    assert (len(race.entries), len(trees)) == (2, 2)


def test_a_conflict_of_a_landing_is_recorded_whole_or_not_at_all(
    kept: Workspace, repository: Repository
) -> None:
    work = Tree(repository, "work")
    collide(repository, work)
    with (
        refusing(repository.root, f"NEW.tool = '{LAND}' AND NEW.outcome = 'conflict'"),
        pytest.raises(JournalError),
    ):
        land(kept, work)
    assert kept.journal.head(REPO, conflict_path(kept, work, "a.txt")) is None
    assert land(kept, work).state == "conflict"


def test_a_refused_write_without_a_row_is_recorded_when_the_client_reports_it(
    kept: Workspace, repository: Repository, alice: ScriptedClient, bob: ScriptedClient
) -> None:
    alice.read("a.txt")
    bob.edit("a.txt", "three", "by bob")
    place = str(repository.folder / "a.txt")
    holder = Holder("alice", "session", "call")
    use = ToolUse("write", (FileWrite(place, WholeText("by alice\n")),))
    with (
        refusing(repository.root, f"NEW.zone = '{REPO}' AND NEW.outcome = 'conflict'"),
        pytest.raises(JournalError),
    ):
        kept.tree_calls.begin(holder, use, str(repository.folder))
    kept.tree_calls.end_refused(holder, use)
    kept.tree_calls.end_refused(holder, use)
    file = kept.trees.find(place)
    assert file is not None
    assert len(kept.journal.refused(REPO, file.path, limit=10)) == 1


def test_a_prediction_is_recorded_once_the_journal_accepts_it(
    kept: Workspace, repository: Repository
) -> None:
    work = Tree(repository, "work")
    assert predicted(kept) == {}
    repository.write("a.txt", TEXT.replace("three", "by main"))
    (work.folder / "a.txt").write_text(TEXT.replace("three", "by work"))
    with refusing(repository.root, f"NEW.tool = '{PREDICT}'"):
        assert predicted(kept) == {}
    repository.write("other.txt", "other\n")
    assert predicted(kept) == {("project", "work"): ("a.txt",)}


def authors(kept: Workspace, name: str) -> list[str]:
    file = next(each for each in kept.trees.all())
    return [row.actor for row in kept.journal.history(REPO, file.path(name)) if row.tool != "git_baseline"]


def test_the_files_of_a_command_whose_rows_were_refused_are_its_agents(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    call, given = alice.ask("Bash", {"command": "make"})
    (repository.folder / "made.txt").write_text("made\n")
    with refusing(repository.root, f"NEW.zone = '{REPO}'"), pytest.raises(JournalError):
        alice.report("Bash", call, given, {"stdout": ""})
    alice.hook("Stop")
    assert authors(kept, "made.txt") == ["alice"]


def test_an_edit_whose_row_was_refused_is_its_agents(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    alice.read("a.txt")
    call, given = alice.begin_edit("a.txt", "three", "by alice")
    with refusing(repository.root, f"NEW.zone = '{REPO}'"), pytest.raises(JournalError):
        alice.end_edit(call, given)
    kept.trees.refresh_all()
    alice.hook("Stop")
    assert authors(kept, "a.txt")[-1] == "alice"


def test_a_file_is_as_before_after_a_refused_decision_on_its_conflict(
    kept: Workspace, repository: Repository, alice: ScriptedClient, bob: ScriptedClient
) -> None:
    alice.read("a.txt")
    bob.edit("a.txt", "three", "by bob")
    place = str(repository.folder / "a.txt")
    use = ToolUse("write", (FileWrite(place, WholeText("by alice\n")),))
    kept.tree_calls.begin(Holder("alice", "session", "call"), use, str(repository.folder))
    file = kept.trees.find(place)
    assert file is not None
    before = repository.read("a.txt")
    with refusing(repository.root, "NEW.tool = 'resolve_conflict'"):
        assert resolve(kept, file.path, "settled\n")["error"] == "journal_failed"
    assert repository.read("a.txt") == before
    kept.trees.refresh_all()
    assert "outside" not in authors(kept, "a.txt")
    assert resolve(kept, file.path, "settled\n")["success"]
    assert repository.read("a.txt") == "settled\n"


def test_a_landing_whose_last_row_is_refused_is_reported_as_landed(
    kept: Workspace, repository: Repository
) -> None:
    work = Tree(repository, "work")
    (work.folder / "a.txt").write_text(TEXT.replace("three", "by work"))
    git(work.folder, "commit", "--quiet", "--all", "-m", "m")
    with refusing(repository.root, f"NEW.tool = '{LAND}' AND NEW.detail LIKE '%\"landed\"%'"):
        with pytest.raises(WorkUnrecorded) as error:
            land(kept, work)
        after = git(work.folder, "rev-parse", "HEAD")
        assert after[:12] in error.value.message()
        assert repository.git("rev-parse", "main") == after
    kept.landings.resume()
    assert [read_landing(row).state for row in kept.journal.rows(limit=1000) if row.tool == LAND][
        -1
    ] == "landed"


def test_a_commit_whose_row_is_refused_is_reported_as_made(tmp_path: Path) -> None:
    with Workspace.open(tmp_path / "team") as workspace:
        tree = RecordedTree(workspace, make_repository(tmp_path / "r", {"a": b"1\n"}))
        tree.write("alice", "a", b"2\n")
        with (
            refusing(workspace.root, f"NEW.tool = '{COMMIT_AGENT}'"),
            pytest.raises(WorkUnrecorded) as error,
        ):
            tree.commit("alice")
        assert git(tree.folder, "rev-parse", "HEAD")[:12] in error.value.message()
        # The next commit has only new work.
        tree.write("alice", "b", b"new\n")
        assert read_commit(tree.commit("alice")).took == {"b": (1,)}


def test_a_branch_whose_row_is_refused_is_reported_as_made(tmp_path: Path) -> None:
    with Workspace.open(tmp_path / "team") as workspace:
        tree = RecordedTree(workspace, make_repository(tmp_path / "r", {"a": b"1\n"}))
        git(tree.folder, "branch", "base")
        tree.write("alice", "a", b"2\n")
        plan = workspace.pull_requests.plan(tree.tree, PullRequestOptions("base"), catalogue("en"))
        call, branch = CallContext("human:dana"), plan.options.branch
        refusal = f"NEW.tool = '{PULL_REQUEST}' AND NEW.detail LIKE '%\"made\"%'"
        with refusing(workspace.root, refusal), pytest.raises(WorkUnrecorded) as error:
            workspace.pull_requests.open(call, tree.tree, plan, catalogue("en"), is_pushed=False)
        assert git(tree.folder, "rev-parse", branch)[:12] in error.value.message()
        # The branch still counts as Watchroom's own.
        plan = workspace.pull_requests.plan(tree.tree, plan.options, catalogue("en"))
        made = workspace.pull_requests.open(call, tree.tree, plan, catalogue("en"), is_pushed=False)
        assert (made.state, made.branch) == ("made", branch)


def test_agents_are_told_of_changes_although_later_changes_are_refused(
    kept: Workspace, repository: Repository, alice: ScriptedClient, bob: ScriptedClient
) -> None:
    names = [f"many/{number:03}.txt" for number in range(300)]
    for name in names:
        repository.write(name, "old\n")
    kept.trees.refresh_all()
    alice.read(names[0])
    call, given = bob.ask("Bash", {"command": "sed -i s/old/new/ many/*"})
    for name in names:
        repository.write(name, "new\n")
    refusal = f"NEW.zone = '{REPO}' AND NEW.path LIKE '%/{names[-1]}'"
    with refusing(repository.root, refusal), pytest.raises(JournalError):
        bob.report("Bash", call, given, {"stdout": ""})
    assert authors(kept, names[0])[-1] == "bob"
    before = len(alice.told)
    alice.read("b.txt")
    assert names[0] in "".join(alice.told[before:])
