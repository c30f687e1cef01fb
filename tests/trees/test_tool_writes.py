"""What an agent's own tool wrote is its version, also where the file is new, gone, large or behind a link."""

from __future__ import annotations

from pathlib import Path

from trees.git_repository import Repository
from trees.tree_client import ScriptedClient
from watchroom import Row, Workspace
from watchroom.features.trees.rows import REPO, grade_of


def rows_of(workspace: Workspace, name: str) -> list[Row]:
    workspace.trees.refresh_all()
    (tree,) = workspace.trees.all()
    return workspace.journal.history(REPO, tree.path(name))


def authors(workspace: Workspace, name: str) -> list[tuple[str, str]]:
    return [(row.actor, grade_of(row)) for row in rows_of(workspace, name)]


def test_a_file_that_an_agent_deletes_before_anybody_changed_it_is_deleted_by_that_agent(
    kept: Workspace, repository: Repository
) -> None:
    carol = ScriptedClient(kept, "carol", repository.folder, client="codex")
    carol.patch("*** Begin Patch\n*** Delete File: b.txt\n*** End Patch\n")
    assert authors(kept, "b.txt") == [("system", "git"), ("carol", "tool")]


def test_a_new_file_that_somebody_makes_between_the_check_and_the_write_is_kept(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    begun = alice.begin_write("new.txt", "by alice\n")
    repository.write("new.txt", "by hand, meanwhile\n")
    alice.end_write(*begun)
    texts = [kept.journal.content(row.seq) for row in rows_of(kept, "new.txt")]
    assert "by hand, meanwhile\n" in texts


def test_an_edit_through_a_symbolic_link_is_a_version_of_its_target(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    (repository.folder / "link.txt").symlink_to("a.txt")
    alice.edit("link.txt", "two", "TWO")
    assert authors(kept, "a.txt")[-1] == ("alice", "tool")


def test_a_text_of_more_than_ten_megabytes_is_a_version_of_its_agent(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    alice.write("large.txt", "0123456789\n" * 1_000_000)
    assert authors(kept, "large.txt") == [("alice", "tool")]


def test_a_file_that_a_write_replaces_by_bytes_is_one_version(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    alice.write("new.txt", "text with \0 in it\n")
    assert authors(kept, "new.txt") == [("alice", "tool")]


def test_a_formatter_that_runs_after_the_write_makes_a_second_version(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    call, given = alice.begin_write("new.txt", "a  =  1\n")
    (repository.folder / "new.txt").write_text("a = 1\n")
    alice.report("Write", call, given, {"type": "create", "content": "a  =  1\n", "originalFile": None})
    found = [(row.tool, kept.journal.content(row.seq)) for row in rows_of(kept, "new.txt")]
    assert found == [("write_file", "a  =  1\n"), ("formatter", "a = 1\n")]


def test_a_failed_edit_that_wrote_nothing_leaves_no_version(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    call, given = alice.begin_edit("a.txt", "two", "TWO")
    repository.write("a.txt", "by hand\n")
    alice.hook("PostToolUseFailure", tool_name="Edit", tool_use_id=call, tool_input=given, error="no")
    assert authors(kept, "a.txt") == [("system", "git"), ("outside", "external")]


def test_a_write_in_a_nested_repository_is_none_of_the_outer_one(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    Repository(repository.folder / "vendor").commit(x__txt="x\n")
    alice.edit("vendor/x.txt", "x", "y")
    alice.write("vendor/y.txt", "y\n")
    assert rows_of(kept, "vendor/x.txt") == []
    assert rows_of(kept, "vendor/y.txt") == []


def test_a_write_outside_of_the_repository_proceeds(
    kept: Workspace, repository: Repository, alice: ScriptedClient, tmp_path: Path
) -> None:
    alice.write("../elsewhere.txt", "x\n")
    assert (tmp_path / "elsewhere.txt").read_text() == "x\n"


def test_a_write_of_git_s_own_file_proceeds_and_is_not_recorded(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    alice.write(".git/info/exclude", "*.log\n")
    assert rows_of(kept, ".git/info/exclude") == []


def test_a_write_whose_end_is_never_reported_is_found_at_the_end_of_the_turn(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    _, given = alice.begin_write("new.txt", "by alice\n")
    (repository.folder / "new.txt").write_text(given["content"])
    alice.stop()
    assert authors(kept, "new.txt") == [("alice", "tool")]
