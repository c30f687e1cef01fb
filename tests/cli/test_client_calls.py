"""Commands count and list calls of clients' own tools like other operations."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli.running import Captured, printed, printed_json
from projections.test_client_calls import begin, call, edit
from watchroom import Workspace
from watchroom.texts import Language
from watchroom_cli.plain.sentences import row_sentence
from watchroom_tui.presentation.localization import load_texts

HOSTILE = "src/[a](http:x)|`b`*c*\x1b[2J.py"


@pytest.fixture
def team(root: Path) -> str:
    with Workspace.open(root, agents=["alice", "bob"]) as workspace:
        session = begin(workspace)
        edit(session, 1, f"/project/{HOSTILE}")
        call(session, 2, "Bash", command="git push", refusal="rejected", result="Not now.", is_error=True)
    return str(root)


def test_show_lists_calls_and_edited_files(capsys: Captured, team: str) -> None:
    (alice, bob) = printed_json(capsys, "show", team, "agents", "--json")
    assert (alice["last_tool"], alice["last_path"], alice["rows"], alice["refused"]) == (
        "Bash",
        "git push",
        2,
        1,
    )
    assert (bob["last_tool"], bob["rows"]) == ("", 0)
    (file,) = printed_json(capsys, "show", team, "files", "--json")
    assert (file["path"], file["version"], file["author"], file["client_edits"]) == (
        HOSTILE,
        None,
        "alice",
        1,
    )
    assert "\x1b" not in printed(capsys, "show", team, "files")


def test_show_of_a_moment_has_the_calls_so_far(capsys: Captured, team: str) -> None:
    with Workspace.open(team, create=False, scan=False) as workspace:
        last = workspace.journal.last_seq()
    (alice, _) = printed_json(capsys, "show", team, "agents", "--at", str(last - 1), "--json")
    assert (alice["last_tool"], alice["rows"], alice["refused"]) == ("Edit", 1, 0)


def test_log_lists_calls_and_finds_refused_ones(capsys: Captured, team: str) -> None:
    lines = printed(capsys, "log", team, "--agent", "alice").splitlines()
    assert ["Edit" in lines[0], "git push" in lines[1], "rejected  Not now." in lines[1]] == [True] * 3
    (refused,) = printed(capsys, "log", team, "--outcome", "denied").splitlines()
    assert refused == lines[1]


def test_a_report_counts_calls_and_quotes_refused_ones(capsys: Captured, team: str) -> None:
    found = printed_json(capsys, "report", team, "--format", "json")
    (alice,) = [each for each in found["actors"] if each["actor"] == "alice"]
    assert (alice["client_calls"], alice["client_edits"], alice["refused"]) == (2, 1, 1)
    assert "| `git push` | `denied: rejected` |" in printed(capsys, "report", team)


def test_a_dry_run_of_a_revert_lists_the_edits_that_stay(capsys: Captured, team: str) -> None:
    shown = printed(capsys, "revert", team, "--agent", "alice", "--since", "1", "--dry-run")
    assert "Not reverted: 1 × edits by clients' own tools" in shown
    assert "◇ src/[a](http:x)|`b`*c*␛[2J.py  alice ×1" in shown
    found = printed_json(capsys, "revert", team, "--agent", "alice", "--since", "1", "--dry-run", "--json")
    assert found["client_edits"] == [{"agent": "alice", "path": HOSTILE, "folder": "/project", "times": 1}]


@pytest.mark.parametrize(("language", "refused"), [("en", "refused as rejected"), ("zh", "rejected")])
def test_a_sentence_for_each_call(team: str, language: Language, refused: str) -> None:
    with Workspace.open(team, create=False, scan=False) as workspace:
        rows = [row for row in workspace.journal.rows() if row.tool.startswith("client_call")]
    edited, denied = (row_sentence(row, load_texts(language)) for row in rows)
    assert "Edit src/" in edited
    assert "\x1b" not in edited
    assert "git push" in denied
    assert refused in denied
    assert "Not now." in denied
