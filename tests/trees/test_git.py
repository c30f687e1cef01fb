"""What a working tree says about itself, against git."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from trees.git_repo import git, git_bytes, make_repository, write
from watchroom.errors import GitBusy, GitError, InvalidBranch
from watchroom.features.trees.git import FileState, GitTree, find_common, parse_lfs_pointer

ODD_PATHS = (
    "with space",
    "umlaut ä",
    "new\nline",
    " leading",
    "tab\tin",
    'quote"',
    "return\r",
    "-dash",
    ":1:x",
)


def tree_of(folder: Path) -> GitTree:
    found = GitTree.find(str(folder))
    assert found is not None
    return found


def test_a_folder_in_the_tree_leads_to_the_tree(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "a b", {"src/x": b"1\n"})
    tree = tree_of(folder / "src")
    assert (tree.folder, tree.git, tree.common) == (str(folder), f"{folder}/.git", f"{folder}/.git")


def test_a_name_with_a_line_feed_is_found(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "a\nb", {"x": b"1\n"})
    assert tree_of(folder).folder == str(folder)


def test_no_repository_and_a_bare_one_have_no_tree(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet", "--bare", "bare")
    assert GitTree.find(str(tmp_path)) is None
    assert GitTree.find(str(tmp_path / "bare")) is None
    assert find_common(str(tmp_path)) is None
    assert find_common(str(tmp_path / "bare")) == str(tmp_path / "bare")


def test_linked_trees_share_the_common_folder(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "main", {"x": b"1\n"})
    git(folder, "worktree", "add", "--quiet", "../linked")
    tree = tree_of(tmp_path / "linked")
    assert tree.git == f"{folder}/.git/worktrees/linked"
    assert tree.common == f"{folder}/.git"
    assert tree.read_state().branch == "linked"
    assert tree.ignored_among(["x"]) == frozenset()


def test_a_bare_repository_has_linked_trees(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "r", {"x": b"1\n"})
    git(tmp_path, "clone", "--quiet", "--bare", str(folder), "bare")
    git(tmp_path / "bare", "worktree", "add", "--quiet", "../tree", "main")
    tree = tree_of(tmp_path / "tree")
    assert (tree.common, tree.read_state().branch) == (str(tmp_path / "bare"), "main")
    write(tree_folder := tmp_path / "tree", "x", b"2\n")
    assert tree.list_changed() == ["x"]
    commit(tree_folder, {"x": FileState(b"2\n")})
    assert git(tree_folder, "status", "--porcelain") == ""


def test_a_state_that_files_do_not_tell_is_asked_of_git(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "r", {"x": b"1\n"})
    (folder / ".git/HEAD").unlink()
    (folder / ".git/HEAD").symlink_to("refs/heads/main")
    state = tree_of(folder).read_state()
    assert (state.head, state.branch, state.stash) == (git(folder, "rev-parse", "HEAD"), "main", "")


def test_an_id_is_kept_and_a_reused_name_gets_another(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "größe", {"x": b"1\n"})
    git(folder, "worktree", "add", "--quiet", "../linked")
    main, first = tree_of(folder).tree_id(), tree_of(tmp_path / "linked").tree_id()
    assert tree_of(folder).tree_id() == main
    assert main.startswith("gr")
    git(folder, "worktree", "remove", "--force", "../linked")
    git(folder, "worktree", "add", "--quiet", "../linked", "linked")
    assert len({main, first, tree_of(tmp_path / "linked").tree_id()}) == 3
    tree_of(folder).forget_id()
    assert not [each for each in os.listdir(folder / ".git") if each.startswith("watchroom")]


def test_the_state_follows_git(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "r", {"x": b"1\n"})
    tree = tree_of(folder)
    first = tree.read_state()
    assert (first.head, first.branch) == (git(folder, "rev-parse", "HEAD"), "main")
    assert (first.stash, first.operation, first.is_index_locked) == ("", "", False)
    git(folder, "pack-refs", "--all")
    assert tree.read_state().head == first.head
    git(folder, "checkout", "--quiet", "-b", "team/a")
    write(folder, "x", b"2\n")
    git(folder, "stash")
    state = tree.read_state()
    assert (state.branch, state.stash) == ("team/a", git(folder, "rev-parse", "refs/stash"))
    assert state.index_stamp != first.index_stamp
    git(folder, "checkout", "--quiet", "--detach")
    assert tree.read_state().branch == ""
    assert tree.read_state().head == first.head
    write(folder, ".git/index.lock", b"")
    assert tree.read_state().is_index_locked


def test_an_unborn_branch_has_no_head(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet", "--initial-branch=main")
    state = tree_of(tmp_path).read_state()
    assert (state.head, state.branch, state.index_stamp) == ("", "main", None)


def test_a_state_is_read_without_a_process(tmp_path: Path) -> None:
    tree = tree_of(make_repository(tmp_path / "r", {"x": b"1\n"}))
    # The faults of child processes that have ended.
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt
    tree.read_state()
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt == before


def test_an_unfinished_operation_is_named(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "r", {"x": b"1\n"})
    tree = tree_of(folder)
    git(folder, "checkout", "--quiet", "-b", "other")
    write(folder, "x", b"2\n")
    git(folder, "commit", "--quiet", "--all", "--message=2")
    git(folder, "checkout", "--quiet", "main")
    write(folder, "x", b"3\n")
    git(folder, "commit", "--quiet", "--all", "--message=3")
    for operation in ("merge", "rebase", "cherry-pick"):
        with pytest.raises(AssertionError):
            git(folder, operation, "other")
        assert tree.read_state().operation == operation
        assert tree.list_index()["x"].blob == ""
        assert tree.list_changed() == ["x"]
        git(folder, operation, "--abort")
    assert tree.read_state().operation == ""


def test_changed_files_are_listed_and_nested_repositories_are_not(tmp_path: Path) -> None:
    files = {"kept": b"1\n", "edited": b"1\n", "gone": b"1\n", "staged": b"1\n", ".gitignore": b"*.log\n"}
    folder = make_repository(tmp_path / "r", files)
    make_repository(folder / "nested", {"inner": b"1\n"})
    git(folder, "worktree", "add", "--quiet", "trees/one")
    write(folder, "edited", b"2\n")
    write(folder, "deep/new file", b"2\n")
    write(folder, "deep/x.log", b"2\n")
    write(folder, "staged", b"2\n")
    git(folder, "add", "staged")
    (folder / "gone").unlink()
    tree = tree_of(folder)
    assert tree.list_changed() == ["deep/new file", "edited", "gone"]
    assert tree.ignored_among(["deep/x.log", "edited", "y.log"]) == {"deep/x.log", "y.log"}


def test_the_index_tells_absent_files_and_submodules(tmp_path: Path) -> None:
    inner = make_repository(tmp_path / "inner", {"i": b"1\n"})
    folder = make_repository(tmp_path / "r", {"a/x": b"1\n", "b/y": b"1\n", "c": b"1\n"})
    git(folder, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner), "sub")
    git(folder, "commit", "--quiet", "--message=sub")
    git(folder, "sparse-checkout", "set", "a")
    tree = tree_of(folder)
    index = tree.list_index()
    assert {path for path, entry in index.items() if entry.is_absent} >= {"b/y"}
    assert not index["a/x"].is_absent
    assert index["sub"].is_submodule
    assert tree.list_changed() == []
    assert tree.read_blobs(["b/y", "sub", "nothing"]) == {"b/y": b"1\n", "sub": None, "nothing": None}


@pytest.mark.parametrize("autocrlf", ["false", "input", "true"])
def test_blobs_are_what_git_checks_out(tmp_path: Path, autocrlf: str) -> None:
    attributes = b"*.dos text eol=crlf\n*.bin binary\n*.id ident\n*.utf16 working-tree-encoding=UTF-16\n"
    files = {path: f"{path}\nb".encode() for path in ODD_PATHS} | {
        ".gitattributes": attributes,
        "x.dos": b"1\r\n2\r\n",
        "y.bin": b"\x00\r\n\n",
        "z.id": b"$Id$\n",
        "w.utf16": "ä\n".encode("utf-16"),
        "mixed": b"1\r\n2\n3",
        "empty": b"",
    }
    folder = make_repository(tmp_path / "r", files, autocrlf=autocrlf)
    os.symlink("x.dos", folder / "link")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message=link")
    for path in files:
        (folder / path).unlink()
    git(folder, "checkout", "--", ".")
    wanted = {path: (folder / path).read_bytes() for path in files} | {"link": b"x.dos"}
    tree = tree_of(folder)
    assert tree.read_blobs(wanted) == wanted
    assert tree.read_blobs(wanted, "HEAD:") == wanted
    assert tree.read_blobs(wanted, entries=tree.list_index()) == wanted
    assert tree.list_tree("HEAD") == tree.list_index()


def test_a_filter_that_fails_leaves_the_pointer(tmp_path: Path) -> None:
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'ab' * 32}\nsize 12\n".encode()
    files = {".gitattributes": b"*.psd filter=lfs\n*.up filter=up\n"} | {
        f"{n}.psd": pointer for n in range(5)
    }
    folder = make_repository(tmp_path / "r", files | {"a.up": b"up\n", "z": b"z\n", "5\n.psd": pointer})
    git(folder, "config", "filter.lfs.smudge", "no-such-program")
    git(folder, "config", "filter.lfs.required", "true")
    git(folder, "config", "filter.up.smudge", "tr a-z A-Z")
    found = tree_of(folder).read_blobs([*(f"{n}.psd" for n in range(5)), "5\n.psd", "a.up", "z"])
    assert {found[path] for path in found if path.endswith(".psd")} == {pointer}
    assert (found["a.up"], found["z"]) == (b"UP\n", b"z\n")
    blob = parse_lfs_pointer(pointer)
    assert blob is not None
    assert blob == ("ab" * 32, 12)
    assert parse_lfs_pointer(b"x" + pointer) is None


def test_large_files_are_left_out_and_many_are_read(tmp_path: Path) -> None:
    files = {f"d/{n}": b"%d\n" % n for n in range(300)}
    folder = make_repository(tmp_path / "r", files | {"large": bytes(10 * 1024 * 1024 + 1)})
    found = tree_of(folder).read_blobs([*files, "large"])
    assert found.pop("large") is None
    assert found == files
    assert tree_of(folder).read_blobs([*files], "HEAD:") == files


def test_no_program_of_the_repository_runs(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "r", {"x": b"1\n", ".gitattributes": b"* diff=evil merge=evil\n"})
    mark = tmp_path / "mark"
    program = f"touch {mark}"
    for name in ("core.fsmonitor", "diff.evil.textconv", "diff.external", "core.pager", "core.editor"):
        git(folder, "config", name, program)
    git(folder, "config", "gpg.program", program)
    git(folder, "config", "commit.gpgSign", "true")
    for hook in ("pre-commit", "reference-transaction", "post-index-change", "post-commit"):
        write(folder, f".git/hooks/{hook}", f"#!/bin/sh\n{program}\n".encode(), executable=True)
    mark.unlink(missing_ok=True)
    tree = tree_of(folder)
    tree.list_changed()
    tree.list_index()
    tree.read_blobs(["x"])
    head = tree.read_state().head
    tree.commit_files({"x": FileState(b"2\n")}, "m", "A <a@b>", branch=None, parent=head)
    assert not mark.exists()


def test_git_that_is_missing_or_fails_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make_repository(tmp_path / "r", {"x": b"1\n"})
    tree = tree_of(folder)
    write(folder, ".git/index", b"damaged")
    with pytest.raises(GitError):
        tree.list_index()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(GitError) as caught:
        tree.list_changed()
    assert caught.value.code == "git_missing"


# Commits


def commit(folder: Path, files: dict[str, FileState | None], branch: str | None = None) -> str:
    tree = tree_of(folder)
    head = tree.read_state().head
    return tree.commit_files(files, "subject\n\nbody", "alice <alice@watchroom>", branch=branch, parent=head)


def test_a_commit_here_has_only_its_files(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "r", {"a": b"1\n", "b": b"1\n", "c": b"1\n"})
    for path in ("a", "b", "d"):
        write(folder, path, b"2\n")
    git(folder, "add", "b")
    made = commit(folder, {"a": FileState(b"2\n"), "d": FileState(b"2\n", executable=True), "c": None})
    assert git(folder, "log", "-1", "--format=%H %an %ae %cn %B").split("\n") == [
        f"{made} alice alice@watchroom Pat subject",
        "",
        "body",
    ]
    assert git(folder, "diff", "--name-status", "HEAD~", "HEAD").split("\n") == ["M\ta", "D\tc", "A\td"]
    assert git(folder, "ls-tree", "HEAD", "d").startswith("100755")
    assert git(folder, "diff", "--cached", "--name-only") == "b"
    assert git(folder, "status", "--porcelain").split("\n") == ["M  b", " M d", "?? c"]
    git(folder, "fsck", "--strict")
    assert not [each for each in os.listdir(folder / ".git") if "lock" in each or "watchroom" in each]


def test_a_commit_onto_a_branch_leaves_the_tree_alone(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "r", {"a": b"1\n"})
    write(folder, "a", b"2\n")
    before = (git(folder, "rev-parse", "HEAD"), (folder / ".git/index").read_bytes())
    made = commit(folder, {"a": FileState(b"2\n")}, branch="agents/alice")
    assert git(folder, "rev-parse", "agents/alice") == made
    assert git(folder, "rev-parse", "agents/alice~") == before[0]
    assert (git(folder, "rev-parse", "HEAD"), (folder / ".git/index").read_bytes()) == before
    for name, rule in (("agents/alice", "branch_taken"), ("agents", "branch_taken"), ("-x", "branch_name")):
        with pytest.raises(GitError) as caught:
            commit(folder, {"a": FileState(b"3\n")}, branch=name)
        if isinstance(caught.value, InvalidBranch) and name != "agents":
            assert caught.value.values["rule"] == rule


def test_staged_lines_of_others_stay_staged(tmp_path: Path) -> None:
    lines = [b"%d\n" % n for n in range(9)]
    folder = make_repository(tmp_path / "r", {"a": b"".join(lines), "b": b"1\n"})
    staged = b"".join([b"bob\n", *lines[1:]])
    write(folder, "a", staged)
    write(folder, "b", b"half\n")
    git(folder, "add", "--all")
    write(folder, "a", b"".join([b"bob\n", *lines[1:8], b"alice\n"]))
    write(folder, "b", b"whole\n")
    alice = b"".join([*lines[:8], b"alice\n"])
    commit(folder, {"a": FileState(alice), "b": FileState(b"whole\n")})
    assert git_bytes(folder, "show", "HEAD:a") == alice
    assert git_bytes(folder, "show", ":a") == b"".join([b"bob\n", *lines[1:8], b"alice\n"])
    assert git(folder, "diff", "--cached", "--name-only") == "a"
    assert git(folder, "diff", "--name-only") == ""


@pytest.mark.parametrize("autocrlf", ["false", "input", "true"])
def test_a_commit_of_all_files_is_what_git_adds(tmp_path: Path, autocrlf: str) -> None:
    files = {"lf": b"1\n2\n", "crlf": b"1\r\n2\r\n", "mixed": b"1\r\n2\n", "u": b"x\n"}
    folder = make_repository(tmp_path / "r", files, autocrlf="false")
    git(folder, "config", "core.autocrlf", autocrlf)
    now = {path: data + b"new\r\nand\n" for path, data in files.items()} | dict.fromkeys(ODD_PATHS, b"o\r\n")
    now |= {".gitattributes": b"lf text eol=crlf\n", "last": b"no\r\nend"}
    for path, data in now.items():
        write(folder, path, data)
    made = commit(folder, {path: FileState(data) for path, data in now.items()})
    git(folder, "read-tree", "HEAD~")
    git(folder, "add", "--all")
    assert git(folder, "write-tree") == git(folder, "rev-parse", f"{made}^{{tree}}")


def test_links_and_folders_in_the_place_of_files_are_committed(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "r", {"a": b"1\n", "d/x": b"1\n"})
    commit(folder, {"a": None, "a/b": FileState(b"2\n"), "d/x": None, "d": FileState(b"a", is_link=True)})
    assert git(folder, "ls-tree", "-r", "--format=%(objectmode) %(path)", "HEAD").split("\n") == [
        "100644 a/b",
        "120000 d",
    ]


def test_a_tree_that_keeps_no_modes_is_committed(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "r", {"a": b"1\n"}, fileMode="false")
    write(folder, "a", b"2\n", executable=True)
    commit(folder, {"a": FileState(b"2\n", executable=True)})
    assert git(folder, "ls-tree", "HEAD", "a").startswith("100644")
    assert not tree_of(folder).keeps_modes()


def test_nothing_to_commit_makes_no_commit(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "r", {"a": b"1\n"})
    assert commit(folder, {"a": FileState(b"1\n"), "b": None}) == git(folder, "rev-parse", "HEAD")


def test_the_first_commit_has_no_parent(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet", "--initial-branch=main")
    write(tmp_path, "a", b"1\n")
    made = commit(tmp_path, {"a": FileState(b"1\n")})
    assert git(tmp_path, "rev-list", "main") == made
    assert git(tmp_path, "status", "--porcelain") == ""


def test_no_commit_while_git_is_busy(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "r", {"a": b"1\n"})
    tree, head = tree_of(folder), git(folder, "rev-parse", "HEAD")
    for name, rule in (("index.lock", "git_locked"), ("MERGE_HEAD", "git_operation")):
        write(folder, f".git/{name}", head.encode() + b"\n")
        with pytest.raises(GitBusy) as caught:
            commit(folder, {"a": FileState(b"2\n")})
        assert caught.value.values["rule"] == rule
        (folder / ".git" / name).unlink()
    git(folder, "commit", "--quiet", "--allow-empty", "--message=other")
    with pytest.raises(GitBusy):
        tree.commit_files({"a": FileState(b"2\n")}, "m", "a <b>", branch=None, parent=head)
    assert git(folder, "rev-list", "--count", "HEAD") == "2"


def test_a_commit_in_a_sparse_tree_keeps_the_files_outside(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "r", {"a/x": b"1\n", "b/y": b"1\n"})
    git(folder, "sparse-checkout", "set", "--sparse-index", "a")
    write(folder, "a/x", b"2\n")
    commit(folder, {"a/x": FileState(b"2\n")})
    assert git(folder, "diff", "--name-only", "HEAD~", "HEAD") == "a/x"
    assert git(folder, "status", "--porcelain") == ""
    assert not (folder / "b").exists()


KILLED = """
import os, sys
from watchroom.features.trees.git import FileState, GitTree
from watchroom.features.trees.git_writes import GitWriter

folder, moment = sys.argv[1:]
move, update = GitWriter._move, GitWriter._update_index

def dying_move(*arguments):
    if moment == "before":
        os._exit(9)
    move(*arguments)
    os._exit(9)

def dying_update(*arguments):
    os._exit(9)

GitWriter._move = dying_move
if moment == "locked":
    GitWriter._update_index = dying_update
tree = GitTree.find(folder)
state = tree.read_state()
tree.commit_files({"a": FileState(b"2\\n")}, "m", "a <b>", branch=None, parent=state.head)
"""


@pytest.mark.parametrize(("moment", "commits"), [("locked", "1"), ("before", "1"), ("after", "2")])
def test_a_commit_whose_process_is_killed_is_made_or_not(tmp_path: Path, moment: str, commits: str) -> None:
    folder = make_repository(tmp_path / "r", {"a": b"1\n", "b": b"1\n"})
    write(folder, "a", b"2\n")
    done = subprocess.run([sys.executable, "-c", KILLED, str(folder), moment], check=False)
    assert done.returncode == 9
    assert (folder / ".git/index.lock").exists()
    tree = tree_of(folder)
    tree.recover()
    assert not [each for each in os.listdir(folder / ".git") if "lock" in each or "watchroom" in each]
    assert git(folder, "rev-list", "--count", "HEAD") == commits
    assert git(folder, "status", "--porcelain") == ("" if moment == "after" else " M a")


def test_the_lock_of_a_running_git_stays(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "r", {"a": b"1\n"})
    write(folder, ".git/index.lock", b"")
    tree_of(folder).recover()
    assert (folder / ".git/index.lock").exists()
