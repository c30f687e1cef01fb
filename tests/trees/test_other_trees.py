"""An agent that works in a linked working tree writes no files of other trees."""

from __future__ import annotations

from pathlib import Path

import pytest
from trees.git_repo import git
from trees.git_repository import Repository
from trees.tree_client import Refused, ScriptedClient
from watchroom import Workspace
from watchroom.features.trees.rows import CHANGE_OTHER_TREE

LEAKS = ("main", "sibling", "through a link", "by a relative path")


@pytest.fixture
def folders(repository: Repository) -> tuple[Path, Path]:
    """Two linked trees, one of them in the main tree, as Claude Code makes them."""
    inner, outer = repository.folder / ".claude" / "worktrees" / "one", repository.folder.parent / "two"
    for folder in (inner, outer):
        repository.git("worktree", "add", "--quiet", "-b", folder.name, str(folder))
    return inner, outer


@pytest.mark.parametrize("leak", LEAKS)
@pytest.mark.parametrize("cwd", ["own", "main"])
def test_a_write_into_another_tree_is_refused_wherever_the_agent_is(
    kept: Workspace, repository: Repository, folders: tuple[Path, Path], leak: str, cwd: str
) -> None:
    one, two = folders
    client = ScriptedClient(kept, "alice", one)
    (one / "link").symlink_to(repository.folder)
    target = {
        "main": repository.folder / "a.txt",
        "sibling": two / "a.txt",
        "through a link": one / "link" / "a.txt",
        "by a relative path": Path("..") / ".." / ".." / "a.txt",
    }[leak]
    if cwd == "main" and leak != "by a relative path":
        client.folder = repository.folder
    with pytest.raises(Refused, match="another working tree") as refused:
        client.ask("Write", {"file_path": str(target), "content": "leaked\n"})
    assert str(one / "a.txt") in refused.value.reason, "it reads where to write instead"
    assert repository.read("a.txt").startswith("one")


def test_its_own_files_and_files_outside_are_written(
    kept: Workspace, folders: tuple[Path, Path], tmp_path: Path
) -> None:
    one, _ = folders
    client = ScriptedClient(kept, "alice", one)
    client.read("a.txt")
    client.write("a.txt", "own\n")
    client.ask("Write", {"file_path": str(tmp_path / "notes.txt"), "content": "x\n"})
    assert (one / "a.txt").read_text() == "own\n"


def test_a_patch_of_codex_is_refused_too(
    kept: Workspace, repository: Repository, folders: tuple[Path, Path]
) -> None:
    codex = ScriptedClient(kept, "bob", folders[1], client="codex")
    patch = f"*** Begin Patch\n*** Update File: {repository.folder}/a.txt\n@@\n-one\n+ONE\n*** End Patch\n"
    with pytest.raises(Refused, match="another working tree"):
        codex.patch(patch)


def test_an_agent_of_the_main_tree_writes_linked_trees(
    kept: Workspace, repository: Repository, folders: tuple[Path, Path]
) -> None:
    client = ScriptedClient(kept, "alice", repository.folder)
    client.write(str(folders[0].relative_to(repository.folder) / "new.txt"), "new\n")
    assert (folders[0] / "new.txt").read_text() == "new\n"


def test_a_command_that_writes_another_tree_is_shown(
    kept: Workspace, repository: Repository, folders: tuple[Path, Path]
) -> None:
    one, _ = folders
    client = ScriptedClient(kept, "alice", one)
    client.bash(f"echo leaked >> {repository.folder}/a.txt; echo own >> b.txt")
    (told,) = (each for each in client.told if "other working trees" in each)
    assert str(repository.folder / "a.txt") in told
    assert "b.txt" not in told
    (row,) = (each for each in kept.journal.rows(0, limit=1000) if each.tool == CHANGE_OTHER_TREE)
    assert (row.actor, row.detail["count"]) == ("alice", 1)


def test_the_home_of_an_agent_is_where_its_session_began(
    kept: Workspace, repository: Repository, folders: tuple[Path, Path]
) -> None:
    """As with a subagent that goes to its own tree, and comes back."""
    client = ScriptedClient(kept, "alice", repository.folder)
    client.folder = folders[0]
    client.read("a.txt")
    git(folders[0], "status")
    client.folder = repository.folder
    client.read("a.txt")
    client.write("a.txt", "by alice\n")
    assert repository.read("a.txt") == "by alice\n"
