"""Module C: the collaborative zone under version control (FILES)."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from calls import ok, refused
from watchroom import Toolbox, Workspace


@pytest.fixture
def plan(alice: Toolbox) -> str:
    ok(alice, "collab_write", filepath="plan.md", content="初稿", message="创建文档", expected_version=-1)
    return "plan.md"


def current(root: Path) -> str:
    return (root / "collaborative/current/plan.md").read_text(encoding="utf-8")


def test_C_1_create_a_file(root: Path, alice: Toolbox) -> None:
    result = ok(
        alice, "collab_write", filepath="plan.md", content="初稿", message="创建文档", expected_version=-1
    )
    assert result["version"] == 1
    assert current(root) == "初稿"
    (entry,) = ok(alice, "collab_history", filepath="plan.md")["history"]
    assert (entry["version"], entry["author"], entry["message"]) == (1, "alice", "创建文档")


def test_C_2_edit_in_turn(root: Path, bob: Toolbox, plan: str) -> None:
    read = ok(bob, "collab_read", filepath=plan)
    assert (read["version"], read["content"]) == (1, "初稿")
    written = ok(bob, "collab_write", filepath=plan, content="修改稿", message="补充内容", expected_version=1)
    assert written["version"] == 2
    assert current(root) == "修改稿"


def test_C_3_a_stale_write_is_refused_with_everything_to_recover(
    root: Path, workspace: Workspace, alice: Toolbox, bob: Toolbox, plan: str
) -> None:
    ok(alice, "collab_read", filepath=plan)
    ok(bob, "collab_read", filepath=plan)
    ok(alice, "collab_write", filepath=plan, content="Alice的修改", message="a", expected_version=1)
    result = refused(bob, "collab_write", filepath=plan, content="Bob的修改", message="b", expected_version=1)
    assert result["is_conflict"] is True
    assert (result["current_version"], result["base_version"]) == (2, 1)
    assert (result["current_content"], result["current_author"]) == ("Alice的修改", "alice")
    assert result["your_content"] == "Bob的修改"
    assert "2" in result["suggestion"]
    assert "-初稿" in result["missed_changes"]
    assert "+Alice的修改" in result["missed_changes"]
    assert current(root) == "Alice的修改"
    (row,) = workspace.journal.refused("collab", plan)
    assert (row.seq, row.outcome, workspace.journal.content(row.seq)) == (
        result["conflict_id"],
        "conflict",
        "Bob的修改",
    )


def test_C_4_recover_from_a_conflict(root: Path, alice: Toolbox, bob: Toolbox, plan: str) -> None:
    ok(alice, "collab_write", filepath=plan, content="Alice的修改", message="a", expected_version=1)
    refused(bob, "collab_write", filepath=plan, content="Bob的修改", message="b", expected_version=1)
    read = ok(bob, "collab_read", filepath=plan)
    assert (read["version"], read["content"]) == (2, "Alice的修改")
    merged = ok(
        bob, "collab_write", filepath=plan, content="合并后的内容", message="合并", expected_version=2
    )
    assert merged["version"] == 3
    assert current(root) == "合并后的内容"


def test_C_4_recover_from_the_refusal_alone(root: Path, alice: Toolbox, bob: Toolbox, plan: str) -> None:
    """What the refusal says is enough: no reading in between, one more try."""
    ok(alice, "collab_write", filepath=plan, content="初稿\nAlice的修改\n", message="a", expected_version=1)
    told = refused(
        bob, "collab_write", filepath=plan, content="初稿\nBob的修改\n", message="b", expected_version=1
    )
    ok(
        bob,
        "collab_write",
        filepath=plan,
        content=told["current_content"] + "Bob的修改\n",
        message="合并",
        expected_version=told["current_version"],
    )
    assert current(root) == "初稿\nAlice的修改\nBob的修改\n"


def test_C_4_a_person_decides_and_the_loser_is_told_when_it_reads(
    root: Path, workspace: Workspace, alice: Toolbox, bob: Toolbox, plan: str
) -> None:
    ok(alice, "collab_write", filepath=plan, content="Alice的修改", message="a", expected_version=1)
    told = refused(bob, "collab_write", filepath=plan, content="Bob的修改", message="b", expected_version=1)
    ok(
        workspace.tools_for_human("dana"),
        "resolve_conflict",
        filepath=plan,
        content="两者的修改",
        message="合并双方",
        expected_version=2,
        conflicts=[told["conflict_id"]],
    )
    assert current(root) == "两者的修改"
    read = ok(bob, "collab_read", filepath=plan)
    assert (read["version"], read["author"]) == (3, "human:dana")
    assert "合并双方" in read["notice"]


@pytest.fixture
def three_versions(alice: Toolbox, bob: Toolbox, plan: str) -> str:
    ok(bob, "collab_write", filepath=plan, content="二稿", message="second", expected_version=1)
    ok(alice, "collab_write", filepath=plan, content="三稿", message="third", expected_version=2)
    return plan


def test_C_5_history(root: Path, workspace: Workspace, charlie: Toolbox, three_versions: str) -> None:
    history = ok(charlie, "collab_history", filepath=three_versions)["history"]
    assert [(entry["version"], entry["author"], entry["message"]) for entry in history] == [
        (1, "alice", "创建文档"),
        (2, "bob", "second"),
        (3, "alice", "third"),
    ]
    assert history[0]["checksum"] == hashlib.sha256("初稿".encode()).hexdigest()
    assert sorted(entry["timestamp"] for entry in history) == [entry["timestamp"] for entry in history]
    workspace.flush()
    folder = root / "collaborative/.versions/plan.md"
    kept = json.loads((folder / "history.json").read_text(encoding="utf-8"))
    assert [entry["version"] for entry in kept] == [1, 2, 3]
    assert [(folder / f"v{n}.txt").read_text(encoding="utf-8") for n in (1, 2, 3)] == ["初稿", "二稿", "三稿"]


@pytest.mark.parametrize(("language", "message"), [("zh", "回滚到版本1"), ("en", "Rolled back to version 1")])
def test_C_6_roll_back(
    root: Path, workspace: Workspace, three_versions: str, language: str, message: str
) -> None:
    alice = workspace.tools("alice", language=language)  # type: ignore[arg-type]
    result = ok(alice, "collab_rollback", filepath=three_versions, to_version=1)
    assert result["new_version"] == 4
    assert current(root) == "初稿"
    history = ok(alice, "collab_history", filepath=three_versions)["history"]
    assert len(history) == 4
    assert history[-1]["message"] == message


def test_a_rollback_that_expects_an_older_version_is_refused(
    alice: Toolbox, root: Path, three_versions: str
) -> None:
    text = current(root)
    late = refused(alice, "collab_rollback", filepath=three_versions, to_version=1, expected_version=2)
    assert late["is_conflict"]
    assert late["current_version"] == 3
    assert current(root) == text
    result = ok(alice, "collab_rollback", filepath=three_versions, to_version=1, expected_version=3)
    assert result["new_version"] == 4


def test_C_7_read_a_missing_file(alice: Toolbox) -> None:
    assert refused(alice, "collab_read", filepath="nonexistent.md")["error"] == "file_not_found"


def test_C_8_unchecked_write_succeeds_and_says_what_it_wrote_over(
    root: Path, alice: Toolbox, bob: Toolbox, plan: str
) -> None:
    ok(bob, "collab_write", filepath=plan, content="二稿", message="second", expected_version=1)
    result = ok(alice, "collab_write", filepath=plan, content="不检查", message="force", expected_version=-1)
    assert (result["version"], result["overwrote_version"], result["overwrote_author"]) == (3, 2, "bob")
    assert current(root) == "不检查"


def test_expected_version_0_means_not_there_yet(alice: Toolbox, bob: Toolbox) -> None:
    ok(alice, "collab_write", filepath="new.md", content="x", message="m", expected_version=0)
    assert refused(bob, "collab_write", filepath="new.md", content="y", message="m", expected_version=0)[
        "is_conflict"
    ]


def test_left_out_the_expected_version_is_the_one_last_read(alice: Toolbox, bob: Toolbox, plan: str) -> None:
    assert refused(bob, "collab_write", filepath=plan, content="unread", message="m")["is_conflict"]
    assert refused(bob, "collab_write", filepath=plan, content="still unread", message="m")["is_conflict"]
    ok(bob, "collab_read", filepath=plan)
    assert ok(bob, "collab_write", filepath=plan, content="read", message="m")["version"] == 2
    assert ok(bob, "collab_write", filepath=plan, content="own", message="m")["version"] == 3
    assert refused(alice, "collab_write", filepath=plan, content="late", message="m")["is_conflict"]


def test_what_was_last_read_is_remembered_across_processes(root: Path) -> None:
    with Workspace.open(root, agents=["alice", "bob"]) as first:
        ok(first.tools("alice"), "collab_write", filepath="plan.md", content="1", message="m")
        ok(first.tools("bob"), "collab_read", filepath="plan.md")
    with Workspace.open(root) as second:
        assert (
            ok(second.tools("bob"), "collab_write", filepath="plan.md", content="2", message="m")["version"]
            == 2
        )


def test_reading_an_old_version_is_not_being_up_to_date(
    alice: Toolbox, bob: Toolbox, three_versions: str
) -> None:
    assert ok(bob, "collab_read", filepath=three_versions, version=3)["content"] == "三稿"
    assert ok(bob, "collab_read", filepath=three_versions, version=1)["current_version"] == 3
    ok(alice, "collab_write", filepath=three_versions, content="四稿", message="m")
    assert refused(bob, "collab_write", filepath=three_versions, content="x", message="m")["is_conflict"]


def test_a_version_that_never_was(alice: Toolbox, plan: str) -> None:
    assert refused(alice, "collab_read", filepath=plan, version=9)["error"] == "version_not_found"
    assert refused(alice, "collab_rollback", filepath=plan, to_version=9)["error"] == "version_not_found"
    assert refused(alice, "collab_write", filepath=plan, content="x", message="m", expected_version=9)[
        "is_conflict"
    ]


def test_one_name_is_not_both_file_and_folder(alice: Toolbox, plan: str) -> None:
    blocked = refused(
        alice, "collab_write", filepath="plan.md/part.md", content="x", message="m", expected_version=0
    )
    assert blocked["error"] == "path_blocked"
    ok(alice, "collab_write", filepath="folder/part.md", content="x", message="m")
    assert (
        refused(alice, "collab_write", filepath="folder", content="x", message="m")["error"] == "path_blocked"
    )


def test_list_of_files(alice: Toolbox, bob: Toolbox, three_versions: str) -> None:
    ok(bob, "collab_write", filepath="a.md", content="x", message="m")
    files = ok(alice, "collab_list")["files"]
    assert [(each["filepath"], each["version"], each["author"]) for each in files] == [
        ("a.md", 1, "bob"),
        ("plan.md", 3, "alice"),
    ]
