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
from trees.test_landing import TEXT, Tree, random_files, write_files
from trees.tree_client import ScriptedClient
from watchroom import Workspace
from watchroom.features.overview.snapshots import read_model
from watchroom.features.trees.preview import ConflictPreview
from watchroom.features.trees.rows import PREDICT

PATIENCE = 5.0


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


def test_what_is_known_already_makes_no_row(kept: Workspace, repository: Repository, work: Tree) -> None:
    repository.write("a.txt", "by main\n")
    (work.folder / "a.txt").write_text("by work\n")
    predicted(kept)
    repository.write("b.txt", "more\n")
    predicted(kept)
    again = ConflictPreview(kept._store, kept.trees, lambda update: update())
    again.start()
    rows = [row for row in kept.journal.rows(0, limit=1000) if row.tool == PREDICT]
    assert len(rows) == 1


def test_an_agents_write_shows_a_conflict_within_a_second(
    kept: Workspace, repository: Repository, work: Tree
) -> None:
    client = ScriptedClient(kept, "alice", work.folder)
    repository.write("a.txt", TEXT.replace("three", "by main"))
    predicted(kept)
    client.read("a.txt")
    client.edit("a.txt", "three", "by work")
    began = time.monotonic()
    while not any(row.tool == PREDICT for row in kept.journal.rows(0, limit=1000)):
        assert time.monotonic() - began < PATIENCE
        time.sleep(0.01)
    assert time.monotonic() - began < 1.0


def test_closing_leaves_no_process_behind(repository: Repository, work: Tree) -> None:
    before = children()
    with Workspace.open(repository.root) as workspace:
        assert workspace.keep()
        repository.write("a.txt", "by main\n")
        (work.folder / "a.txt").write_text("by work\n")
        workspace.trees.refresh_all()
    # A job that was scheduled during the close.
    preview = ConflictPreview(workspace._store, workspace.trees, lambda update: update())
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


def test_nothing_is_predicted_of_texts_that_are_too_long_to_merge(
    kept: Workspace, repository: Repository, work: Tree
) -> None:
    repository.write("a.txt", "main\n" * 200_000)
    (work.folder / "a.txt").write_text("work\n" * 200_000)
    assert predicted(kept) == {}
