"""``watchroom call``: call a tool as an agent would, and print its result."""

from __future__ import annotations

import io
import json
import subprocess
from pathlib import Path

import pytest
from cli.running import Captured, as_typed, printed_json, refusal, run, spawned
from watchroom import Workspace
from watchroom_cli.main import OK, REFUSED


def test_call_prints_the_result_and_ends_with_0(capsys: Captured, team: str) -> None:
    arguments = json.dumps({"filename": "x.md", "content": "héllo 世界"})
    result = printed_json(capsys, "call", team, "alice", "save_to_my_workspace", arguments)
    assert result["success"] is True
    assert Path(team, "agents/alice/x.md").read_text(encoding="utf-8") == "héllo 世界"


def test_call_without_arguments_passes_none(capsys: Captured, team: str) -> None:
    assert printed_json(capsys, "call", team, "alice", "collab_list")["count"] == 1


def test_call_reads_its_arguments_from_standard_input(
    capsys: Captured, team: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO('{"filepath": "plan.md"}'))
    assert printed_json(capsys, "call", team, "bob", "collab_read", "-")["content"] == "two"


def test_call_reads_a_long_text_from_a_real_pipe(team: str) -> None:
    text = "字" * 100_000
    given = json.dumps({"filename": "long.md", "content": text}, ensure_ascii=False)
    done = spawned("call", team, "alice", "save_to_my_workspace", "-", given=given)
    assert (done.returncode, done.stderr) == (OK, "")
    assert Path(team, "agents/alice/long.md").read_text(encoding="utf-8") == text


@pytest.mark.parametrize(
    ("arguments", "closed", "status", "printed"),
    [("-", "<&-", REFUSED, "invalid_arguments"), ("{}", ">&-", OK, ""), ("{}", "<&- >&- 2>&-", OK, "")],
)
def test_a_closed_standard_input_is_empty(
    team: str, arguments: str, closed: str, status: int, printed: str
) -> None:
    command = as_typed("call", team, "alice", "collab_list", arguments)
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {closed}', "sh", *command], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr, printed in done.stdout) == (status, "", True)


def test_a_refused_call_prints_its_result_and_ends_with_1(capsys: Captured, team: str) -> None:
    arguments = json.dumps({"filepath": "plan.md", "content": "later", "message": "m", "expected_version": 1})
    status, out, err = run(capsys, "call", team, "bob", "collab_write", arguments)
    result = json.loads(out)
    assert (status, err) == (REFUSED, "")
    assert (result["success"], result["is_conflict"], result["current_content"]) == (False, True, "two")


def test_a_call_that_needs_an_approval_waits_for_nobody_and_is_refused(capsys: Captured, team: str) -> None:
    config = Path(team, ".watchroom/config.toml")
    config.write_text(config.read_text() + '\n[[policy.rules]]\ntool = ["collab_write"]\nverdict = "ask"\n')
    arguments = json.dumps({"filepath": "new.md", "content": "x", "message": "m"})
    status, out, _ = run(capsys, "call", team, "bob", "collab_write", arguments)
    assert (status, json.loads(out)["error"]) == (REFUSED, "policy_approval_required")
    with Workspace.open(team) as workspace:
        assert list(workspace.journal.heads("request")) == []
        assert workspace.journal.head("collab", "new.md") is None


@pytest.mark.parametrize(
    ("tool", "arguments", "error"),
    [
        ("collab_read", "{not json", "invalid_arguments"),
        ("collab_read", "[]", "invalid_arguments"),
        ("collab_read", "{}", "invalid_arguments"),
        ("no_such_tool", "{}", "unknown_tool"),
        ("collab_read", '{"filepath": "../../etc/passwd"}', "invalid_path"),
    ],
)
def test_invalid_calls_are_refused_with_the_errors_for_agents(
    capsys: Captured, team: str, tool: str, arguments: str, error: str
) -> None:
    status, out, _ = run(capsys, "call", team, "bob", tool, arguments)
    result = json.loads(out)
    assert (status, result["success"], result["error"]) == (REFUSED, False, error)
    assert result["suggestion"]


def test_call_for_an_unknown_agent_lists_the_known_ones(capsys: Captured, team: str) -> None:
    message = refusal(capsys, "call", team, "mallory", "collab_list")
    assert "Unknown agent 'mallory'." in message
    assert "alice, bob, charlie" in message
