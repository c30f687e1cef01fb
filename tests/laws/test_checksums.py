"""Each version is as its checksum says, in the journal and as a file (FILES-3.9); what is not, is named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from calls import ok
from damage import break_content, version_file
from watchroom import Problem, Toolbox, Workspace

PLAN = "plans/plan.md"


@pytest.fixture
def versions(workspace: Workspace, alice: Toolbox) -> list[str]:
    contents = ["one\n", "two\n", "港口 three\n"]
    for number, content in enumerate(contents):
        ok(alice, "collab_write", filepath=PLAN, content=content, message="m", expected_version=number)
    workspace.flush()
    return contents


def found(problems: list[Problem]) -> list[tuple[str, str, int | None]]:
    return [(each.kind, each.path, each.version) for each in problems]


def broken(workspace: Workspace) -> list[tuple[int | None, str]]:
    rows = workspace.journal.history("collab", PLAN)
    return [(each.row.version, each.what) for each in workspace.broken_versions(rows)]


def _changed(file: Path) -> None:
    file.write_text("t w o\n")


def _emptied(file: Path) -> None:
    file.write_text("")


def _removed(file: Path) -> None:
    file.unlink()


DAMAGES = [
    pytest.param(_changed, "differs", id="changed"),
    pytest.param(_emptied, "differs", id="emptied"),
    pytest.param(_removed, "missing", id="removed"),
]


def test_versions_that_are_whole_have_nothing_wrong(workspace: Workspace, versions: list[str]) -> None:
    assert broken(workspace) == []
    assert workspace.verify() == []


@pytest.mark.parametrize(("harm", "what"), DAMAGES)
def test_a_broken_file_of_a_version_is_named_and_mended(
    workspace: Workspace, root: Path, versions: list[str], harm: Callable[[Path], None], what: str
) -> None:
    harm(version_file(root, PLAN, 2))
    assert broken(workspace) == [(2, what)]
    (problem,) = workspace.verify()
    assert (problem.kind, problem.path, problem.version) == ("version", PLAN, 2)
    assert what in problem.what
    assert workspace.repair() == []
    assert version_file(root, PLAN, 2).read_text() == "two\n"
    assert broken(workspace) == []


@pytest.mark.parametrize("content", [b"other\n", b"", b"\xff\xfe", None])
def test_a_broken_content_of_the_journal_is_named_and_the_whole_file_is_left(
    workspace: Workspace, root: Path, versions: list[str], content: bytes | None
) -> None:
    break_content(root, PLAN, 2, content)
    assert broken(workspace) == [(2, "content")]
    version_file(root, PLAN, 1).unlink()
    found_first = workspace.verify()
    assert found(found_first) == [("journal", PLAN, 2), ("version", PLAN, 1)]
    assert "still whole" in found_first[0].what
    (remaining,) = workspace.repair()
    assert (remaining.kind, remaining.path, remaining.version) == ("journal", PLAN, 2)
    assert version_file(root, PLAN, 1).read_text() == "one\n"
    assert version_file(root, PLAN, 2).read_text() == "two\n"


def test_a_version_that_is_broken_in_both_places_is_named_twice_and_nothing_is_made_up(
    workspace: Workspace, root: Path, versions: list[str]
) -> None:
    break_content(root, PLAN, 2, b"other\n")
    version_file(root, PLAN, 2).unlink()
    assert broken(workspace) == [(2, "content"), (2, "missing")]
    remaining = workspace.repair()
    assert found(remaining) == [("journal", PLAN, 2), ("version", PLAN, 2)]
    assert "whole" not in remaining[0].what
    assert not version_file(root, PLAN, 2).exists()


def test_the_current_file_stays_where_the_journal_has_lost_its_content(
    workspace: Workspace, root: Path, versions: list[str]
) -> None:
    break_content(root, PLAN, 3, None)
    version_file(root, PLAN, 1).write_text("x")
    workspace.repair()
    assert (root / "collaborative/current" / PLAN).read_text(encoding="utf-8") == versions[2]


def test_versions_are_mended_where_the_current_file_cannot_be_kept(
    workspace: Workspace, root: Path, versions: list[str]
) -> None:
    current = root / "collaborative/current" / PLAN
    current.write_bytes(b"\xff\xfe\0")
    version_file(root, PLAN, 2).write_text("x")
    assert found(workspace.repair()) == [("file", PLAN, None)]
    assert current.read_bytes() == b"\xff\xfe\0"
    assert version_file(root, PLAN, 2).read_text() == "two\n"


def test_something_else_in_a_versions_place_is_told_and_left(
    workspace: Workspace, root: Path, versions: list[str]
) -> None:
    version_file(root, PLAN, 2).unlink()
    version_file(root, PLAN, 2).mkdir()
    assert broken(workspace) == [(2, "unreadable")]
    assert found(workspace.repair()) == [("version", PLAN, 2)]
    assert version_file(root, PLAN, 2).is_dir()


def test_a_large_content_is_checked_too(workspace: Workspace, root: Path, alice: Toolbox) -> None:
    ok(alice, "collab_write", filepath=PLAN, content="x" * 200_000, message="m", expected_version=0)
    workspace.flush()
    assert broken(workspace) == []
    version_file(root, PLAN, 1).write_text("x" * 199_999 + "y")
    assert broken(workspace) == [(1, "differs")]
