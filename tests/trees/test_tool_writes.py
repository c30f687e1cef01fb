"""What an agent's own tool wrote is its version, also where the file is new, gone, large or behind a link."""

from __future__ import annotations

from pathlib import Path

import pytest
from trees.git_repository import Repository
from trees.tree_client import ScriptedClient
from watchroom import Row, Workspace
from watchroom.features.trees.rows import REPO, grade_of
from watchroom.kernel.rules.file_versions import is_executable


def rows_of(workspace: Workspace, name: str) -> list[Row]:
    workspace.trees.refresh_all()
    (tree,) = workspace.trees.all()
    return workspace.journal.history(REPO, tree.path(name))


def authors(workspace: Workspace, name: str) -> list[tuple[str, str]]:
    return [(row.actor, grade_of(row)) for row in rows_of(workspace, name)]


def versions(workspace: Workspace, name: str) -> list[tuple[str, str, str | None]]:
    return [
        (row.actor, grade_of(row), workspace.journal.content(row.seq)) for row in rows_of(workspace, name)
    ]


def conflicts(workspace: Workspace, name: str) -> list[tuple[str | None, str | None]]:
    """The conflicts about a file: the code and the text of each."""
    (tree,) = workspace.trees.all()
    found = workspace.journal.refused(REPO, tree.path(name))
    return [(row.error, workspace.journal.content(row.seq)) for row in found]


def report_write(client: ScriptedClient, call: str, path: Path, text: str, original: str | None) -> None:
    """Report a whole text as written, although the file is gone."""
    path.unlink(missing_ok=True)
    response = {"type": "update" if original else "create", "content": text, "originalFile": original}
    client.report("Write", call, {"file_path": str(path), "content": text}, response)


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


@pytest.mark.parametrize(("name", "original"), [("new.txt", None), ("b.txt", "b\n")])
def test_a_text_whose_file_is_gone_when_its_write_ends_is_its_agents(
    kept: Workspace, repository: Repository, alice: ScriptedClient, name: str, original: str | None
) -> None:
    call, _ = alice.begin_write(name, "by alice\n")
    report_write(alice, call, repository.folder / name, "by alice\n", original)
    assert versions(kept, name)[-2:] == [("alice", "tool", "by alice\n"), ("outside", "external", None)]
    assert alice.told == [f"outside deleted {name} since you read it."]
    assert conflicts(kept, name) == []


def test_a_text_is_recorded_again_when_its_file_is_gone_again(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    alice.bash("rm b.txt")
    call, _ = alice.begin_write("b.txt", "by alice\n")
    report_write(alice, call, repository.folder / "b.txt", "by alice\n", None)
    assert versions(kept, "b.txt")[1:] == [
        ("alice", "window", None),
        ("alice", "tool", "by alice\n"),
        ("outside", "external", None),
    ]


def test_a_program_that_is_gone_when_its_write_ends_stays_executable(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    path = repository.folder / "b.txt"
    path.chmod(0o755)
    alice.read("b.txt")
    call, _ = alice.begin_write("b.txt", "by alice\n")
    report_write(alice, call, path, "by alice\n", "b\n")
    assert is_executable(rows_of(kept, "b.txt")[-2])


@pytest.mark.parametrize("is_own", [False, True])
def test_a_text_that_a_command_deletes_before_its_write_ends_is_kept(
    kept: Workspace, repository: Repository, alice: ScriptedClient, bob: ScriptedClient, is_own: bool
) -> None:
    worker = alice if is_own else bob
    call, _ = alice.begin_write("new.txt", "by alice\n")
    command = worker.begin_bash("make clean")
    report_write(alice, call, repository.folder / "new.txt", "by alice\n", None)
    worker.end_bash(*command)
    assert versions(kept, "new.txt") == [("alice", "tool", "by alice\n"), (worker.agent, "window", None)]
    assert conflicts(kept, "new.txt") == ([] if is_own else [("lines_lost", "by alice\n")])


@pytest.mark.parametrize("name", ["new.txt", "b.txt"])
def test_a_text_that_a_write_replaces_is_kept_although_the_file_is_gone(
    kept: Workspace, repository: Repository, alice: ScriptedClient, name: str
) -> None:
    call, _ = alice.begin_write(name, "by alice\n")
    report_write(alice, call, repository.folder / name, "by alice\n", "by hand\n")
    assert versions(kept, name)[-3:] == [
        ("outside", "external", "by hand\n"),
        ("alice", "tool", "by alice\n"),
        ("outside", "external", None),
    ]
    assert conflicts(kept, name) == [("changed_in_window", "by hand\n")]


def test_an_unchecked_write_whose_file_is_gone_is_no_deletion_by_its_agent(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    for name in ("new.txt", "b.txt"):
        report_write(alice, "unchecked", repository.folder / name, "by alice\n", None)
    assert rows_of(kept, "new.txt") == []
    assert authors(kept, "b.txt") == [("system", "git"), ("outside", "external")]


@pytest.mark.parametrize(
    "patch", ["Delete File: b.txt", "Update File: b.txt\n*** Move to: c.txt\n@@\n-b\n+B"]
)
def test_an_unchecked_patch_that_removes_a_file_is_a_deletion_by_its_agent(
    kept: Workspace, repository: Repository, patch: str
) -> None:
    carol = ScriptedClient(kept, "carol", repository.folder, client="codex")
    (repository.folder / "b.txt").unlink()
    given = {"command": f"*** Begin Patch\n*** {patch}\n*** End Patch\n"}
    carol.report("apply_patch", "unchecked", given, "Success.")
    assert authors(kept, "b.txt") == [("system", "git"), ("carol", "tool")]
