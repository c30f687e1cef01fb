"""Module A: the private workspace (FILES)."""

from __future__ import annotations

from pathlib import Path

import pytest
from calls import ok, refused
from watchroom import Toolbox, Workspace
from watchroom.errors import PermissionDenied
from watchroom.kernel.call_context import CallContext


def test_A_1_save_to_own_workspace(root: Path, alice: Toolbox) -> None:
    ok(alice, "save_to_my_workspace", filename="notes.md", content="Hello World")
    assert (root / "agents/alice/notes.md").read_text() == "Hello World"


def test_A_2_replace_own_file(root: Path, alice: Toolbox) -> None:
    ok(alice, "save_to_my_workspace", filename="notes.md", content="旧内容")
    ok(alice, "save_to_my_workspace", filename="notes.md", content="新内容")
    assert (root / "agents/alice/notes.md").read_text(encoding="utf-8") == "新内容"


def test_A_3_read_own_file(alice: Toolbox) -> None:
    ok(alice, "save_to_my_workspace", filename="notes.md", content="我的笔记")
    assert ok(alice, "read_from_workspace", agent_id="alice", filename="notes.md")["content"] == "我的笔记"


def test_A_4_read_another_agents_file(alice: Toolbox, bob: Toolbox) -> None:
    ok(bob, "save_to_my_workspace", filename="report.md", content="Bob的报告")
    assert ok(alice, "read_from_workspace", agent_id="bob", filename="report.md")["content"] == "Bob的报告"


def test_A_5_writing_to_another_agents_workspace_is_refused(
    root: Path, workspace: Workspace, alice: Toolbox
) -> None:
    for actor, owner in (("alice", "bob"), ("bob", "alice")):
        with pytest.raises(PermissionDenied):
            workspace.private.write(CallContext(actor, "save_to_my_workspace"), owner, "x.md", "mine now")
    for filename in ("../bob/x.md", "../../agents/bob/x.md", str(root / "agents/bob/x.md")):
        assert (
            refused(alice, "save_to_my_workspace", filename=filename, content="mine now")["error"]
            == "invalid_path"
        )
    assert list((root / "agents/bob").iterdir()) == []


def test_A_6_read_a_missing_file(alice: Toolbox) -> None:
    result = refused(alice, "read_from_workspace", agent_id="alice", filename="nonexistent.md")
    assert result["error"] == "file_not_found"
    assert "nonexistent.md" in result["message"]


def test_A_7_list_files(alice: Toolbox) -> None:
    for filename in ("c.json", "a.md", "b.txt"):
        ok(alice, "save_to_my_workspace", filename=filename, content="x")
    assert ok(alice, "list_workspace_files", agent_id="alice")["files"] == ["a.md", "b.txt", "c.json"]


def test_A_8_list_an_empty_workspace(alice: Toolbox) -> None:
    assert ok(alice, "list_workspace_files", agent_id="bob")["files"] == []


def test_delete_own_file(root: Path, alice: Toolbox) -> None:
    """FILES-1.2."""
    ok(alice, "save_to_my_workspace", filename="deep/notes.md", content="x")
    ok(alice, "delete_from_my_workspace", filename="deep/notes.md")
    assert not (root / "agents/alice/deep").exists()
    assert refused(alice, "delete_from_my_workspace", filename="deep/notes.md")["error"] == "file_not_found"
    ok(alice, "save_to_my_workspace", filename="deep/notes.md", content="again")
    assert ok(alice, "read_from_workspace", agent_id="alice", filename="deep/notes.md")["content"] == "again"
