"""``watchroom revert``: preview, apply and undo a revert."""

from __future__ import annotations

import os
from pathlib import Path

from calls import ok
from cli.running import Captured, misuse, printed, printed_json, refusal, run
from watchroom import Agent, Workspace
from watchroom.features.tasks.files import ChangeAuthor
from watchroom.kernel.call_context import CallContext


def spoiled(root: Path) -> int:
    """Create a team in which alice changed bob's text. Return the row before that."""
    with Workspace.open(root, agents=["alice", "bob"]) as workspace:
        alice, bob = workspace.tools("alice"), workspace.tools("bob")
        ok(bob, "collab_write", filepath="a.md", content="1\n2\n3\n", expected_version=0, message="m")
        since = workspace.journal.last_seq()
        ok(alice, "collab_write", filepath="a.md", content="one\n2\n3\n", expected_version=1, message="m")
        return since


def content(root: Path) -> str:
    return (root / "collaborative/current/a.md").read_text()


def test_a_dry_run_shows_the_change_and_makes_none(tmp_path: Path, capsys: Captured) -> None:
    root = tmp_path / "team"
    since = spoiled(root)
    told = printed(
        *(capsys, "revert", str(root), "--agent", "alice", "--since", str(since), "--dry-run", "--diff")
    )
    assert "clean\tshared file a.md" in told
    assert "-one\n+1\n" in told
    assert content(root) == "one\n2\n3\n"


def test_a_revert_can_be_undone(tmp_path: Path, capsys: Captured) -> None:
    root = tmp_path / "team"
    spoiled(root)
    done = printed_json(
        *(capsys, "revert", str(root), "--agent", "alice", "--since", "1h", "--id", "x", "--json")
    )
    assert (done["revert_id"], done["written_count"]) == ("x", 1)
    assert content(root) == "1\n2\n3\n"
    assert "a.md" in printed(capsys, "revert", str(root), "--undo", "x")
    assert content(root) == "one\n2\n3\n"


def test_a_revert_needs_agents_and_a_moment(tmp_path: Path, capsys: Captured) -> None:
    root = str(tmp_path / "team")
    spoiled(tmp_path / "team")
    for arguments in ((), ("--agent", "alice"), ("--all", "--undo", "x"), ("--all", "--since", "then")):
        assert misuse(capsys, "revert", root, *arguments)
    for typed in (("--agent", "nobody"), ("nobody",)):
        assert "Unknown agent 'nobody'" in refusal(capsys, "revert", root, *typed, "--since", "0")
    assert "Unknown task 'none'" in refusal(capsys, "revert", root, "--task", "none", "--since", "0")
    assert "a.md" in printed(capsys, "revert", "bob", root, "--since", "0", "--dry-run")


def test_the_status_is_1_if_something_could_not_be_reverted(tmp_path: Path, capsys: Captured) -> None:
    root = tmp_path / "team"
    with Workspace.open(root) as workspace:
        task = workspace.tasks.submit("human:dana", "Build.", tmp_path / "project").id
        workspace.register([Agent("alice", task=task)])
        (tmp_path / "project" / os.fsdecode(b"\xff.txt")).write_text("text\n")
        workspace.task_files.record_changes(
            CallContext("alice"), ChangeAuthor(CallContext("alice", "run_command"))
        )
    status, out, _ = run(capsys, "revert", str(root), "--agent", "alice", "--since", "0")
    assert status == 1
    assert "its name is not UTF-8" in out
