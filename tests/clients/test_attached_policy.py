"""The rules of the policy hold for the tools that an attached client has itself."""

from __future__ import annotations

import subprocess
from pathlib import Path

from clients.attached import AttachedClient, attendant
from watchroom import Workspace
from watchroom.kernel.checkout.layout import CONTROL
from watchroom.kernel.rules.row_files import CONFIG_PATH


def test_a_rule_holds_wherever_the_agent_has_gone(root: Path) -> None:
    with Workspace.open(root, agents=["alice"]) as workspace:
        config = Path(workspace.root, CONTROL, CONFIG_PATH)
        config.write_text(
            config.read_text()
            + '\n[[policy.rules]]\npath = "secrets/**"\nverdict = "deny"\n'
            + '\n[[policy.rules]]\ntool = "Read"\nverdict = "ask"\nmode = "test"\n'
        )
        workspace.scan()
        with attendant(root):
            client = AttachedClient(root)
            client.hook("SessionStart", source="startup")
            key = {"tool_name": "Write", "tool_input": {"file_path": "/project/secrets/key"}}
            said = client.hook("PreToolUse", cwd="/project/secrets", tool_use_id="t1", **key)
            assert said is not None
            assert said["hookSpecificOutput"]["permissionDecision"] == "deny"
            client.hook(
                "PreToolUse", tool_name="Read", tool_input={"file_path": "/project/a"}, tool_use_id="t2"
            )
        workspace.flush()
        assert [
            row.detail["tool"] for row in workspace.journal.rows(limit=1000) if row.tool == "test_policy"
        ] == ["Read"]


def test_a_path_rule_holds_in_linked_worktrees(root: Path, tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    who = ("-c", "user.name=n", "-c", "user.email=n@example.org")
    for arguments in (
        ("init", "--quiet", str(repository)),
        ("-C", str(repository), "commit", "--quiet", "--allow-empty", "-m", "first"),
        ("-C", str(repository), "worktree", "add", "--quiet", ".claude/worktrees/a"),
    ):
        subprocess.run(["git", *who, *arguments], check=True, capture_output=True)
    with Workspace.open(root, agents=["alice"]) as workspace:
        config = Path(workspace.root, CONTROL, CONFIG_PATH)
        rule = '\n[[policy.rules]]\npath = "secrets/**"\nverdict = "deny"\n'
        config.write_text(config.read_text() + rule)
        workspace.scan()
        with attendant(root):
            client = AttachedClient(root)
            client.hook("SessionStart", source="startup", cwd=str(repository))
            key = {"file_path": str(repository / ".claude/worktrees/a/secrets/key")}
            said = client.hook(
                "PreToolUse", cwd=str(repository), tool_use_id="t1", tool_name="Write", tool_input=key
            )
    assert said is not None
    assert said["hookSpecificOutput"]["permissionDecision"] == "deny"
