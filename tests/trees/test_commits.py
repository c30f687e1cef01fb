"""Commits of the work of some agents, from what the journal has."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from effort import seeds
from timeouts import run_until_begun
from trees.git_repo import git, git_bytes, make_repository, write
from trees.recorded_tree import PERSON, RecordedTree
from watchroom import Workspace
from watchroom.errors import GitBusy, NothingToCommit
from watchroom.features.trees.commits import BlockedFile
from watchroom.features.trees.git import GitTree
from watchroom.features.trees.rows import COMMIT_AGENT, REPO, read_commit, repo_path
from watchroom.features.trees.trials import is_trial, remove_trials

Start = Callable[..., RecordedTree]
TEN = b"".join(b"%d\n" % n for n in range(10))


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Makes a repository with a journal. Arguments as `make_repository`."""
    with Workspace.open(tmp_path / "team") as workspace:
        yield lambda files, **settings: RecordedTree(
            workspace, make_repository(tmp_path / "r", files, **settings)
        )


def test_each_agent_is_committed_alone(start: Start) -> None:
    tree = start({"a": TEN, "b": b"1\n"})
    tree.write("alice", "a", b"alice\n" + TEN)
    tree.write("bob", "a", b"alice\n" + TEN + b"bob\n")
    tree.write("bob", "b", b"2\n")
    tree.write("alice", "c", b"new\n", executable=True)
    before = git(tree.folder, "rev-parse", "HEAD")
    row = tree.commit("alice")
    record = read_commit(row)
    assert (row.tool, row.actor, row.path, row.message) == (COMMIT_AGENT, PERSON, tree.id, "work")
    assert (record.tree, record.branch, record.parent) == (tree.id, "main", before)
    assert record.commit == git(tree.folder, "rev-parse", "HEAD")
    assert record.took == {"a": (2,), "c": (1,)}
    assert git_bytes(tree.folder, "show", "HEAD:a") == b"alice\n" + TEN
    assert git(tree.folder, "log", "-1", "--format=%an, %cn") == "alice, Pat"
    assert git(tree.folder, "status", "--porcelain").split("\n") == [" M a", " M b"]
    tree.commit("bob")
    assert git(tree.folder, "status", "--porcelain") == ""
    assert git(tree.folder, "log", "--format=%an") == "bob\nalice\nPat"


def test_a_commit_of_several_agents_names_them(start: Start) -> None:
    tree = start({"a": TEN})
    tree.write("alice", "a", b"alice\n" + TEN)
    tree.write("bob", "b", b"bob\n")
    tree.write(PERSON, "c", b"ann\n")
    tree.commit()
    assert git(tree.folder, "log", "-1", "--format=%an%n%(trailers)").strip().split("\n") == [
        "Pat",
        "Co-authored-by: alice <alice@watchroom.invalid>",
        "Co-authored-by: bob <bob@watchroom.invalid>",
    ]


def test_a_branch_leaves_everything_where_it_is(start: Start) -> None:
    tree = start({"a": TEN})
    tree.write("alice", "a", b"alice\n" + TEN)
    tree.write("bob", "a", b"alice\n" + TEN + b"bob\n")
    head = git(tree.folder, "rev-parse", "HEAD")
    assert read_commit(tree.commit("alice", branch="alice/1")).branch == "alice/1"
    assert git(tree.folder, "rev-parse", "HEAD", "alice/1~").split() == [head, head]
    assert git_bytes(tree.folder, "show", "alice/1:a") == b"alice\n" + TEN
    assert tree.commits.list_changes(tree.tree)["a"].authors == ("alice", "bob")
    # A merge of the branch brings the work to HEAD.
    tree.write("bob", "a", b"alice\n" + TEN)
    git(tree.folder, "stash")
    git(tree.folder, "merge", "--quiet", "alice/1")
    assert tree.commits.list_changes(tree.tree) == {}


def test_work_that_builds_on_others_is_left_out(start: Start) -> None:
    tree = start({"a": TEN})
    tree.write("alice", "a", TEN + b"alice\n")
    tree.write("bob", "a", TEN + b"alice and bob\n")
    with pytest.raises(NothingToCommit) as caught:
        tree.commit("bob")
    assert caught.value.values["blocked"] == "a"
    assert tree.commits.plan(tree.tree, {"bob"}).blocked == (BlockedFile("a", "mixed", ("alice",)),)
    tree.commit("alice", "bob")
    assert git(tree.folder, "status", "--porcelain") == ""


def test_binary_files_are_of_their_last_author(start: Start) -> None:
    tree = start({"a": b"\0\1", "b": b"1\n"})
    tree.write("alice", "a", b"\0\2")
    tree.write("bob", "a", b"\0\3")
    tree.write("bob", "b", b"\xff\xfe")
    with pytest.raises(NothingToCommit):
        tree.commit("alice")
    tree.commit("bob")
    assert git_bytes(tree.folder, "show", "HEAD:a") == b"\0\3"
    assert git(tree.folder, "status", "--porcelain") == ""


def test_a_text_that_was_binary_needs_all_its_authors(start: Start) -> None:
    tree = start({"a": b"1\n"})
    tree.write("carl", "a", b"\0")
    tree.write("alice", "a", b"alice\n")
    tree.write("bob", "a", b"alice\nbob\n")
    assert tree.commits.plan(tree.tree, {"bob"}).blocked == (BlockedFile("a", "mixed", ("alice",)),)
    tree.commit("alice", "bob")
    assert git(tree.folder, "status", "--porcelain") == ""


def test_a_persons_own_commit_is_seen(start: Start) -> None:
    tree = start({"a": TEN})
    tree.write("alice", "a", b"alice\n" + TEN)
    git(tree.folder, "commit", "--quiet", "--all", "--message=all")
    assert tree.commits.list_changes(tree.tree) == {}
    tree.write("bob", "a", b"alice\n" + TEN + b"bob\n")
    assert tree.commits.list_changes(tree.tree)["a"].authors == ("bob",)
    # The next commit has other lines than any version.
    git(tree.folder, "reset", "--quiet", "--soft", "HEAD~")
    assert tree.commits.list_changes(tree.tree)["a"].authors == ("alice", "bob")


def test_commits_that_were_rewritten_are_still_known(start: Start) -> None:
    tree = start({"a": TEN})
    tree.write("bob", "a", b"bob\n" + TEN)
    tree.write("alice", "a", b"alice\nbob\n" + TEN)
    tree.commit("alice")
    git(tree.folder, "commit", "--quiet", "--amend", "--message=other", "--only")
    git(tree.folder, "reflog", "expire", "--expire=now", "--all")
    git(tree.folder, "gc", "--quiet", "--prune=now")
    assert tree.commits.list_changes(tree.tree)["a"].kind == "commit"
    assert tree.commits.list_changes(tree.tree)["a"].authors == ("bob",)


def test_odd_paths_and_links_are_committed(start: Start) -> None:
    tree = start({"a": b"1\n"})
    for path in ("new\nline", " leading", os.fsdecode(b"not utf-8 \xff"), "ä ö"):
        tree.write("alice", path, b"1\n")
    tree.write("alice", "link", b"a")
    (tree.folder / "link").unlink()
    (tree.folder / "link").symlink_to("a")
    tree.commit("alice")
    assert git(tree.folder, "status", "--porcelain") == ""


def test_nothing_is_committed_during_a_merge(start: Start) -> None:
    tree = start({"a": b"1\n"})
    tree.write("alice", "a", b"2\n")
    write(tree.folder, ".git/MERGE_HEAD", git(tree.folder, "rev-parse", "HEAD").encode())
    with pytest.raises(GitBusy):
        tree.commit("alice")
    assert git(tree.folder, "rev-list", "--count", "HEAD") == "1"


# Tries


def test_a_try_has_only_the_work_of_its_agents(start: Start, tmp_path: Path) -> None:
    tree = start({"a": TEN, ".gitignore": b"modules/\nout\n", "d/x": b"1\n"})
    write(tree.folder, "modules/m", b"module\n")
    tree.write("alice", "a", b"alice\n" + TEN)
    tree.write("bob", "a", b"alice\n" + TEN + b"bob\n")
    tree.write("bob", "c", b"bob\n")
    cache = str(tmp_path / "cache")
    index = (tree.folder / ".git/index").read_bytes()
    program = "cat modules/m; head -n 1 a; tail -n 1 a; ls; cat out; echo kept > out; echo x > left; exit 3"
    command = ["sh", "-c", program]
    first = tree.commits.try_agent(tree.tree, {"alice"}, command, linked=["modules", "d"], cache=cache)
    assert first.status == 3
    assert first.output.startswith("module\nalice\n9\na\nd\nmodules\ncat: out")
    tree.write("alice", "a", b"alice again\n" + TEN + b"bob\n")
    second = tree.commits.try_agent(tree.tree, {"alice"}, command, linked=["modules"], cache=cache)
    assert second.folder == first.folder
    assert second.output == "module\nalice again\n9\na\nd\nmodules\nout\nkept\n"
    assert (tree.folder / ".git/index").read_bytes() == index
    copy = GitTree.find(second.folder)
    assert copy is not None
    assert is_trial(copy)
    assert not is_trial(tree.tree)
    remove_trials(tree.tree, cache)
    assert not os.path.exists(second.folder)
    assert len(git(tree.folder, "worktree", "list").split("\n")) == 1
    assert (tree.folder / "modules/m").exists()


def test_a_try_that_takes_too_long_is_ended(start: Start, tmp_path: Path) -> None:
    tree = start({"a": b"1\n"})
    command, cache = ["sh", "-c", "echo began; sleep 60"], str(tmp_path / "cache")
    outcome = run_until_begun(
        lambda seconds: tree.commits.try_agent(tree.tree, None, command, timeout=seconds, cache=cache),
        lambda outcome: outcome.output,
    )
    assert outcome[:2] == (None, "began\n")


# The law

AGENTS = ("alice", "bob", "carl")
FILES = ("one", "two.txt", "dir/three", "dir/crlf", "five")


def random_change(random: Random, data: bytes | None, mark: str) -> bytes | None:
    """Change some lines; each new line has ``mark``."""
    if data is None or random.random() < 0.05:
        return None if data is not None else f"{mark} new\n".encode()
    if random.random() < 0.03:
        return b"\0" + mark.encode()
    text = data.decode("latin-1")
    end = "\r\n" if "\r\n" in text else "\n"
    if random.random() < 0.05:
        end = "\n" if end == "\r\n" else "\r\n"
    lines = text.splitlines(keepends=True)
    at = random.randint(0, len(lines))
    lines[at : at + random.choice((0, 0, 0, 1, 2))] = [
        f"{mark} {n}{end}" for n in range(random.randint(0, 2))
    ]
    made = "".join(each if each.endswith("\n") else each + end for each in lines[:-1]) + "".join(lines[-1:])
    return (made.removesuffix("\n") if random.random() < 0.05 else made).encode("latin-1")


def play(random: Random, tree: RecordedTree) -> None:
    """Let all authors change files in a random order."""
    for number in range(random.randint(3, 20)):
        author = random.choice((*AGENTS, PERSON))
        path = random.choice(FILES)
        target = tree.folder / path
        is_there = target.exists()
        data = random_change(random, target.read_bytes() if is_there else None, f"{author} {number}")
        executable = is_there and os.access(target, os.X_OK) != (random.random() < 0.1)
        if data is not None or is_there:
            tree.write(author, path, data, executable=executable)


def foreign_lines(tree: RecordedTree, path: str, commit: str, agent: str) -> set[bytes]:
    """Return the lines of others that ``commit`` has and HEAD has not."""
    if any("sha256" in row.detail for row in tree.store.journal.history(REPO, repo_path(tree.id, path))):
        # A file that was binary is committed whole.
        return set()
    before, after = (
        {line.strip() for line in show(tree.folder, each, path).split(b"\n")} for each in ("HEAD", commit)
    )
    return {each for each in after - before if b" " in each and not each.startswith(agent.encode())}


def show(folder: Path, commit: str, path: str) -> bytes:
    """Return the content of ``path`` in ``commit``, empty if it is not there."""
    is_there = git(folder, "ls-tree", "--name-only", commit, path)
    return git_bytes(folder, "show", f"{commit}:{path}") if is_there else b""


@pytest.mark.parametrize("seed", seeds(12, 2000))
def test_commits_of_all_and_of_one_after_another_give_the_tree_that_git_adds(seed: int) -> None:
    random = Random(seed)
    with TemporaryDirectory() as place, Workspace.open(Path(place) / "team") as workspace:
        files = {
            "one": TEN,
            "two.txt": b"1\n2\n3",
            "dir/crlf": TEN.replace(b"\n", b"\r\n"),
            "five": b"1\r\n2\n",
        }
        folder = make_repository(Path(place) / "r", files, autocrlf="false")
        git(folder, "config", "core.autocrlf", random.choice(("false", "input", "true")))
        tree = RecordedTree(workspace, folder)
        play(random, tree)
        if random.random() < 0.3:
            git(folder, "add", random.choice(("--all", ".")))
        wanted = tree.full_tree()
        disk = {
            path: path.read_bytes()
            for path in folder.rglob("*")
            if path.is_file() and ".git" not in path.parts
        }
        if wanted != git(folder, "rev-parse", "HEAD^{tree}"):
            made = read_commit(tree.commit(branch="all")).commit
            assert git(folder, "rev-parse", f"{made}^{{tree}}") == wanted
        for agent in random.sample(AGENTS, 3):
            plan = tree.commits.plan(tree.tree, {agent})
            if not plan.files:
                continue
            try:
                branch = f"{agent}/try"
                made = read_commit(tree.commit(agent, branch=branch)).commit
            except NothingToCommit:
                continue
            patch = git_bytes(folder, "diff", "--binary", "--full-index", "HEAD", made)
            index = str(folder / ".git" / "applied")
            git(folder, "read-tree", "HEAD", GIT_INDEX_FILE=index)
            git(folder, "apply", "--cached", "--binary", "-", given=patch, GIT_INDEX_FILE=index)
            tree_of_patch = git(folder, "write-tree", GIT_INDEX_FILE=index)
            os.unlink(index)
            assert tree_of_patch == git(folder, "rev-parse", f"{made}^{{tree}}")
            for path in git(folder, "diff", "--name-only", "HEAD", made).split("\n"):
                assert foreign_lines(tree, path, made, agent) == set()
            tree.commit(agent)
            assert git(folder, "rev-parse", "HEAD^{tree}") == tree_of_patch
        if tree.commits.plan(tree.tree).files:
            tree.commit()
        assert git(folder, "rev-parse", "HEAD^{tree}") == tree.full_tree()
        # Git keeps CRLF in a file that it has with CRLF, and converts it once it has the file without.
        git(folder, "diff", "--quiet", "--ignore-cr-at-eol", wanted, "HEAD")
        assert git(folder, "status", "--porcelain") == ""
        assert tree.commits.plan(tree.tree).files == ()
        assert disk == {path: path.read_bytes() for path in disk}
        git(folder, "fsck", "--strict")
