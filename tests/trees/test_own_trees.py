"""Working trees that people add for agents: made, listed, and removed without a loss."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from random import Random
from threading import Event, Thread
from typing import Final, NoReturn

import pytest
from effort import seeds
from trees.git_repository import Repository
from trees.tree_client import ScriptedClient
from watchroom import Workspace
from watchroom.errors import InvalidRepository, InvalidTree, NoFreePorts, TreeKept, UnknownTree
from watchroom.features.trees.git import GitTree
from watchroom.features.trees.own_trees import AddedTree, Listeners, OwnTrees
from watchroom.features.trees.recorder import TreeRecorder, Window
from watchroom.features.trees.rows import ADD_TREE, REMOVE_TREE, SETUP_TREE
from watchroom.features.trees.tree_files import intersect_names
from watchroom.kernel.call_context import CallContext
from watchroom.model import Row
from watchroom.platform.linux import LinuxPlatform

LARGE: Final = "line of a large file\n" * 20_000
DANA: Final = CallContext("human:dana")


class CopyingPlatform(LinuxPlatform):
    """A platform whose file system clones files. This machine's may have no clones, so it copies them."""

    def clone_file(self, source: int, target: int) -> bool:
        return os.sendfile(target, source, 0, os.fstat(source).st_size) >= 0


class PlainPlatform(LinuxPlatform):
    """A platform whose file system has no clones."""

    def clone_file(self, source: int, target: int) -> bool:
        return False


class UnwatchedPlatform(LinuxPlatform):
    """A platform whose kernel has no watches left."""

    def watch_tree(self, *args: object, **kwargs: object) -> NoReturn:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class World:
    """The repository with its workspace, and trees that dana adds."""

    def __init__(self, workspace: Workspace, repository: Repository) -> None:
        self.workspace = workspace
        self.repository = repository

    @property
    def trees(self) -> OwnTrees:
        return self.workspace.own_trees

    def set(self, settings: str) -> None:
        """Write the table ``trees`` of the config."""
        path = self.repository.root / ".watchroom" / "config.toml"
        text = path.read_text().partition("[trees]")[0]
        path.write_text(f"{text}\n[trees]\n{settings}\n")
        self.workspace.scan()

    def add(self, name: str, start: str = "", *, restore: bool = False) -> AddedTree:
        return self.trees.add(DANA, name, str(self.repository.folder), start, restore=restore)

    def remove(self, name: str, *, force: bool = False) -> None:
        self.trees.remove(DANA, self.trees.plan_removal(name), force=force)

    def obstacles(self, name: str) -> dict[str, tuple[str, ...]]:
        return {each.kind: each.names for each in self.trees.plan_removal(name).obstacles}

    def words(self, name: str) -> tuple[str, ...]:
        return next(each.words for each in self.trees.list_trees() if each.name == name)

    def rows(self, tool: str) -> list[Row]:
        return [row for row in self.workspace.journal.rows(0) if row.tool == tool]

    def git(self, added: AddedTree, *arguments: str) -> str:
        return self.repository.git("-C", added.tree.folder, *arguments)

    def branch(self, name: str) -> str:
        return self.repository.git("rev-parse", f"refs/heads/{name}")


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def world(kept: Workspace, repository: Repository) -> World:
    return World(kept, repository)


@pytest.fixture
def cloning(repository: Repository) -> Iterator[World]:
    """The same on a file system that clones files."""
    with Workspace.open(repository.root, platform=CopyingPlatform()) as workspace:
        assert workspace.keep()
        yield World(workspace, repository)


@pytest.fixture
def plain(repository: Repository) -> Iterator[World]:
    """The same on a file system without clones."""
    with Workspace.open(repository.root, platform=PlainPlatform()) as workspace:
        assert workspace.keep()
        yield World(workspace, repository)


def write(added: AddedTree, name: str, text: str) -> Path:
    path = Path(added.tree.folder, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


# Adding


def test_a_tree_is_on_its_own_branch_beside_the_main_tree(world: World) -> None:
    head = world.branch("main")
    added = world.add("login")
    folder = world.repository.folder.with_name("project.trees") / "login"
    assert Path(added.tree.folder) == folder
    assert (folder / "a.txt").read_text() == world.repository.read("a.txt")
    assert world.git(added, "symbolic-ref", "--short", "HEAD") == "login"
    assert (world.branch("login"), world.git(added, "status", "--porcelain")) == (head, "")
    assert world.repository.git("status", "--porcelain", "--ignored") == ""
    (row,) = world.rows(ADD_TREE)
    assert (row.actor, row.path, row.detail["name"]) == ("human:dana", added.tree.id, "login")
    assert [each.name for each in world.trees.list_trees()] == ["project", "login"]


def test_what_changes_in_a_new_tree_is_recorded_at_once(world: World) -> None:
    added = world.add("login")
    alice = ScriptedClient(world.workspace, "alice", Path(added.tree.folder))
    alice.read("a.txt")
    alice.edit("a.txt", "one\n", "ONE\n")
    row = world.workspace.journal.head("repo", f"{added.tree.id}/a.txt")
    assert row is not None
    assert row.actor == "alice"
    assert [each.changed for each in world.trees.list_trees()] == [0, 1]


def test_a_branch_begins_where_it_is_told_and_an_old_one_is_continued(world: World) -> None:
    first = world.branch("main")
    world.repository.commit(a__txt="two\n")
    added = world.add("old", first)
    assert world.branch("old") == first
    assert Path(added.tree.folder, "a.txt").read_text().startswith("one")
    world.repository.git("branch", "known", first)
    assert world.git(world.add("known"), "rev-parse", "HEAD") == first
    world.repository.git("branch", "other", first)
    with pytest.raises(InvalidTree, match="cannot start at another commit"):
        world.add("other", "main")


@pytest.mark.parametrize(
    ("name", "start", "reason"),
    [
        ("main", "", "another working tree"),
        ("-x", "", "cannot have this name"),
        ("a..b", "", "cannot have this name"),
        ("", "", "cannot have this name"),
        ("new", "nowhere", "does not exist"),
        ("new", "--force", "does not exist"),
    ],
)
def test_a_tree_that_cannot_be_added_leaves_nothing(world: World, name: str, start: str, reason: str) -> None:
    refs = world.repository.git("for-each-ref")
    with pytest.raises(InvalidTree, match=reason):
        world.add(name, start)
    assert world.repository.git("for-each-ref") == refs
    assert not world.repository.folder.with_name("project.trees").exists()


def test_a_tree_or_a_folder_of_the_name_is_in_the_way(world: World) -> None:
    world.add("feature/x")
    assert world.repository.folder.with_name("project.trees").joinpath("feature-x").is_dir()
    with pytest.raises(InvalidTree, match="of this name already"):
        world.add("feature/x")
    world.repository.folder.with_name("project.trees").joinpath("full").mkdir()
    with pytest.raises(InvalidTree, match="its folder exists"):
        world.add("full")


def test_a_tree_that_fails_half_way_is_taken_back(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    refs, trees = world.repository.git("for-each-ref"), world.repository.git("worktree", "list")
    world.set("first_port = 65530\nports = 6")
    world.add("one")
    with pytest.raises(NoFreePorts):
        world.add("two")
    world.remove("one")
    world.repository.git("branch", "-D", "one")
    assert world.repository.git("for-each-ref") == refs
    assert world.repository.git("worktree", "list") == trees


def test_a_setting_puts_trees_elsewhere(world: World) -> None:
    world.set('folder = "../else where"')
    assert Path(world.add("x").tree.folder) == world.repository.folder.with_name("else where") / "x"


def test_a_bare_repository_gets_trees_too(repository: Repository, tmp_path: Path) -> None:
    bare = tmp_path / "bare.git"
    repository.git("clone", "--quiet", "--bare", str(repository.folder), str(bare))
    with Workspace.open(bare / "watchroom") as workspace:
        added = workspace.own_trees.add(DANA, "x", str(bare))
        assert added.tree.folder == str(tmp_path / "bare.trees" / "x")
        assert Path(added.tree.folder, "b.txt").read_text() == "b\n"


def test_a_tree_is_entered_or_added(world: World) -> None:
    here = str(world.repository.folder)
    first = world.trees.enter(DANA, "x", here)
    again = world.trees.enter(DANA, "x", here)
    assert (first.is_new, again.is_new, first.tree) == (True, False, again.tree)
    world.repository.git("worktree", "add", "--quiet", ".claude/worktrees/quick", "-b", "worktree-quick")
    found = world.trees.enter(DANA, "quick", here)
    assert (found.is_new, found.tree.branch) == (False, "worktree-quick")
    assert found.tree.ports is not None
    assert "quick" in [each.name for each in world.trees.list_trees()]


def test_trees_that_are_added_at_once_have_their_own_ports(world: World) -> None:
    here = str(world.repository.folder)
    names = ["a", "b", "c", "a", "b", "c"]
    with ThreadPoolExecutor(len(names)) as pool:
        added = [*pool.map(lambda name: world.trees.enter(DANA, name, here), names)]
    assert sum(each.is_new for each in added) == 3
    found = {(each.tree.name, each.tree.folder, each.tree.ports) for each in added}
    assert len(found) == 3
    assert {each.tree.ports.first for each in added if each.tree.ports} == {20000, 20010, 20020}
    assert len(world.rows(ADD_TREE)) == 3


def test_a_tree_that_was_added_in_part_is_not_entered(world: World) -> None:
    program = KILLED.format(root=str(world.repository.root), here=str(world.repository.folder))
    done = subprocess.run([sys.executable, "-c", program], check=False)
    assert done.returncode == -signal.SIGKILL
    assert "incomplete" in world.words("x")
    for enter in (world.add, lambda name: world.trees.enter(DANA, name, str(world.repository.folder))):
        with pytest.raises(InvalidTree, match="was killed"):
            enter("x")
    world.remove("x")
    assert Path(world.add("x").tree.folder, "a.txt").exists()


KILLED: Final = """
import os, signal
from watchroom import Workspace
from watchroom.features.trees.own_trees import Listeners
from watchroom.kernel.call_context import CallContext
with Workspace.open({root!r}, scan=False) as workspace:
    kill = Listeners(lambda step, done, of: os.kill(os.getpid(), signal.SIGKILL))
    workspace.own_trees.add(CallContext("human:dana"), "x", {here!r}, listeners=kill)
"""


def test_a_workspace_without_a_repository_has_no_trees(tmp_path: Path) -> None:
    with Workspace.open(tmp_path / "team") as workspace:
        with pytest.raises(InvalidRepository):
            workspace.own_trees.list_trees()
        with pytest.raises(InvalidRepository):
            workspace.own_trees.add(DANA, "x", str(tmp_path))


# Files


@pytest.fixture
def ignoring(repository: Repository) -> Callable[[World], None]:
    """Files that git ignores, and the names of those that new trees get."""

    def prepare(world: World) -> None:
        repository.commit(
            __gitignore=".env*\nnode_modules/\nlogs/\nlocal/\n",
            __worktreeinclude=".env\nnode_modules\nlocal/x\n",
        )
        repository.write(".env", "KEY=1\n")
        repository.write(".env.other", "KEY=2\n")
        repository.write("sub/.env", "KEY=3\n")
        repository.write("node_modules/lib/index.js", "lib\n")
        repository.write("local/x", "x\n")
        repository.write("local/y", "y\n")
        (repository.folder / "node_modules" / "bin").symlink_to("lib/index.js")

    return prepare


def test_ignored_files_are_copied_as_the_include_file_says(
    world: World, ignoring: Callable[[World], None]
) -> None:
    ignoring(world)
    added = world.add("x")
    assert added.included.copied == (".env", "local/x", "node_modules/", "sub/")
    folder = Path(added.tree.folder)
    assert (folder / "sub/.env").read_text() == "KEY=3\n"
    assert os.readlink(folder / "node_modules/bin") == "lib/index.js"
    assert not (folder / ".env.other").exists()
    assert not (folder / "local/y").exists()
    (folder / "node_modules/lib/index.js").write_text("changed")
    assert world.repository.read("node_modules/lib/index.js") == "lib\n", "it is a copy"
    assert world.git(added, "status", "--porcelain") == ""


def test_folders_are_linked_as_a_setting_says_and_large_ones_left_out(
    plain: World, ignoring: Callable[[World], None]
) -> None:
    ignoring(plain)
    plain.set('linked = ["node_modules"]')
    added = plain.add("x")
    assert added.included.linked == ("node_modules/",)
    assert Path(added.tree.folder, "node_modules/lib").is_symlink()
    assert plain.git(added, "status", "--porcelain") == "", "git ignores the links"
    plain.remove("x")
    assert plain.repository.read("node_modules/lib/index.js") == "lib\n"
    plain.set("max_copied_bytes = 15")
    assert plain.add("y").included.left_out == ("node_modules/",)


def test_files_are_cloned_where_the_file_system_can(
    cloning: World, ignoring: Callable[[World], None]
) -> None:
    ignoring(cloning)
    cloning.repository.commit(large__txt=LARGE, other__txt=LARGE)
    cloning.repository.write("other.txt", f"{LARGE}dirty\n")
    cloning.set('linked = ["node_modules"]\nmax_copied_bytes = 0')
    added = cloning.add("x")
    assert added.cloned == 1, "other.txt is not as it was committed, and git writes small files"
    assert Path(added.tree.folder, "large.txt").read_text() == LARGE
    assert Path(added.tree.folder, "other.txt").read_text() == LARGE
    assert not Path(added.tree.folder, "node_modules/lib").is_symlink()
    assert added.included.left_out == ()
    assert cloning.git(added, "status", "--porcelain") == ""
    assert cloning.git(added, "diff-files", "--name-only") == "", "the index knows the clones"


def test_clones_are_as_git_would_write_the_files(cloning: World) -> None:
    repository = cloning.repository
    repository.commit(__gitattributes="*.txt text eol=crlf\n", run__sh=f"#!/bin/sh\n{LARGE}", a__txt=LARGE)
    (repository.folder / "run.sh").chmod(0o755)
    (repository.folder / "link").symlink_to("a.txt")
    repository.commit(a__txt=f"one\n{LARGE}")
    repository.git("rm", "--cached", "-rq", ".")
    repository.git("reset", "--hard", "--quiet")
    first = cloning.branch("main")
    added = cloning.add("x")
    assert added.cloned == 2
    for name in ("a.txt", "run.sh"):
        assert Path(added.tree.folder, name).read_bytes() == (repository.folder / name).read_bytes()
    assert os.access(Path(added.tree.folder, "run.sh"), os.X_OK)
    assert os.readlink(Path(added.tree.folder, "link")) == "a.txt"
    repository.commit(__gitattributes="")
    older = cloning.add("older", first)
    assert older.cloned == 0, "other attributes apply there"
    assert Path(older.tree.folder, "a.txt").read_bytes().startswith(b"one\r\n")


def test_names_in_two_lists_are_found_through_folders() -> None:
    assert intersect_names(["a/", "b/c", "d"], ["a/x", "b/", "e"]) == ["a/x", "b/c"]
    assert intersect_names(["a/"], ["a/"]) == ["a/"]
    assert intersect_names(["ab/"], ["a/", "abc"]) == []


# Setup and ports


def test_a_setup_command_gets_the_name_the_folder_and_ports(world: World) -> None:
    world.set(
        """setup = 'echo "$WATCHROOM_TREE $WATCHROOM_PORT_FIRST+$WATCHROOM_PORT_COUNT"; pwd; echo $WATCHROOM_TREE_FOLDER >&2'"""
    )
    said: list[bytes] = []
    steps: list[str] = []
    listeners = Listeners(lambda step, done, of: steps.append(step), said.append)
    added = world.trees.add(DANA, "x", str(world.repository.folder), listeners=listeners)
    assert added.setup is not None
    assert (added.setup.status, added.setup.output.split("\n")) == (
        0,
        ["x 20000+10", added.tree.folder, added.tree.folder, ""],
    )
    assert b"".join(said).decode() == added.setup.output
    assert [*dict.fromkeys(steps)] == ["checkout", "setup"]
    (row,) = world.rows(SETUP_TREE)
    assert (row.detail["status"], row.path) == (0, added.tree.id)


def test_a_failed_setup_keeps_the_tree(world: World) -> None:
    world.set('setup = "echo begun; echo broken >&2; exit 3"')
    added = world.add("x")
    assert added.setup is not None
    assert (added.setup.status, added.setup.output) == (3, "begun\nbroken\n")
    assert Path(added.tree.folder).is_dir()
    assert world.words("x") == ("setup_failed",)


def test_blocks_of_ports_never_overlap_and_freed_ones_are_used_again(world: World, tmp_path: Path) -> None:
    def first(name: str) -> int:
        ports = world.add(name).tree.ports
        assert ports is not None
        return ports.first

    assert [first(name) for name in ("a", "b", "c")] == [20000, 20010, 20020]
    world.remove("b")
    world.set("ports = 20")
    assert first("d") == 20030, "the gap is too small"
    world.set("ports = 5")
    assert [first(name) for name in ("e", "f")] == [20010, 20015]
    other = Repository(tmp_path / "other")
    other.commit(a="a\n")
    with Workspace.open(other.root) as workspace:
        ports = workspace.own_trees.add(DANA, "a", str(other.folder)).tree.ports
        assert ports is not None
        assert ports.first == 20050, "all repositories of a user share the ports"


# Removing


def test_a_clean_tree_is_removed_and_its_branch_stays(world: World) -> None:
    added = world.add("x")
    write(added, "a.txt", "new\n")
    world.git(added, "commit", "--quiet", "-am", "work")
    head = world.branch("x")
    world.remove("x")
    assert not Path(added.tree.folder).exists()
    assert not world.repository.folder.with_name("project.trees").exists()
    assert world.branch("x") == head
    assert world.repository.git("worktree", "list", "--porcelain").count("worktree ") == 1
    (row,) = world.rows(REMOVE_TREE)
    assert (row.actor, row.path, row.detail["name"]) == ("human:dana", added.tree.id, "x")
    assert [each.name for each in world.trees.list_trees()] == ["project"]
    assert not [each for each in world.workspace.trees.all() if each.id == added.tree.id]
    with pytest.raises(UnknownTree):
        world.trees.plan_removal("x")


def test_uncommitted_work_is_in_the_journal_and_comes_back(world: World) -> None:
    added = world.add("x")
    write(added, "a.txt", "edited\n")
    write(added, "deep/new.txt", "new\n").chmod(0o755)
    write(added, "staged.txt", "staged\n")
    write(added, "both.txt", "first\n")
    Path(added.tree.folder, "bytes").write_bytes(b"\0\xff")
    world.git(added, "add", "staged.txt", "both.txt")
    write(added, "both.txt", "second\n")
    os.unlink(Path(added.tree.folder, "b.txt"))
    plan = world.trees.plan_removal("x")
    names = ("a.txt", "b.txt", "both.txt", "bytes", "deep/new.txt", "staged.txt")
    assert (plan.obstacles, plan.uncommitted) == ((), names)
    texts = [content for _, content in world.workspace.journal.versions("repo", f"{added.tree.id}/both.txt")]
    assert "first\n" in texts, "the staged content too"
    world.remove("x")
    assert world.repository.git("status", "--porcelain") == ""
    again = world.add("x", restore=True)
    assert again.restored == names
    folder = Path(again.tree.folder)
    assert (folder / "a.txt").read_text() == "edited\n"
    assert (folder / "both.txt").read_text() == "second\n"
    assert (folder / "bytes").read_bytes() == b"\0\xff"
    assert os.access(folder / "deep/new.txt", os.X_OK)
    assert not (folder / "b.txt").exists()
    with pytest.raises(InvalidTree, match="no tree of this name was removed"):
        world.add("y", restore=True)


@pytest.mark.parametrize("seed", seeds(8, 500))
def test_random_work_comes_back_as_it_was(world: World, seed: int) -> None:
    choose = Random(seed)
    world.repository.commit(**{f"f{number}": f"{number}\n" for number in range(6)})
    added = world.add("x")
    folder = Path(added.tree.folder)
    names = [*(f"f{number}" for number in range(8)), "new/a", "new/b", "umläut x", "f1/below"]
    for _ in range(25):
        name = choose.choice(names)
        change_at_random(choose, added, folder, name, world)
    before = contents(folder)
    world.remove("x")
    world.add("x", restore=True)
    assert contents(folder) == before


def test_a_file_in_the_place_of_a_folder_comes_back(world: World) -> None:
    world.repository.commit(**{"d/e/inner": "inner\n"})
    folder = Path(world.add("x").tree.folder)
    shutil.rmtree(folder / "d")
    (folder / "d").write_text("file\n")
    before = contents(folder)
    world.remove("x")
    world.add("x", restore=True)
    assert contents(folder) == before


def change_at_random(choose: Random, added: AddedTree, folder: Path, name: str, world: World) -> None:
    """Change the file ``name`` of a tree, in the working tree or in the index."""
    path = folder / name
    kind = choose.choice(("write", "write", "bytes", "delete", "mode", "add", "forget", "overlook", "commit"))
    if kind in ("write", "bytes"):
        if path.is_dir() or path.parent.is_file():
            return
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"\0\xff" if kind == "bytes" else f"{choose.random()}\n".encode())
    elif kind == "delete":
        if path.is_dir():
            shutil.rmtree(path)
        elif path.is_file():
            path.unlink()
    elif kind == "mode" and path.is_file():
        path.chmod(choose.choice((0o644, 0o755)))
    elif kind == "add":
        world.git(added, "add", "--all", choose.choice((".", ":/")))
    elif kind == "forget":
        world.git(added, "rm", "-rf", "--cached", "--quiet", "--ignore-unmatch", name)
    elif kind == "overlook" and world.git(added, "ls-files", "--stage", name).count("\n") == 0:
        if path.is_file() and world.git(added, "ls-files", name):
            world.git(added, "update-index", "--assume-unchanged", name)
    elif kind == "commit":
        world.git(added, "commit", "--quiet", "--allow-empty", "-m", "m")


def contents(folder: Path) -> dict[str, tuple[bytes, bool]]:
    """Return the bytes of all files below ``folder``, and whether they are executable."""
    return {
        str(path.relative_to(folder)): (path.read_bytes(), os.access(path, os.X_OK))
        for path in folder.rglob("*")
        if path.is_file() and path.name != ".git"
    }


def test_work_of_an_agent_comes_back_after_its_branch_went_on(world: World) -> None:
    added = world.add("x")
    alice = ScriptedClient(world.workspace, "alice", Path(added.tree.folder))
    alice.write("mine.txt", "mine\n")
    world.remove("x")
    again = world.add("x", restore=True)
    assert again.restored == ("mine.txt",)
    world.git(again, "add", "--all")
    world.git(again, "commit", "--quiet", "-m", "m")
    write(again, "a.txt", "edited\n")
    world.remove("x")
    third = world.add("x", restore=True)
    assert third.restored == ("a.txt",), "what was committed is not written again"


def test_ignored_files_that_only_the_tree_has_are_in_the_way(
    world: World, ignoring: Callable[[World], None]
) -> None:
    ignoring(world)
    added = world.add("x")
    write(added, "logs/__pycache__/x.pyc", "compiled")
    assert world.obstacles("x") == {}, "node_modules was copied, and programs make caches again"
    write(added, "node_modules/more.js", "written here")
    write(added, "logs/today.log", "line")
    write(added, ".env", "KEY=changed\n")
    write(added, "local/z", "z")
    found = (".env", "local/z", "logs/today.log", "node_modules/more.js")
    assert world.obstacles("x") == {"ignored": found}
    with pytest.raises(TreeKept):
        world.remove("x")
    assert Path(added.tree.folder, ".env").read_text() == "KEY=changed\n"
    world.remove("x", force=True)
    (row,) = world.rows(REMOVE_TREE)
    assert row.detail["forced"] == ["ignored"]


def test_what_the_setup_made_is_not_in_the_way(world: World) -> None:
    world.repository.commit(__gitignore="built/\n*.log\n")
    world.set('setup = "mkdir built; echo x > built/x; echo y > y.log"')
    added = world.add("x")
    plan = world.trees.plan_removal("x")
    assert (plan.obstacles, plan.disposable) == ((), ("built/", "y.log"))
    write(added, "z.log", "z")
    assert world.obstacles("x") == {"ignored": ("z.log",)}


def test_a_file_that_is_too_large_for_the_journal_is_in_the_way(world: World) -> None:
    added = world.add("x")
    Path(added.tree.folder, "large").write_bytes(b"x" * 11_000_000)
    Path(added.tree.folder, "link").symlink_to("a.txt")
    assert world.obstacles("x") == {"not_kept": ("large", "link")}


def test_agents_at_work_are_in_the_way(world: World) -> None:
    added = world.add("x")
    inside = str(Path(added.tree.folder, "deep"))
    plan = world.trees.plan_removal("x", [("alice", inside), ("bob", str(world.repository.folder))])
    assert [(each.kind, each.names) for each in plan.obstacles] == [("agents", ("alice",))]
    listed = world.trees.list_trees([("alice", inside)])
    assert [each.agents for each in listed] == [(), ("alice",)]


def test_a_change_after_the_plan_is_in_the_way(world: World) -> None:
    added = world.add("x")
    for change in ("new", "again"):
        plan = world.trees.plan_removal("x")
        write(added, "late.txt", change)
        with pytest.raises(TreeKept):
            world.trees.remove(DANA, plan)
        assert Path(added.tree.folder, "late.txt").read_text() == change
    world.remove("x")


def test_files_that_git_was_told_to_overlook_are_recorded(world: World) -> None:
    added = world.add("x")
    world.git(added, "update-index", "--assume-unchanged", "a.txt")
    write(added, "a.txt", "overlooked\n")
    assert world.trees.plan_removal("x").uncommitted == ("a.txt",)
    world.remove("x")
    write(world.add("x", restore=True), "c", "c")
    assert Path(added.tree.folder, "a.txt").read_text() == "overlooked\n"


def test_a_staged_text_that_has_a_version_is_not_recorded_again(world: World) -> None:
    added = world.add("x")
    world.workspace.scan()
    alice = ScriptedClient(world.workspace, "alice", Path(added.tree.folder))
    alice.write("new.txt", "one\n")
    world.git(added, "add", "new.txt")
    alice.write("new.txt", "one\ntwo\n")
    world.trees.plan_removal("x")
    assert authors(world, added, "new.txt") == ["alice", "alice"]
    world.git(added, "update-index", "--cacheinfo", f"100644,{world.branch('x:b.txt')},new.txt")
    world.trees.plan_removal("x")
    assert authors(world, added, "new.txt")[2:] == ["outside", "alice"]


# Odd states


def test_a_folder_removed_by_hand(world: World) -> None:
    added = world.add("x")
    write(added, "new.txt", "new\n")
    world.workspace.trees.refresh_all()
    head = world.branch("x")
    shutil.rmtree(added.tree.folder)
    assert world.words("x") == ("gone",)
    with pytest.raises(InvalidTree, match="removed by hand"):
        world.add("x")
    world.remove("x")
    assert world.branch("x") == head
    assert world.repository.git("worktree", "list", "--porcelain").count("worktree ") == 1


def test_staged_changes_of_a_folder_removed_by_hand_are_in_the_way(world: World) -> None:
    added = world.add("x")
    write(added, "new.txt", "new\n")
    world.git(added, "add", "new.txt")
    shutil.rmtree(added.tree.folder)
    assert world.obstacles("x") == {"staged": ("new.txt",)}


def test_a_name_that_is_used_again(world: World) -> None:
    first = world.add("x")
    write(first, "mine.txt", "first\n")
    world.remove("x")
    second = world.add("x")
    assert second.tree.id != first.tree.id
    assert not Path(second.tree.folder, "mine.txt").exists()
    old = world.workspace.journal.head("repo", f"{first.tree.id}/mine.txt")
    assert old is not None
    assert world.workspace.journal.content(old.seq) == "first\n"


def test_another_repository_in_the_folder(world: World) -> None:
    added = world.add("x")
    shutil.rmtree(added.tree.folder)
    other = Repository(Path(added.tree.folder))
    other.commit(own="own\n")
    assert world.words("x") == ("replaced",)
    world.remove("x")
    assert other.read("own") == "own\n"
    assert world.repository.git("worktree", "list", "--porcelain").count("worktree ") == 1


def test_a_folder_that_is_replaced_while_it_is_recorded_stops_nothing(world: World) -> None:
    added, trees = world.add("x"), world.workspace.trees
    tree = next(each for each in trees.all() if each.git.folder == added.tree.folder)
    threads: list[Thread] = []

    def replace(_: object) -> None:
        shutil.rmtree(added.tree.folder)
        Repository(Path(added.tree.folder)).commit(own="own\n")
        # The first waits for this recorder, the second must not wait for the first.
        for ask in (trees.all, lambda: trees.is_uncompared(Window("alice", "call"))):
            threads.append(Thread(target=ask, daemon=True))
            threads[-1].start()
            threads[-1].join(0.5)
        assert not threads[-1].is_alive()

    tree.record(on_rows=replace)
    threads[0].join(10)
    assert not threads[0].is_alive()


def test_a_branch_that_was_deleted(world: World) -> None:
    added = world.add("x")
    write(added, "a.txt", "new\n")
    world.repository.git("update-ref", "-d", "refs/heads/x")
    assert "branch_deleted" in world.words("x")
    world.remove("x")
    again = world.add("x", "main", restore=True)
    assert Path(again.tree.folder, "a.txt").read_text() == "new\n"


def test_commits_without_a_branch(world: World) -> None:
    added = world.add("x")
    world.git(added, "switch", "--quiet", "--detach")
    assert (world.words("x"), world.obstacles("x")) == (("detached",), {})
    write(added, "a.txt", "new\n")
    world.git(added, "commit", "--quiet", "-am", "alone")
    commit = world.git(added, "rev-parse", "HEAD")
    assert world.obstacles("x") == {"commits": (commit,)}
    world.remove("x", force=True)
    assert world.branch("watchroom/kept/x") == commit


def test_an_unfinished_rebase(world: World) -> None:
    added = world.add("x")
    write(added, "b.txt", "theirs\n")
    world.git(added, "commit", "--quiet", "-am", "theirs")
    world.repository.commit(b__txt="ours\n")
    with pytest.raises(AssertionError):
        world.git(added, "rebase", "--quiet", "main")
    assert "rebase" in world.words("x")
    assert world.obstacles("x")["unfinished"] == ("rebase",)
    with pytest.raises(TreeKept):
        world.remove("x")
    world.git(added, "rebase", "--abort")
    world.remove("x")


def test_a_locked_index_and_a_locked_tree(world: World) -> None:
    added = world.add("x")
    lock = Path(world.git(added, "rev-parse", "--absolute-git-dir"), "index.lock")
    lock.touch()
    assert world.words("x") == ("index_locked",)
    assert world.obstacles("x") == {"git_running": ()}
    with pytest.raises(TreeKept):
        world.remove("x", force=True)
    os.utime(lock, (0, 0))
    assert [*world.obstacles("x")] == ["index_locked"]
    lock.unlink()
    world.repository.git("worktree", "lock", added.tree.folder)
    assert (world.words("x"), world.obstacles("x")) == (("locked",), {"locked": ()})
    with pytest.raises(TreeKept):
        world.remove("x", force=True)
    world.repository.git("worktree", "unlock", added.tree.folder)
    world.remove("x")


def test_a_shallow_clone_has_trees(repository: Repository, tmp_path: Path) -> None:
    for text in ("1\n", "2\n"):
        repository.commit(a__txt=text)
    repository.git("clone", "--quiet", "--depth=1", f"file://{repository.folder}", str(tmp_path / "shallow"))
    shallow = tmp_path / "shallow"
    with Workspace.open(shallow / ".git" / "watchroom") as workspace:
        trees = workspace.own_trees
        assert Path(trees.add(DANA, "x", str(shallow)).tree.folder, "a.txt").read_text() == "2\n"
        assert trees.is_shallow
        trees.remove(DANA, trees.plan_removal("x"))


def test_submodules_and_other_repositories_are_in_the_way(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = Repository(tmp_path / "inner")
    inner.commit(own="own\n")
    allowed = ("-c", "protocol.file.allow=always")
    world.repository.git(*allowed, "submodule", "--quiet", "add", str(inner.folder), "sub")
    world.repository.commit()
    added = world.add("x")
    assert world.obstacles("x") == {}, "nobody has checked it out"
    world.git(added, *allowed, "submodule", "--quiet", "update", "--init")
    assert "submodules" in world.words("x")
    assert world.obstacles("x") == {"submodules": ("sub",)}
    Repository(Path(added.tree.folder, "nested")).commit(own="own\n")
    assert world.obstacles("x") == {"submodules": ("sub",), "nested": ("nested/",)}


def test_the_main_tree_is_never_removed(world: World) -> None:
    with pytest.raises(UnknownTree):
        world.trees.plan_removal("project")
    with pytest.raises(UnknownTree):
        world.trees.plan_removal("main")


def test_a_removal_that_was_killed_is_continued(world: World) -> None:
    added = world.add("x")
    write(added, "a.txt", "edited\n")
    aside = Path(added.tree.folder).with_name(".x.watchroom-removed")
    os.rename(added.tree.folder, aside)
    plan = world.trees.plan_removal("x")
    assert plan.uncommitted == ("a.txt",)
    # Another one was killed later, while it deleted the folder.
    aside.joinpath("rest").mkdir(parents=True)
    world.trees.remove(DANA, plan)
    assert not world.repository.folder.with_name("project.trees").exists()


def test_a_process_that_opens_a_tree_during_its_removal_does_not_make_its_folder_again(world: World) -> None:
    added = world.add("x")
    folder = Path(added.tree.folder)
    found = GitTree.find(added.tree.folder)
    assert found is not None
    folder.rename(folder.with_name(".x.watchroom-removed"))
    scratch = world.repository.root / ".watchroom" / "trees"
    with pytest.raises(FileNotFoundError):
        TreeRecorder(world.workspace._store, found, str(scratch))
    assert not folder.exists()
    world.remove("x")
    assert world.repository.git("worktree", "list").count("\n") == 0


def test_a_tree_is_removed_while_other_processes_make_files_in_its_git_folder(world: World) -> None:
    """Git fails then with "Directory not empty", in about half of all removals."""
    for number in range(12):
        added = world.add(f"x{number}")
        ended = Event()

        def touch(git: str = added.tree.git, ended: Event = ended) -> None:
            while not ended.is_set():
                with contextlib.suppress(OSError), Path(git, "cookie").open("xb"):
                    Path(git, "cookie").unlink()

        with ThreadPoolExecutor(1) as pool:
            pool.submit(touch)
            try:
                world.remove(f"x{number}")
            finally:
                ended.set()
        assert not Path(added.tree.git).exists()
        assert not Path(added.tree.folder).exists()


def test_a_tree_that_a_client_made_is_removed_as_well(world: World) -> None:
    world.repository.git("worktree", "add", "--quiet", ".claude/worktrees/quick", "-b", "worktree-quick")
    path = world.repository.folder / ".claude/worktrees/quick"
    (path / "new.txt").write_text("new\n")
    world.remove("quick")
    assert not path.exists()
    assert world.branch("worktree-quick")
    (row,) = world.rows(REMOVE_TREE)
    assert row.detail["uncommitted"] == 1


@pytest.fixture
def supervised(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[World, Workspace]]:
    """The same beside the service of another process, which records the changes. A removal without progress
    looks soon at what the service still has to record."""
    monkeypatch.setattr("watchroom.features.trees.tree_removal._QUIET_SECONDS", 0.2)
    with (
        Workspace.open(repository.root, agents=["alice"]) as service,
        Workspace.open(repository.root) as other,
    ):
        assert service.keep()
        yield World(other, repository), service


@pytest.fixture
def unwatched(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[World, Workspace]]:
    """The same with a service that cannot watch the trees."""
    monkeypatch.setattr("watchroom.features.trees.tree_removal._QUIET_SECONDS", 0.2)
    with (
        Workspace.open(repository.root, platform=UnwatchedPlatform()) as service,
        Workspace.open(repository.root) as other,
    ):
        assert service.keep()
        yield World(other, repository), service


def begin_writes(
    service: Workspace, added: AddedTree, *names: str, text: str = "text\n"
) -> Callable[[str], None]:
    """Let alice write files. They are recorded with her as author once she reports them: return the function
    that does so."""
    service.trees.look_after()
    alice = ScriptedClient(service, "alice", Path(added.tree.folder))
    calls, before = {}, {}
    for name in names:
        path = Path(added.tree.folder, name)
        before[name] = path.read_text() if path.exists() else None
        calls[name] = alice.begin_write(name, text)
        write(added, name, text)

    def report(name: str) -> None:
        call, given = calls[name]
        alice.report("Write", call, given, {"content": given["content"], "originalFile": before[name]})

    return report


def authors(world: World, added: AddedTree, name: str) -> list[str]:
    return [row.actor for row in world.workspace.journal.history("repo", f"{added.tree.id}/{name}")]


def test_a_removal_waits_for_the_service_which_knows_the_authors(
    supervised: tuple[World, Workspace],
) -> None:
    world, service = supervised
    added = world.add("x")
    report = begin_writes(service, added, "new.txt", "a.txt")
    with ThreadPoolExecutor(1) as pool:
        planned = pool.submit(world.trees.plan_removal, "x")
        assert not wait([planned], 0.6).done
        report("new.txt")
        assert not wait([planned], 0.6).done
        report("a.txt")
        plan = planned.result()
    assert (plan.obstacles, plan.uncommitted) == ((), ("a.txt", "new.txt"))
    assert authors(world, added, "new.txt") == ["alice"]
    assert authors(world, added, "a.txt")[-1] == "alice"


def test_a_removal_waits_for_a_service_as_long_as_it_makes_progress(
    supervised: tuple[World, Workspace], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("watchroom.features.trees.tree_removal._STALLED_SECONDS", 1.5)
    world, service = supervised
    added = world.add("x")
    names = [f"new{number}.txt" for number in range(5)]
    report = begin_writes(service, added, *names)
    with ThreadPoolExecutor(1) as pool:
        planned = pool.submit(world.trees.plan_removal, "x")
        for name in names:
            assert not wait([planned], 0.4).done
            report(name)
        assert planned.result().obstacles == ()
    assert [authors(world, added, name) for name in names] == [["alice"]] * len(names)


def test_files_that_the_service_does_not_record_are_in_the_way(
    supervised: tuple[World, Workspace], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("watchroom.features.trees.tree_removal._STALLED_SECONDS", 0.4)
    world, service = supervised
    added = world.add("x")
    begin_writes(service, added, "old.txt", text="old\n")("old.txt")
    names = ("a.txt", "new.txt", "old.txt")
    report = begin_writes(service, added, *names)
    plan = world.trees.plan_removal("x")
    assert [(each.kind, each.names) for each in plan.obstacles] == [("unrecorded", names)]
    with pytest.raises(TreeKept):
        world.trees.remove(DANA, plan, force=True)
    assert [authors(world, added, name) for name in names] == [[], [], ["alice"]]
    for name in names:
        report(name)
    world.remove("x")
    assert authors(world, added, "old.txt") == ["alice", "alice"]


def test_a_removal_does_not_wait_for_files_that_the_service_never_records(
    supervised: tuple[World, Workspace],
) -> None:
    world, service = supervised
    added = world.add("x")
    folder = Path(added.tree.folder)
    (folder / "mixed.txt").write_bytes(b"one\r\n")
    world.git(added, "add", ".")
    write(added, ".gitattributes", "mixed.txt text eol=crlf\n")
    world.git(added, "add", ".gitattributes")
    world.git(added, "commit", "-qm", "mixed line ends")
    write(added, "b.txt", "of a commit\n")
    world.git(added, "commit", "-qm", "undone", "b.txt")
    service.trees.look_after()
    service.trees.refresh_all()
    world.git(added, "reset", "-q", "HEAD~1")
    (folder / "link").symlink_to("a.txt")
    os.utime(folder / "mixed.txt", ns=(1, 1))
    service.trees.refresh_all()
    plan = world.trees.plan_removal("x")
    assert plan.uncommitted == ("b.txt", "link", "mixed.txt")
    assert [(each.kind, each.names) for each in plan.obstacles] == [("not_kept", ("link",))]
    assert authors(world, added, "b.txt") == ["outside"]


def test_a_removal_does_not_wait_for_ignored_files_that_the_service_does_not_notice(
    unwatched: tuple[World, Workspace], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("watchroom.features.trees.tree_removal._STALLED_SECONDS", 0.4)
    world, service = unwatched
    added = world.add("x")
    made = write(added, "dist/made.js", "1\n")
    service.trees.refresh_all()
    shutil.rmtree(made.parent)
    write(added, ".gitignore", "dist/\n")
    service.trees.refresh_all()
    write(added, "dist/made.js", "2\n")
    assert world.obstacles("x") == {"ignored": ("dist/",)}
    world.remove("x", force=True)
    assert not made.exists()


def test_a_removal_waits_until_the_service_compares_a_tree_that_it_cannot_watch(
    unwatched: tuple[World, Workspace], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("watchroom.features.trees.watcher.UNWATCHED_SECONDS", 0.2)
    world, service = unwatched
    added = world.add("x")
    service.trees.refresh_all()
    write(added, "new.txt", "new\n")
    plan = world.trees.plan_removal("x")
    assert (plan.obstacles, plan.uncommitted) == ((), ("new.txt",))
    assert authors(world, added, "new.txt") == ["outside"]


def test_a_removal_records_changes_itself_when_the_service_has_ended(
    supervised: tuple[World, Workspace],
) -> None:
    world, service = supervised
    added = world.add("x")
    begin_writes(service, added, "new.txt")
    with ThreadPoolExecutor(1) as pool:
        planned = pool.submit(world.trees.plan_removal, "x")
        assert not wait([planned], 0.6).done
        service.close()
        assert planned.result().obstacles == ()
    assert authors(world, added, "new.txt") == ["outside"]


def test_the_service_of_another_process_does_not_record_the_removal_as_deletions(
    repository: Repository,
) -> None:
    with Workspace.open(repository.root) as keeping, Workspace.open(repository.root) as other:
        assert keeping.keep()
        world = World(other, repository)
        added = world.add("x")
        keeping.trees.look_after()
        old = keeping.trees.tree_at(added.tree.folder)
        assert old is not None
        write(added, "new.txt", "new\n")
        assert world.trees.plan_removal("x").uncommitted == ("new.txt",)
        world.remove("x")
        again = world.add("x", restore=True)
        assert again.restored == ("new.txt",)
        assert keeping.trees.refresh(old) == []
        head = other.journal.head("repo", f"{added.tree.id}/new.txt")
        assert head is not None
        assert not head.deleted
        last = max(row.seq for row in other.journal.heads("repo", f"{added.tree.id}/"))
        (removed,) = world.rows(REMOVE_TREE)
        assert last < removed.seq, "the new tree is not taken for the old one"
    assert subprocess.run(["git", "fsck"], cwd=repository.folder, capture_output=True).returncode == 0
