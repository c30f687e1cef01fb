"""Files of two working trees that would conflict in a merge are known while they arise."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from random import Random

import pytest
from effort import rounds, seed
from trees.git_repo import git
from trees.git_repository import Repository
from trees.test_blob_reader import children
from trees.test_landing import TEXT, Tree, conflict_path, land, random_files, resolve, write_files
from trees.tree_client import ScriptedClient
from watchroom import Row, Workspace
from watchroom.features.overview.fold import Fold
from watchroom.features.overview.snapshots import read_model
from watchroom.features.trees.preview import ConflictPreview
from watchroom.features.trees.region_notices import MAX_NOTICES, RegionNotices
from watchroom.features.trees.rows import PREDICT, read_prediction

PATIENCE = 60.0


@pytest.fixture
def work(repository: Repository) -> Tree:
    return Tree(repository, "work")


def predicted(workspace: Workspace) -> dict[tuple[str, ...], tuple[str, ...]]:
    """Return the predicted conflicts by the names of the trees' folders, once all is merged."""
    workspace.trees.refresh_all()
    for _ in range(5):
        # A run compares some pairs, and schedules the next one.
        workspace.background.flush()
    model = read_model(workspace.journal, workspace.journal.last_seq())
    names = {each.id: Path(each.folder).name for each in model.trees}
    return {
        tuple(sorted(names[tree] for tree in pair)): each.paths for pair, each in model.predictions.items()
    }


def test_a_conflict_is_predicted_when_it_arises_and_forgotten_when_it_goes(
    kept: Workspace, repository: Repository, work: Tree
) -> None:
    assert predicted(kept) == {}
    repository.write("a.txt", TEXT.replace("three", "by main"))
    assert predicted(kept) == {}, "only one side changed"
    (work.folder / "a.txt").write_text(TEXT.replace("three", "by work"))
    assert predicted(kept) == {("project", "work"): ("a.txt",)}
    (work.folder / "a.txt").write_text(TEXT.replace("one", "ONE"))
    assert predicted(kept) == {}, "both changes merge"


def test_commits_and_uncommitted_changes_count(kept: Workspace, repository: Repository, work: Tree) -> None:
    work.commit(a__txt=TEXT.replace("three", "by work"))
    assert predicted(kept) == {}
    repository.write("a.txt", TEXT.replace("three", "by main"))
    assert predicted(kept) == {("project", "work"): ("a.txt",)}
    git(work.folder, "reset", "--quiet", "--hard", "HEAD^")
    assert predicted(kept) == {}


@pytest.mark.parametrize("kind", ["deleted", "added", "binary"])
def test_other_conflicts_than_of_lines(
    kept: Workspace, repository: Repository, work: Tree, kind: str
) -> None:
    name = "new.txt" if kind == "added" else "a.txt"
    repository.write(name, "by main\n")
    if kind == "deleted":
        (work.folder / name).unlink()
    else:
        (work.folder / name).write_bytes(b"by work\n" if kind == "added" else b"\0by work\n")
    assert predicted(kept) == {("project", "work"): (name,)}
    (work.folder / name).write_text("by main\n")
    assert predicted(kept) == {}


def test_each_pair_of_trees_is_compared(kept: Workspace, repository: Repository) -> None:
    trees = [Tree(repository, name) for name in ("x", "y", "z")]
    for number, tree in enumerate(trees[:2]):
        (tree.folder / "a.txt").write_text(TEXT.replace("three", f"{number}"))
    (trees[2].folder / "b.txt").write_text("z\n")
    assert predicted(kept) == {("x", "y"): ("a.txt",)}
    repository.git("worktree", "remove", "--force", str(trees[1].folder))
    kept.trees.look_after()
    (trees[0].folder / "b.txt").write_text("x\n")
    assert predicted(kept) == {("x", "z"): ("b.txt",)}


def test_work_that_has_landed_conflicts_with_no_other_tree(kept: Workspace, repository: Repository) -> None:
    one, other = Tree(repository, "one"), Tree(repository, "other")
    for tree in (one, other):
        tree.commit(a__txt=TEXT.replace("three", f"by {tree.name}"))
    assert predicted(kept) == {("one", "other"): ("a.txt",)}
    assert land(kept, one).state == "landed"
    main = repository.folder.name
    assert predicted(kept) == {("other", main): ("a.txt",)}
    (one.folder / "b.txt").write_text("by one\n")
    other.commit(b__txt="by other\n")
    assert predicted(kept) == {("other", main): ("a.txt",), ("one", "other"): ("b.txt",)}


def predictions(workspace: Workspace) -> list[Row]:
    return [row for row in workspace.journal.rows(0, limit=1000) if row.tool == PREDICT]


def test_what_is_known_already_makes_no_row(kept: Workspace, repository: Repository, work: Tree) -> None:
    repository.write("a.txt", "by main\n")
    (work.folder / "a.txt").write_text("by work\n")
    predicted(kept)
    repository.write("b.txt", "more\n")
    predicted(kept)
    again = ConflictPreview(kept._store, kept.trees, RegionNotices(), lambda update: update())
    again.start()
    assert len(predictions(kept)) == 1


def test_an_agents_write_shows_a_conflict_within_a_second(
    kept: Workspace, repository: Repository, work: Tree
) -> None:
    client = ScriptedClient(kept, "alice", work.folder)
    repository.write("a.txt", TEXT.replace("three", "by main"))
    predicted(kept)
    client.read("a.txt")
    taken = []
    for old, new in (("three", "by work"), ("by work", "by main"), ("by main", "by alice")):
        before = len(predictions(kept))
        client.edit("a.txt", old, new)
        began = time.monotonic()
        while len(predictions(kept)) == before:
            assert time.monotonic() - began < PATIENCE
            time.sleep(0.01)
        taken.append(time.monotonic() - began)
    assert min(taken) < 1.0


def test_closing_leaves_no_process_behind(repository: Repository, work: Tree) -> None:
    before = children()
    with Workspace.open(repository.root) as workspace:
        assert workspace.keep()
        repository.write("a.txt", "by main\n")
        (work.folder / "a.txt").write_text("by work\n")
        workspace.trees.refresh_all()
    # A job that was scheduled during the close.
    preview = ConflictPreview(workspace._store, workspace.trees, RegionNotices(), lambda update: update())
    preview.start()
    assert children() <= before


def test_no_git_is_started_after_a_write(
    kept: Workspace, repository: Repository, work: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a.txt", "b.txt"):
        repository.write(name, "by main\n")
    (work.folder / "a.txt").write_text("by work\n")
    assert predicted(kept) == {("project", "work"): ("a.txt",)}
    monkeypatch.setenv("PATH", str(repository.folder))
    (work.folder / "b.txt").write_text("by work\n")
    assert predicted(kept) == {("project", "work"): ("a.txt", "b.txt")}


@pytest.mark.real
def test_predicted_files_are_those_that_git_cannot_merge(tmp_path: Path) -> None:
    dice = Random(seed(5))
    for number in range(rounds(20, 500)):
        repository = Repository(tmp_path / f"{number}" / "project")
        files = {f"f{n}.txt": [f"{n} line {line}" for line in range(8)] for n in range(3)}
        write_files(repository.folder, files)
        repository.commit()
        tree = Tree(repository, "work")
        sides = [{name: [*lines] for name, lines in files.items()} for _ in range(2)]
        with Workspace.open(repository.root) as workspace:
            assert workspace.keep()
            for folder, side in zip((repository.folder, tree.folder), sides, strict=True):
                random_files(dice, side, "s", moves=False)
                write_files(folder, side)
            found = set(predicted(workspace).get(("project", "work"), ()))
        for folder in (repository.folder, tree.folder):
            git(folder, "add", "--all")
            git(folder, "commit", "--quiet", "--allow-empty", "--message", "work")
        assert found == conflicts_of_git(repository)


def conflicts_of_git(repository: Repository) -> set[str]:
    """Return the files that git cannot merge without following renames."""
    command = ["git", "-c", "merge.renames=false", "merge-tree", "--write-tree", "--name-only"]
    done = subprocess.run(
        [*command, "--no-messages", "-z", "main", "work"],
        cwd=repository.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1)
    return {each for each in done.stdout.split("\0")[1:] if each}


def test_many_trees_are_compared_in_short_steps(kept: Workspace, repository: Repository) -> None:
    trees = [Tree(repository, f"t{number}") for number in range(5)]
    for tree in trees:
        tree.commit(a__txt=f"by {tree.name}\n")
    found = predicted(kept)
    assert len(found) == 10, "each pair but those with the main tree"
    assert set(found.values()) == {("a.txt",)}


# Notices


def news_of(workspace: Workspace, client: ScriptedClient) -> list[str]:
    """Return what the agent reads about its lines after its next call."""
    predicted(workspace)
    before = len(client.told)
    client.read("b.txt")
    return [line for told in client.told[before:] for line in told.split("\n") if "changed lines of" in line]


def test_both_agents_are_told_once_that_their_lines_are_changed_elsewhere(
    kept: Workspace, repository: Repository
) -> None:
    x, y = Tree(repository, "x"), Tree(repository, "y")
    alice, bob = ScriptedClient(kept, "alice", x.folder), ScriptedClient(kept, "bob", y.folder)
    carol = ScriptedClient(kept, "carol", repository.folder)
    for client in (alice, bob):
        client.read("a.txt")
    alice.edit("a.txt", "three", "by alice")
    assert news_of(kept, alice) == []
    bob.edit("a.txt", "three\nfour", "by bob\nBOB")
    (told,) = news_of(kept, alice)
    assert told.startswith(
        "bob changed lines of 'a.txt' in the working tree y. You changed the same lines here (lines: 3-4)."
    )
    assert str(y.folder / "a.txt") in told
    (told,) = news_of(kept, bob)
    assert told.startswith("alice changed lines of 'a.txt' in the working tree x")
    assert [news_of(kept, each) for each in (alice, bob, carol)] == [[], [], []]
    alice.edit("a.txt", "by alice", "again by alice")
    assert [len(news_of(kept, each)) for each in (alice, bob)] == [0, 1], "only what bob has is new"
    bob.edit("a.txt", "one", "ONE")
    assert [len(news_of(kept, each)) for each in (alice, bob)] == [0, 0], "these lines do not conflict"


def test_an_agent_is_not_told_of_what_no_longer_conflicts(kept: Workspace, repository: Repository) -> None:
    x, y = Tree(repository, "x"), Tree(repository, "y")
    alice, bob = ScriptedClient(kept, "alice", x.folder), ScriptedClient(kept, "bob", y.folder)
    for client in (alice, bob):
        client.read("a.txt")
        client.edit("a.txt", "three", f"by {client.agent}")
    predicted(kept)
    alice.edit("a.txt", "by alice", "three")
    assert [news_of(kept, each) for each in (alice, bob)] == [[], []]


def test_the_author_of_the_lines_is_told_among_all_who_changed_the_file(
    kept: Workspace, repository: Repository
) -> None:
    x, y = Tree(repository, "x"), Tree(repository, "y")
    alice, carol = (ScriptedClient(kept, name, x.folder) for name in ("alice", "carol"))
    bob = ScriptedClient(kept, "bob", y.folder)
    for client, line in ((alice, "one"), (carol, "three"), (bob, "three")):
        client.read("a.txt")
        client.edit("a.txt", line, f"by {client.agent}")
    assert [len(news_of(kept, each)) for each in (alice, carol)] == [0, 1]
    (told,) = news_of(kept, bob)
    assert told.startswith("carol changed lines of 'a.txt' in the working tree x")


def test_the_own_work_in_two_trees_is_no_news(kept: Workspace, repository: Repository) -> None:
    x, y = Tree(repository, "x"), Tree(repository, "y")
    clients = [ScriptedClient(kept, "alice", each.folder, session=each.name) for each in (x, y)]
    for number, client in enumerate(clients):
        client.read("a.txt")
        client.edit("a.txt", "three", f"{number}")
    assert [news_of(kept, each) for each in clients] == [[], []]


def test_an_agent_is_told_of_few_files_at_once(kept: Workspace, repository: Repository) -> None:
    x, y = Tree(repository, "x"), Tree(repository, "y")
    alice, bob = ScriptedClient(kept, "alice", x.folder), ScriptedClient(kept, "bob", y.folder)
    for client in (alice, bob):
        for number in range(MAX_NOTICES + 2):
            client.write(f"new{number}.txt", f"by {client.agent}\n")
    assert [len(news_of(kept, alice)) for _ in range(3)] == [MAX_NOTICES, 2, 0]


# Needs


def needs(workspace: Workspace) -> list[tuple[str, tuple[str, ...]]]:
    """Return the branches and files of the needs about predicted conflicts."""
    predicted(workspace)
    model = read_model(workspace.journal, workspace.journal.last_seq())
    found = [read_prediction(need.row) for need in model.needs if need.kind == "predicted"]
    return [(" ".join(sorted(each.names)), each.paths) for each in found]


def test_a_conflict_is_a_need_once_both_agents_have_stopped(kept: Workspace, repository: Repository) -> None:
    x, y = Tree(repository, "x"), Tree(repository, "y")
    alice, bob = ScriptedClient(kept, "alice", x.folder), ScriptedClient(kept, "bob", y.folder)
    alice.write("a.txt", "by alice\n")
    bob.write("a.txt", "by bob\n")
    assert predicted(kept) == {("x", "y"): ("a.txt",)}
    assert needs(kept) == []
    alice.hook("Stop")
    assert needs(kept) == [], "bob is still at work"
    bob.hook("SessionEnd", reason="other")
    assert needs(kept) == [("x y", ("a.txt",))]
    alice.hook("UserPromptSubmit", prompt="Go on")
    assert needs(kept) == []
    alice.hook("Stop")
    (y.folder / "a.txt").write_text(TEXT)
    assert needs(kept) == []


def test_a_conflict_with_the_target_waits_for_the_agent_of_the_tree_only(
    kept: Workspace, repository: Repository, work: Tree
) -> None:
    alice = ScriptedClient(kept, "alice", repository.folder)
    bob = ScriptedClient(kept, "bob", work.folder)
    alice.read("a.txt")
    alice.write("a.txt", "by alice\n")
    bob.read("a.txt")
    bob.write("a.txt", "by bob\n")
    assert needs(kept) == []
    bob.hook("Stop")
    assert needs(kept) == [("main work", ("a.txt",))]


def test_a_dismissed_conflict_is_a_need_again_when_another_file_conflicts(
    kept: Workspace, repository: Repository, work: Tree
) -> None:
    repository.write("a.txt", "by main\n")
    (work.folder / "a.txt").write_text("by work\n")
    assert needs(kept) == [("main work", ("a.txt",))]
    dana = kept.tools_for_human("dana")
    row = next(row.seq for row in kept.journal.rows(0, limit=1000) if row.tool == PREDICT)
    assert dana.dispatch_tool_call("mark_as_seen", {"row": row})["success"]
    assert needs(kept) == []
    repository.write("b.txt", "by main\n")
    (work.folder / "b.txt").write_text("by work\n")
    assert needs(kept) == [("main work", ("a.txt", "b.txt"))]


def test_a_conflict_of_a_landing_takes_the_place_of_its_prediction(
    kept: Workspace, repository: Repository, work: Tree
) -> None:
    other = Tree(repository, "other")
    for tree in (work, other):
        tree.commit(a__txt=TEXT.replace("three", f"by {tree.name}"))
    repository.write("a.txt", TEXT.replace("three", "by main"))
    repository.commit()
    names = ["main other", "main work", "other work"]
    assert sorted(name for name, _ in needs(kept)) == names
    assert land(kept, work).state == "conflict"
    assert sorted(name for name, _ in needs(kept)) == ["main other", "other work"]
    resolve(kept, conflict_path(kept, work, "a.txt"), TEXT.replace("three", "by both"))
    assert sorted(name for name, _ in needs(kept)) == ["main other", "other work"]
    work.commit(b__txt="by work\n")
    repository.write("b.txt", "by main\n")
    assert ("main work", ("a.txt", "b.txt")) in needs(kept), "another file"


def test_a_landing_is_no_operation_of_the_author_of_its_lines(
    kept: Workspace, repository: Repository, work: Tree
) -> None:
    bob = ScriptedClient(kept, "bob", work.folder)
    bob.write("a.txt", TEXT.replace("three", "by bob"))
    bob.hook("SessionEnd", reason="other")
    work.commit()
    repository.commit(a__txt=TEXT.replace("three", "by main"))
    before = read_model(kept.journal, kept.journal.last_seq()).agent("bob")
    assert land(kept, work).state == "conflict"
    after = read_model(kept.journal, kept.journal.last_seq()).agent("bob")
    assert before is not None
    assert after is not None
    assert (after.last, after.refused, after.activity) == (before.last, before.refused, before.activity)


def test_a_fold_that_is_loaded_has_the_same_needs(
    kept: Workspace, repository: Repository, work: Tree
) -> None:
    repository.write("a.txt", "by main\n")
    (work.folder / "a.txt").write_text("by work\n")
    predicted(kept)
    fold = Fold(kept.journal.content, kept.journal.row)
    fold.apply(kept.journal.rows(0, limit=1000))
    again = Fold.load(kept.journal.content, kept.journal.row, fold.dump())
    assert again.model() == fold.model()
    assert [need.kind for need in again.model().needs] == ["predicted"]


def test_nothing_is_predicted_of_texts_that_are_too_long_to_merge(
    kept: Workspace, repository: Repository, work: Tree
) -> None:
    repository.write("a.txt", "main\n" * 200_000)
    (work.folder / "a.txt").write_text("work\n" * 200_000)
    assert predicted(kept) == {}
