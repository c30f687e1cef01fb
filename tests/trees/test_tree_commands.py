"""``watchroom changes``, ``blame``, ``commit`` and ``try`` in a repository."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any, Final

import pytest
from cli.running import Captured, misuse, printed, printed_json, run
from jsonschema import Draft202012Validator
from trees.git_repository import Repository
from trees.tree_client import ScriptedClient
from watchroom import Workspace
from watchroom.agents.clients.configuration import AGENT_VARIABLE

_TEXT: Final = {"type": "string"}
_CONTRIBUTOR: Final = {
    "type": "object",
    "required": ["type"],
    "properties": {"type": {"enum": ["human", "ai", "mixed", "unknown"]}, "model_id": _TEXT},
    "additionalProperties": False,
}
_LINE: Final = {"type": "integer", "minimum": 1}
_RANGE: Final = {
    "type": "object",
    "required": ["start_line", "end_line"],
    "properties": {
        "start_line": _LINE,
        "end_line": _LINE,
        "content_hash": _TEXT,
        "contributor": _CONTRIBUTOR,
    },
    "additionalProperties": False,
}
_CONVERSATION: Final = {
    "type": "object",
    "required": ["ranges"],
    "properties": {"contributor": _CONTRIBUTOR, "ranges": {"type": "array", "items": _RANGE}},
    "additionalProperties": False,
}
_FILE: Final = {
    "type": "object",
    "required": ["path", "conversations"],
    "properties": {"path": _TEXT, "conversations": {"type": "array", "items": _CONVERSATION}},
    "additionalProperties": False,
}
AGENT_TRACE: Final = {
    "type": "object",
    "required": ["version", "id", "timestamp", "files"],
    "properties": {
        "version": {"type": "string", "pattern": r"^[0-9]+\.[0-9]+$"},
        "id": {"type": "string", "pattern": "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"},
        "timestamp": {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$"},
        "vcs": {
            "type": "object",
            "required": ["type", "revision"],
            "properties": {"type": {"enum": ["git", "jj", "hg", "svn"]}, "revision": _TEXT},
            "additionalProperties": False,
        },
        "tool": {
            "type": "object",
            "required": ["name", "version"],
            "properties": {"name": _TEXT, "version": _TEXT},
            "additionalProperties": False,
        },
        "files": {"type": "array", "items": _FILE},
        "metadata": {"type": "object"},
    },
    "additionalProperties": False,
}
"""What https://agent-trace.dev/schemas/v1/trace-record.json demands, as far as we write it."""


@pytest.fixture
def worked(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """The repository, in which alice and bob have worked, and then nobody has it open."""
    monkeypatch.delenv(AGENT_VARIABLE, raising=False)
    with Workspace.open(repository.root, agents=["alice", "bob"]) as workspace:
        assert workspace.keep()
        alice = ScriptedClient(workspace, "alice", repository.folder)
        bob = ScriptedClient(workspace, "bob", repository.folder)
        alice.read("a.txt")
        alice.edit("a.txt", "one\n", "ONE\nand more\n")
        bob.bash("echo six >> a.txt; echo new > new.txt; rm b.txt")
    monkeypatch.chdir(repository.folder)
    return repository


def test_changes_are_listed_by_file_with_their_authors(capsys: Captured, worked: Repository) -> None:
    assert printed(capsys, "changes").splitlines() == [
        "M a.txt    alice +2 −1 · ~bob +1",
        "D b.txt    ~bob −1",
        "A new.txt  ~bob +1",
    ]
    (tree,) = printed_json(capsys, "changes", "--json")["trees"]
    assert (tree["branch"], tree["folder"]) == ("main", str(worked.folder))
    assert [(each["path"], each["change"], each["conflict"]) for each in tree["files"]] == [
        ("a.txt", "modified", False),
        ("b.txt", "deleted", False),
        ("new.txt", "added", False),
    ]
    assert tree["files"][0]["authors"][1] == {
        "name": "~bob",
        "actor": "bob",
        "grade": "window",
        "candidates": [],
        "added": 1,
        "removed": 0,
    }


def test_the_last_paths_of_agents_are_names_of_files(capsys: Captured, worked: Repository) -> None:
    agents = printed_json(capsys, "show", ".", "agents", "--json")
    assert [(each["agent"], each["last_path"]) for each in agents] == [("alice", "a.txt"), ("bob", "new.txt")]


def test_edits_that_nobody_has_recorded_yet_are_listed(capsys: Captured, worked: Repository) -> None:
    worked.write("hand.txt", "x\n")
    assert "A hand.txt  external +1" in printed(capsys, "changes")


def test_each_line_is_printed_with_its_author(capsys: Captured, worked: Repository) -> None:
    lines = [line.split() for line in printed(capsys, "blame", "a.txt").splitlines()]
    assert [(line[0], line[-1]) for line in lines] == [
        ("alice", "ONE"),
        ("alice", "more"),
        ("git", "two"),
        ("git", "three"),
        ("git", "four"),
        ("git", "five"),
        ("~bob", "six"),
    ]
    assert "+" in lines[0]
    assert "+" not in lines[2]
    found = printed_json(capsys, "blame", "a.txt", "--json")["lines"]
    assert [(each["actor"], each["grade"], each["version"], each["committed"]) for each in found[:3]] == [
        ("alice", "tool", 2, False),
        ("alice", "tool", 2, False),
        (None, "git", None, True),
    ]


def test_files_without_lines_or_outside_are_refused(
    capsys: Captured, worked: Repository, tmp_path: Path
) -> None:
    assert "not a text file" in misuse(capsys, "blame", "b.txt")
    assert "not in a working tree" in misuse(capsys, "blame", str(tmp_path / "x"))
    assert "--agent-trace" in misuse(capsys, "blame")
    assert "Unknown working tree “elsewhere”" in misuse(capsys, "changes", "--tree", "elsewhere")


def test_authors_of_lines_are_exported_as_an_agent_trace(
    capsys: Captured, worked: Repository, tmp_path: Path
) -> None:
    worked.write("hand.txt", "x\n")
    target = tmp_path / "trace.json"
    status, _, said = run(capsys, "blame", "--agent-trace", str(target))
    assert (status, "3 files" in said) == (0, True)
    record: Any = json.loads(target.read_text(encoding="utf-8"))
    Draft202012Validator(AGENT_TRACE).validate(record)
    assert record["vcs"] == {"type": "git", "revision": worked.git("rev-parse", "HEAD")}
    files = {
        file["path"]: [
            (each["contributor"]["type"], [(one["start_line"], one["end_line"]) for one in each["ranges"]])
            for each in file["conversations"]
        ]
        for file in record["files"]
    }
    assert files == {
        "a.txt": [("ai", [(1, 2)]), ("ai", [(7, 7)])],
        "hand.txt": [("unknown", [(1, 1)])],
        "new.txt": [("ai", [(1, 1)])],
    }
    assert record["metadata"]["dev.watchroom"]["authors"]["a.txt"] == [
        {"name": "alice", "grade": "tool"},
        {"name": "~bob", "grade": "window"},
    ]


def test_a_patch_names_files_by_their_paths_in_the_repository(capsys: Captured, worked: Repository) -> None:
    lines = printed(capsys, "diff", "--patch").splitlines()
    assert {"diff --git a/a.txt b/a.txt", "+++ b/a.txt", "+++ b/new.txt"} <= set(lines)


def test_a_patch_of_several_working_trees_names_the_tree_of_each_file(
    capsys: Captured, worked: Repository, tmp_path: Path
) -> None:
    linked = tmp_path / "linked"
    worked.git("worktree", "add", "--quiet", str(linked))
    with Workspace.open(worked.root) as workspace:
        assert workspace.keep()
        ScriptedClient(workspace, "alice", linked).bash("echo seven >> a.txt")
    lines = printed(capsys, "diff", "--patch").splitlines()
    of_a = sorted(line for line in lines if re.fullmatch(r"\+\+\+ b/\S+/a\.txt", line))
    assert [re.sub("-[0-9a-f]{8}/", "/", line) for line in of_a] == [
        "+++ b/linked/a.txt",
        "+++ b/project/a.txt",
    ]


def test_the_plan_of_a_commit_is_shown_and_nothing_done(capsys: Captured, worked: Repository) -> None:
    before = worked.git("rev-parse", "--all")
    assert printed(capsys, "commit", "bob", "--dry-run").splitlines() == [
        "Commit of bob onto watchroom/bob. Files: 3",
        "  M a.txt  ~bob +1",
        "  D b.txt  ~bob −1",
        "  A new.txt  ~bob +1",
    ]
    assert worked.git("rev-parse", "--all") == before


def test_the_work_of_an_agent_is_committed_to_a_new_branch(capsys: Captured, worked: Repository) -> None:
    out = printed(capsys, "commit", "bob", "-m", "Add six")
    assert "onto watchroom/bob. Files: 3." in out
    assert worked.git("show", "watchroom/bob:a.txt").splitlines()[0] == "one"
    assert worked.git("show", "watchroom/bob:a.txt").splitlines()[-1] == "six"
    assert worked.git("log", "-1", "--format=%s", "watchroom/bob") == "Add six"
    assert worked.git("rev-parse", "--abbrev-ref", "HEAD") == "main"
    printed(capsys, "commit", "bob", "-m", "Once more")
    assert worked.git("log", "-1", "--format=%s", "watchroom/bob-2") == "Once more"


def test_a_commit_onto_the_checked_out_branch_leaves_the_rest_uncommitted(
    capsys: Captured, worked: Repository
) -> None:
    found = printed_json(capsys, "commit", "bob", "-m", "m", "--here", "--json")
    assert found["branch"] == "main"
    assert found["commit"] == worked.git("rev-parse", "HEAD")
    assert printed(capsys, "changes").splitlines() == ["M a.txt  alice +2 −1"]


def test_files_that_build_on_others_work_are_left_out(capsys: Captured, worked: Repository) -> None:
    with Workspace.open(worked.root, create=False) as workspace:
        assert workspace.keep()
        alice = ScriptedClient(workspace, "alice", worked.folder, session="again")
        alice.read("new.txt")
        alice.edit("new.txt", "new", "newer")
    lines = printed(capsys, "commit", "alice", "--dry-run").splitlines()
    assert lines[-2:] == ["Files left out: 1", "  new.txt  builds on uncommitted work of bob"]


def test_a_commit_needs_a_message_and_something_to_commit(capsys: Captured, worked: Repository) -> None:
    status, _, said = run(capsys, "commit", "alice")
    assert (status, "-m MESSAGE" in said) == (2, True)
    printed(capsys, "commit", "alice", "-m", "m", "--here")
    status, _, said = run(capsys, "commit", "alice", "-m", "m")
    assert (status, said) == (1, "Nothing to commit.\n")


def test_an_agent_commits_its_own_work_only(
    capsys: Captured, worked: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(AGENT_VARIABLE, "bob")
    status, _, said = run(capsys, "commit", "alice", "-m", "m")
    assert (status, "bob" in said) == (1, True)
    printed(capsys, "commit", "bob", "-m", "mine", "--here")
    assert worked.git("log", "-1", "--format=%an %s") == "bob mine"
    with Workspace.open(worked.root, create=False) as workspace:
        row = next(row for row in reversed(workspace.journal.rows(0)) if row.tool == "commit_agent")
        assert row.actor == "bob"


def test_a_command_is_tried_on_the_work_of_one_agent(
    capsys: Captured, worked: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    code = (
        "import os; print(open('a.txt').read().split()[-1], os.path.exists('new.txt')); raise SystemExit(3)"
    )
    status, out, said = run(capsys, "try", "alice", "--", sys.executable, "-c", code)
    assert (status, out) == (3, "five False\n")
    assert "Exit status 3" in said


def test_the_commands_need_a_repository(capsys: Captured, tmp_path: Path) -> None:
    Workspace.open(tmp_path / "team").close()
    assert "does not belong to a git repository" in misuse(capsys, "changes", str(tmp_path / "team"))
    assert "does not belong to a git repository" in misuse(
        capsys, "commit", "x", str(tmp_path / "team"), "--dry-run"
    )
