"""Files, folders and repositories that are unusual: links, submodules, sparse trees, moved and reused places."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest
from trees.git_repo import git
from trees.git_repository import Repository
from trees.tree_client import Refused, ScriptedClient
from watchroom import Row, Workspace
from watchroom.features.trees.recorder import TreeRecorder, Window
from watchroom.features.trees.rows import REPO, TREE, grade_of


def rows_in(workspace: Workspace, folder: Path, name: str) -> list[Row]:
    """Return the versions of a file in the tree at ``folder``, after everything was recorded."""
    workspace.trees.refresh_all()
    return workspace.journal.history(REPO, tree_at(workspace, folder).path(name))


def tree_at(workspace: Workspace, folder: Path) -> TreeRecorder:
    (found,) = (each for each in workspace.trees.all() if each.git.folder == os.path.realpath(folder))
    return found


def authors(workspace: Workspace, folder: Path, name: str) -> list[tuple[str, str]]:
    return [(row.actor, grade_of(row)) for row in rows_in(workspace, folder, name)]


def reopen(folder: Path) -> Workspace:
    opened = Workspace.open(folder / ".git" / "watchroom", agents=["alice", "bob"])
    assert opened.keep()
    return opened


def test_a_link_that_becomes_a_file_is_recorded(kept: Workspace, repository: Repository) -> None:
    link = repository.folder / "link"
    link.symlink_to("a.txt")
    repository.commit()
    link.unlink()
    link.write_text("a file now\n")
    assert authors(kept, repository.folder, "link") == [("outside", "external")]


def test_a_file_that_a_program_has_emptied_is_recorded_once_it_is_written(
    kept: Workspace, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = repository.folder / "b.txt"
    sleep = time.sleep
    written: list[str] = []

    def write(seconds: float) -> None:
        # Whoever records the file waits.
        if not path.stat().st_size:
            written.append(f"saved {len(written)}\n")
            path.write_text(written[-1])
        sleep(seconds)

    monkeypatch.setattr(time, "sleep", write)
    until, before = time.monotonic() + 60, 0
    while not written:
        # On a busy machine the emptied file can be too old.
        assert time.monotonic() < until
        path.write_text("before\n")
        before = len(rows_in(kept, repository.folder, "b.txt"))
        os.truncate(path, 0)
        kept.trees.refresh_all()
    rows = rows_in(kept, repository.folder, "b.txt")[before:]
    assert [kept.journal.content(row.seq) for row in rows] == written


def test_a_file_that_stays_empty_is_recorded(kept: Workspace, repository: Repository) -> None:
    os.truncate(repository.folder / "b.txt", 0)
    rows = rows_in(kept, repository.folder, "b.txt")
    assert [kept.journal.content(row.seq) for row in rows] == ["b\n", ""]


def test_a_file_that_becomes_a_link_is_deleted(kept: Workspace, repository: Repository) -> None:
    path = repository.folder / "b.txt"
    path.unlink()
    path.symlink_to("a.txt")
    assert [row.deleted for row in rows_in(kept, repository.folder, "b.txt")] == [False, True]


@pytest.mark.parametrize(
    "name", ["new\nline", "a b", "größe.txt", " lead", "tab\t", "quote\"'", "*[x]?", ":(top)x"]
)
def test_names_of_all_kinds_are_recorded_and_found_again(repository: Repository, name: str) -> None:
    with reopen(repository.folder) as workspace:
        repository.write(name, "one\n")
        assert authors(workspace, repository.folder, name) == [("outside", "external")]
    with reopen(repository.folder) as workspace:
        assert authors(workspace, repository.folder, name) == [("outside", "external")]
        repository.write(name, "two\n")
        assert len(authors(workspace, repository.folder, name)) == 2


def test_a_name_that_is_no_utf_8_is_found_again(repository: Repository) -> None:
    name = os.fsdecode(b"caf\xe9.txt")
    (repository.folder / name).write_text("one\n")
    for _ in range(2):
        with reopen(repository.folder) as workspace:
            assert authors(workspace, repository.folder, name) == [("outside", "external")]


def test_a_path_that_is_too_long_for_a_row_is_reported_once(
    repository: Repository, caplog: pytest.LogCaptureFixture
) -> None:
    long, longest = ("/".join(["f" * 190] * 5 + ["g" * size]) for size in (45, 46))
    with reopen(repository.folder) as workspace:
        alice = ScriptedClient(workspace, "alice", repository.folder)
        for name in (long, longest):
            alice.write(name, "x\n")
            repository.write(f"{name[:-1]}h", "y\n")
        assert authors(workspace, repository.folder, long) == [("alice", "tool")]
        assert len(authors(workspace, repository.folder, f"{long[:-1]}h")) == 1
        assert authors(workspace, repository.folder, longest) == []
        paths = {row.path for row in workspace.journal.rows(0, limit=1000) if row.zone == REPO}
        assert len(paths) == 2
    assert sum("1000 bytes" in each.message for each in caplog.records) == 1


def test_names_that_differ_in_case_are_two_files(kept: Workspace, repository: Repository) -> None:
    repository.write("A.TXT", "x\n")
    assert authors(kept, repository.folder, "A.TXT") == [("outside", "external")]
    assert authors(kept, repository.folder, "a.txt") == []


def test_a_repository_that_was_moved_keeps_its_versions(repository: Repository, tmp_path: Path) -> None:
    with reopen(repository.folder) as workspace:
        repository.write("a.txt", "changed\n")
        before = [row.seq for row in rows_in(workspace, repository.folder, "a.txt")]
    moved = tmp_path / "elsewhere"
    repository.folder.rename(moved)
    with reopen(moved) as workspace:
        assert [row.seq for row in rows_in(workspace, moved, "a.txt")] == before
        (moved / "a.txt").write_text("again\n")
        assert len(rows_in(workspace, moved, "a.txt")) == len(before) + 1


def test_a_worktree_whose_place_is_used_again_is_another_tree(
    kept: Workspace, repository: Repository, tmp_path: Path
) -> None:
    folder = tmp_path / "linked"
    ids = []
    for text in ("first\n", "second\n"):
        repository.git("worktree", "add", "--quiet", "--detach", str(folder))
        (folder / "a.txt").write_text(text)
        last = rows_in(kept, folder, "a.txt")[-1]
        assert (kept.journal.content(last.seq), last.version) == (text, 2)
        ids.append(tree_at(kept, folder).id)
        repository.git("worktree", "remove", "--force", str(folder))
    assert len(set(ids)) == 2


@pytest.fixture
def linked(kept: Workspace, repository: Repository, tmp_path: Path) -> Path:
    """The folder of a linked tree."""
    folder = tmp_path / "linked"
    repository.git("worktree", "add", "--quiet", "--detach", str(folder))
    kept.trees.refresh_all()
    return folder


def replace_tree(repository: Repository, folder: Path, text: str, *, has_same_folder: bool = False) -> None:
    """Remove the tree in ``folder`` by hand, add another one there, and write ``text`` into its a.txt.
    ``has_same_folder``: only empty the folder."""
    if has_same_folder:
        git(folder, "rm", "-r", "--force", "--quiet", ".")
        (folder / ".git").unlink()
    else:
        shutil.rmtree(folder)
    repository.git("worktree", "prune")
    repository.git("worktree", "add", "--quiet", "--detach", str(folder))
    (folder / "a.txt").write_text(text)


@pytest.mark.parametrize("is_reported", [True, False])
def test_a_write_that_began_in_a_replaced_tree_is_in_no_tree(
    kept: Workspace, repository: Repository, linked: Path, is_reported: bool
) -> None:
    alice, old = ScriptedClient(kept, "alice", linked), tree_at(kept, linked)
    call, given = alice.begin_write("a.txt", "by alice\n")
    replace_tree(repository, linked, "by alice\n")
    assert tree_at(kept, linked).id != old.id
    if is_reported:
        alice.report("Write", call, given, {"type": "update", "content": "by alice\n", "originalFile": ""})
    alice.stop()
    assert authors(kept, linked, "a.txt") == [("system", "git"), ("outside", "external")]
    assert kept.journal.history(REPO, old.path("a.txt")) == []
    assert kept.journal.refused(REPO, old.path("a.txt")) == []
    assert alice.told == []


@pytest.mark.parametrize("has_same_folder", [False, True])
def test_nothing_that_agents_saw_or_lease_in_a_replaced_tree_counts_in_the_next_one(
    kept: Workspace, repository: Repository, linked: Path, has_same_folder: bool
) -> None:
    alice, bob = (ScriptedClient(kept, each, linked) for each in ("alice", "bob"))
    alice.edit("a.txt", "one", "ONE")
    alice.begin_edit("a.txt", "two", "TWO")
    replace_tree(repository, linked, "one\nby hand\n", has_same_folder=has_same_folder)
    assert bob.edit("a.txt", "by hand", "by bob")
    assert authors(kept, linked, "a.txt")[1:] == [("outside", "external"), ("bob", "tool")]
    with pytest.raises(Refused, match="have not read"):
        alice.write("a.txt", "by alice\n")
    (linked / "b.txt").write_text("by hand\n")
    assert authors(kept, linked, "b.txt") == [("system", "git"), ("outside", "external")]


def test_a_command_that_ended_while_git_worked_in_a_replaced_tree_is_over(
    kept: Workspace, repository: Repository, linked: Path
) -> None:
    alice = ScriptedClient(kept, "alice", linked)
    call, given = alice.begin_bash("make a.txt")
    locked = Path(git(linked, "rev-parse", "--absolute-git-dir"), "index.lock")
    locked.touch()
    with locked.open("rb"):
        alice.end_bash(call, given)
        assert kept.trees.is_uncompared(Window("alice", call))
    replace_tree(repository, linked, "by hand\n")
    assert authors(kept, linked, "a.txt") == [("system", "git"), ("outside", "external")]
    assert not kept.trees.is_uncompared(Window("alice", call))


def test_a_tree_whose_folder_was_replaced_by_a_copy_is_read_from_the_copy(
    kept: Workspace, linked: Path, tmp_path: Path
) -> None:
    tree, first = tree_at(kept, linked).id, tmp_path / "first"
    linked.rename(first)
    shutil.copytree(first, linked)
    for folder, text in ((first, "in the first folder\n"), (linked, "in the copy\n")):
        (folder / "a.txt").write_text(text)
    assert kept.journal.content(rows_in(kept, linked, "a.txt")[-1].seq) == "in the copy\n"
    assert tree_at(kept, linked).id == tree


def test_texts_stay_after_git_has_forgotten_them(kept: Workspace, repository: Repository) -> None:
    repository.write("a.txt", "second\n")
    kept.trees.refresh_all()
    repository.git("commit", "--quiet", "--all", "--amend", "--message=other")
    repository.git("reflog", "expire", "--expire=now", "--all")
    repository.git("gc", "--quiet", "--prune=now")
    found = rows_in(kept, repository.folder, "a.txt")
    texts = [kept.journal.content(row.seq) for row in found]
    assert texts == ["one\ntwo\nthree\nfour\nfive\n", "second\n"]


def test_a_submodule_is_none_of_the_tree(
    kept: Workspace, repository: Repository, tmp_path: Path, alice: ScriptedClient
) -> None:
    Repository(tmp_path / "other").commit(x__txt="x\n")
    add = ("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(tmp_path / "other"), "sub")
    repository.git(*add)
    repository.git("commit", "--quiet", "--message=sub")
    kept.trees.refresh_all()
    repository.write("sub/x.txt", "y\n")
    alice.edit("sub/x.txt", "y", "z")
    assert authors(kept, repository.folder, "sub/x.txt") == []
    assert authors(kept, repository.folder, "sub") == []


def test_files_that_a_sparse_checkout_leaves_out_are_not_deleted(
    kept: Workspace, repository: Repository
) -> None:
    repository.commit(**{"in/x__txt": "x\n", "out/y__txt": "y\n"})
    assert authors(kept, repository.folder, "out/y.txt") == [("outside", "external")]
    repository.git("sparse-checkout", "set", "in")
    assert not (repository.folder / "out" / "y.txt").exists()
    assert len(rows_in(kept, repository.folder, "out/y.txt")) == 1
    repository.git("sparse-checkout", "disable")
    assert len(rows_in(kept, repository.folder, "out/y.txt")) == 1


def test_trees_of_a_bare_repository_are_recorded(repository: Repository, tmp_path: Path) -> None:
    bare, tree = tmp_path / "bare.git", tmp_path / "tree"
    git(tmp_path, "clone", "--quiet", "--bare", str(repository.folder), str(bare))
    git(bare, "worktree", "add", "--quiet", str(tree), "main")
    with Workspace.open(bare / "watchroom", agents=["alice"]) as workspace:
        assert workspace.keep()
        alice = ScriptedClient(workspace, "alice", tree)
        alice.edit("a.txt", "two", "TWO")
        assert authors(workspace, tree, "a.txt") == [("system", "git"), ("alice", "tool")]


def test_a_file_of_lfs_without_its_program_is_recorded(repository: Repository) -> None:
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 5\n"
    repository.commit(big__dat=pointer)
    repository.write(".gitattributes", "*.dat filter=lfs diff=lfs merge=lfs -text\n")
    repository.git("config", "filter.lfs.smudge", "no-such-program smudge -- %f")
    repository.git("config", "filter.lfs.required", "true")
    with reopen(repository.folder) as workspace:
        workspace.trees.refresh_all()
        repository.write("big.dat", "12345")
        assert authors(workspace, repository.folder, "big.dat") == [
            ("system", "git"),
            ("outside", "external"),
        ]


def test_ignored_files_are_never_recorded(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    repository.write(".gitignore", "build/\n*.log\n")
    kept.trees.refresh_all()
    repository.write("build/deep/x.txt", "x\n")
    alice.bash("echo secret > a.log; mkdir -p new/build; echo x > new/build/x")
    alice.write("b.log", "secret\n")
    for name in ("build/deep/x.txt", "a.log", "b.log", "new/build/x"):
        assert authors(kept, repository.folder, name) == []


@pytest.mark.parametrize("place", [".gitignore", "deep/.gitignore"])
def test_a_new_rule_of_gitignore_holds_at_once(kept: Workspace, repository: Repository, place: str) -> None:
    repository.write("deep/one.log", "x\n")
    assert len(authors(kept, repository.folder, "deep/one.log")) == 1
    repository.write(place, "*.log\n")
    kept.trees.refresh_all()
    repository.write("deep/two.log", "x\n")
    assert authors(kept, repository.folder, "deep/two.log") == []
    repository.write(place, "")
    assert len(authors(kept, repository.folder, "deep/two.log")) == 1


def test_a_large_file_is_known_by_its_size(kept: Workspace, repository: Repository) -> None:
    (repository.folder / "large.bin").write_bytes(b"x" * 11_000_000)
    (row,) = rows_in(kept, repository.folder, "large.bin")
    assert row.detail["size"] == 11_000_000
    assert len(rows_in(kept, repository.folder, "large.bin")) == 1


def test_a_file_becomes_a_folder_and_a_file_again(kept: Workspace, repository: Repository) -> None:
    path = repository.folder / "b.txt"
    path.unlink()
    repository.write("b.txt/inner.txt", "x\n")
    assert [row.deleted for row in rows_in(kept, repository.folder, "b.txt")] == [False, True]
    assert len(rows_in(kept, repository.folder, "b.txt/inner.txt")) == 1
    shutil.rmtree(path)
    repository.write("b.txt", "again\n")
    assert [row.deleted for row in rows_in(kept, repository.folder, "b.txt")] == [False, True, False]


@pytest.mark.skipif(os.geteuid() == 0, reason="root can read every folder")
def test_a_folder_that_cannot_be_read_hides_only_its_own_files(
    kept: Workspace, repository: Repository
) -> None:
    repository.write("closed/x.txt", "x\n")
    kept.trees.refresh_all()
    (repository.folder / "closed").chmod(0)
    try:
        repository.write("a.txt", "changed\n")
        assert authors(kept, repository.folder, "a.txt")[-1] == ("outside", "external")
    finally:
        (repository.folder / "closed").chmod(0o755)


def test_a_tree_that_has_not_changed_has_one_row(repository: Repository) -> None:
    for _ in range(3):
        with Workspace.open(repository.root) as workspace:
            workspace.trees.refresh_all()
            assert [row.version for row in workspace.journal.rows(0, limit=100) if row.zone == TREE] == [1]
    repository.git("checkout", "-q", "-b", "other")
    with Workspace.open(repository.root) as workspace:
        workspace.trees.refresh_all()
        assert [row.version for row in workspace.journal.rows(0, limit=100) if row.zone == TREE] == [1, 2]
