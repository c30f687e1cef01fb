"""How far the branch of a working tree is ahead of and behind another one."""

from __future__ import annotations

from pathlib import Path

import pytest
from trees.git_repo import ENVIRONMENT
from trees.git_repository import Repository
from watchroom import Workspace
from watchroom.features.trees.reads import TreeReader
from watchroom.features.trees.rows import TRY_AGENT, read_try
from watchroom.features.trees.standing import Standing, read_standing
from watchroom.kernel.call_context import CallContext


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    made = Repository(tmp_path / "project")
    made.commit(a__txt="one\n")
    return made


def standings(repository: Repository) -> dict[str, Standing | None]:
    """The standing of each tree, by its branch."""
    with Workspace.open(repository.root) as workspace:
        assert workspace.keep()
        workspace.trees.refresh_all()
        trees = TreeReader(workspace.journal).list_trees()
        return {each.branch: read_standing(each, trees) for each in trees}


def test_a_linked_tree_is_compared_with_the_branch_of_the_main_one(
    repository: Repository, tmp_path: Path
) -> None:
    repository.git("worktree", "add", "-q", "-b", "fares", str(tmp_path / "fares"))
    repository.git("-C", str(tmp_path / "fares"), "commit", "-q", "--allow-empty", "-m", "one")
    repository.git("-C", str(tmp_path / "fares"), "commit", "-q", "--allow-empty", "-m", "two")
    repository.git("commit", "-q", "--allow-empty", "-m", "three")
    assert standings(repository) == {"main": None, "fares": Standing("main", 2, 1)}


def test_a_branch_is_compared_with_its_upstream_and_not_with_one_that_is_gone(
    repository: Repository,
) -> None:
    repository.git("branch", "origin")
    repository.git("branch", "-q", "--set-upstream-to=origin")
    repository.git("commit", "-q", "--allow-empty", "-m", "two")
    assert standings(repository) == {"main": Standing("origin", 1, 0)}
    repository.git("branch", "-q", "-D", "origin")
    assert standings(repository) == {"main": None}


def test_a_try_is_recorded(repository: Repository, tmp_path: Path) -> None:
    with Workspace.open(repository.root, agents=["alice"]) as workspace:
        assert workspace.keep()
        tree = workspace.trees.all()[0]
        workspace.agent_commits.try_agent(
            tree.git,
            ["alice"],
            ["sh", "-c", "exit 3"],
            call=CallContext("human:dana", TRY_AGENT),
            cache=str(tmp_path / "cache"),
        )
        row = workspace.journal.rows_before(workspace.journal.last_seq() + 1, limit=1)[0]
        assert (row.actor, row.path, row.tool) == ("human:dana", tree.id, TRY_AGENT)
        record = read_try(row)
        assert (record.agents, record.command, record.status) == (("alice",), ("sh", "-c", "exit 3"), 3)
