"""``watchroom diff``: the differences between two moments, their authors and sizes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from calls import ok
from cli.running import Captured, misuse, printed, printed_json, row_of
from watchroom import Workspace


@pytest.fixture
def changed(root: Path, workspace: Workspace) -> tuple[str, int]:
    """A workspace, and the row after which paths were created, changed and deleted."""
    alice, bob = workspace.tools("alice"), workspace.tools("bob")
    ok(alice, "collab_write", filepath="docs/plan.md", content="a\nb\nc\n", message="m")
    ok(alice, "save_to_my_workspace", filename="old.md", content="gone\n")
    since = workspace.journal.last_seq()
    ok(bob, "collab_write", filepath="docs/plan.md", content="a\nB\nc\n", message="m", expected_version=1)
    ok(
        alice,
        "collab_write",
        filepath="docs/plan.md",
        content="a\nB\nc\nd\n",
        message="m",
        expected_version=2,
    )
    ok(alice, "collab_write", filepath="docs/new.md", content="x\ny\n", message="m")
    ok(alice, "delete_from_my_workspace", filename="old.md")
    workspace.close()
    return str(root), since


def test_changed_paths_are_listed_with_authors_and_sizes(capsys: Captured, changed: tuple[str, int]) -> None:
    team, since = changed
    found = printed_json(capsys, "diff", team, "--from", str(since), "--json")
    assert found["from"] == since
    by_path = {
        each["path"]: (each["change"], each["before"], each["version"], each["added"], each["removed"])
        for each in found["paths"]
    }
    assert by_path == {
        "docs/new.md": ("created", 0, 1, 2, 0),
        "docs/plan.md": ("changed", 1, 3, 2, 1),
        "alice/old.md": ("deleted", 1, 2, 0, 1),
    }
    assert found["paths"][1]["actors"] == {"bob": 1, "alice": 1}
    lines = printed(capsys, "diff", team, "--from", str(since)).splitlines()
    assert lines[2].split() == ["collab/docs/plan.md", "changed", "2", "2", "1", "bob", "1,", "alice", "1"]


def test_a_patch_turns_the_earlier_moment_into_the_later_one(
    capsys: Captured, tmp_path: Path, changed: tuple[str, int]
) -> None:
    team, since = changed
    before, after = tmp_path / "before", tmp_path / "after"
    printed(capsys, "export", team, str(before), "--at", str(since))
    printed(capsys, "export", team, str(after))
    patch = printed(capsys, "diff", team, "--from", str(since), "--patch")
    subprocess.run(
        ["git", "apply", "-"], input=patch, text=True, cwd=before, check=True, env={"GIT_DIR": "/dev/null"}
    )

    def files(folder: Path) -> dict[str, str]:
        parts = ("agents", "collaborative/current")
        found = [path for part in parts for path in (folder / part).rglob("*") if path.is_file()]
        return {str(path.relative_to(folder)): path.read_text("utf-8") for path in found}

    assert files(before) == files(after)


def test_a_named_path_prints_its_difference(capsys: Captured, changed: tuple[str, int]) -> None:
    team, since = changed
    for name in ("docs/plan.md", "collab/docs/plan.md"):
        said = printed(capsys, "diff", team, name, "--from", str(since))
        assert "-b\n+B\n" in said
        assert "new.md" not in said
    assert "new.md" in printed(capsys, "diff", team, "docs", "--from", str(since))
    assert "docs/plan.md" in printed(capsys, "diff", "docs/plan.md", team, "--from", str(since))
    assert "Unknown path: “doc”" in misuse(capsys, "diff", team, "doc", "--from", str(since))


def test_a_document_is_compared_by_what_it_contains(
    capsys: Captured, root: Path, workspace: Workspace
) -> None:
    alice = workspace.tools("alice")
    ok(alice, "realtime_create_document", doc_id="notes", schema={"body": "rga"})
    edit = {"operation": "insert", "args": {"position": 0, "text": "one\n"}}
    ok(alice, "realtime_edit_text", doc_id="notes", field_name="body", **edit)
    workspace.close()
    team = str(root)
    since = row_of(capsys, team, "realtime_create_document")["seq"]
    assert '+  "one",' in printed(capsys, "diff", team, "notes", "--from", str(since))


def test_a_range_that_runs_backwards_is_wrong_usage(capsys: Captured, changed: tuple[str, int]) -> None:
    team, since = changed
    assert "is later than" in misuse(capsys, "diff", team, "--from", str(since), "--to", "1")
