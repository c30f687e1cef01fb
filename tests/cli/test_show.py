"""``watchroom show``: each view, now and at an earlier moment."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli.running import Captured, misuse, printed, printed_json, printed_rows, row_of, run
from clock import JumpingClock
from watchroom.features.overview.model import HANDOFF_OVERDUE_SECONDS
from watchroom_cli.main import OK, USAGE


def test_show_agents(capsys: Captured, team: str) -> None:
    agents = printed_json(capsys, "show", team, "agents", "--json")
    assert [each["agent"] for each in agents] == ["alice", "bob", "charlie"]
    bob = agents[1]
    assert (bob["rows"], bob["refused"], bob["status"], bob["last_path"]) == (3, 2, "running", "../x")
    assert agents[2]["rows"] == 0
    head, *lines = printed(capsys, "show", team, "agents").splitlines()
    assert head.startswith("agent ")
    assert head.split()[-4:] == ["ago", "operations", "refused", "check"]
    assert len(lines) == 3
    for name in ("layer", "status"):
        assert {line[head.index(name) - 1] for line in lines} == {" "}, "columns stand beneath their names"


@pytest.mark.parametrize("command", ["show agents --json", "log --json", "usage --json", "verify"])
def test_the_default_is_the_nearest_workspace(
    capsys: Captured, team: str, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    name, *view = command.split()
    told = printed(capsys, name, team, *view)
    monkeypatch.chdir(next(each for each in Path(team).iterdir() if each.is_dir()))
    assert printed(capsys, name, *view) == told


def test_without_a_folder_and_a_workspace_search_is_refused(
    capsys: Captured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = misuse(capsys, "show", "agents")
    assert "no workspace in this folder or above" in said
    assert "watchroom show [DIR] [VIEW]" in said


@pytest.mark.sqlite("A server has its own clock.")
def test_show_needs(capsys: Captured, team: str, monkeypatch: pytest.MonkeyPatch) -> None:
    needs = printed_json(capsys, "show", team, "needs", "--json")
    assert [(each["kind"], each["path"]) for each in needs] == [("conflict", "plan.md")]
    with monkeypatch.context() as patched:
        JumpingClock(patched).ahead = int((HANDOFF_OVERDUE_SECONDS + 1) * 1e9)
        late = printed_json(capsys, "show", team, "needs", "--json")
    assert [(each["kind"], each["path"]) for each in late] == [
        ("conflict", "plan.md"),
        ("handoff", "alice_to_bob/raw.md"),
    ]
    assert needs[0]["what"] == "bob ↔ alice"
    assert "bob ↔ alice" in printed(capsys, "show", team, "needs")


def test_show_handoffs(capsys: Captured, team: str) -> None:
    (handoff,) = printed_json(capsys, "show", team, "handoffs", "--json")
    assert (handoff["from"], handoff["to"], handoff["file"]) == ("alice", "bob", "raw.md")
    assert (handoff["message"], handoff["read"], handoff["acknowledged"]) == ("for you", False, False)
    printed(capsys, "call", team, "bob", "acknowledge_handoff", '{"from_agent":"alice","filename":"raw.md"}')
    (handoff,) = printed_json(capsys, "show", team, "handoffs", "--json")
    assert handoff["acknowledged"] is True


def test_show_files(capsys: Captured, team: str) -> None:
    (file,) = printed_json(capsys, "show", team, "files", "--json")
    assert (file["path"], file["version"], file["author"], file["conflicts"]) == ("plan.md", 2, "alice", 1)


def test_show_documents(capsys: Captured, team: str) -> None:
    on = json.dumps({"doc_id": "board", "schema": {"title": "lww_register"}})
    run(capsys, "call", team, "alice", "realtime_create_document", on)
    wanted = json.dumps({"doc_id": "board", "field_name": "title", "value": "Sprint 1"})
    run(capsys, "call", team, "bob", "realtime_set_field", wanted)
    (line,) = printed_json(capsys, "show", team, "documents", "--json")
    assert (line["document"], line["version"], line["created_by"]) == ("board", 2, "alice")
    assert (line["writers"], line["last"]) == ("bob, alice", 'title = "Sprint 1"')


def test_show_boards(capsys: Captured, team: str) -> None:
    wanted = json.dumps({"board": "bottom-layer-alice", "content": "Begun."})
    run(capsys, "call", team, "alice", "whiteboard_append", wanted)
    boards = printed_json(capsys, "show", team, "boards", "--json")
    names = ["global", "top-layer", "bottom-layer-alice", "bottom-layer-bob", "bottom-layer-charlie"]
    assert [each["board"] for each in boards] == names
    mine = boards[2]
    assert (mine["owners"], mine["version"], mine["author"], mine["message"]) == (
        "alice",
        1,
        "alice",
        "Begun.",
    )
    assert (mine["held_by"], boards[3]["version"]) == ("", 0)


def test_show_at_an_earlier_row_or_time_shows_that_moment(capsys: Captured, team: str) -> None:
    first = row_of(capsys, team, "collab_write")
    (file,) = printed_json(capsys, "show", team, "files", "--json", "--at", str(first["seq"]))
    assert (file["version"], file["conflicts"]) == (1, 0)
    assert printed_json(capsys, "show", team, "needs", "--json", "--at", str(first["seq"])) == []
    assert printed_json(capsys, "show", team, "agents", "--json", "--at", "1999-12-31T00:00:00Z") == []
    (now,) = printed_json(capsys, "show", team, "files", "--json", "--at", "2999-01-01T00:00:00+00:00")
    assert now["version"] == 2


def test_a_future_row_is_wrong_usage_and_the_newest_is_named(capsys: Captured, team: str) -> None:
    newest = printed_rows(capsys, "log", team, "--json")[-1]["seq"]
    message = misuse(capsys, "show", team, "files", "--at", "999999")
    assert "999999" in message
    assert str(newest) in message


def test_show_of_an_unknown_view_or_moment_is_wrong_usage(capsys: Captured, team: str) -> None:
    assert "agents" in misuse(capsys, "show", team, "everything")
    for given in ("soon", "-3", "1.5"):
        assert given in misuse(capsys, "show", team, "files", f"--at={given}")


def test_a_non_ascii_digit_is_wrong_usage(capsys: Captured, team: str) -> None:
    assert "²" in misuse(capsys, "show", team, "files", "--at", "²")


def test_a_time_too_far_off_to_be_counted_is_no_crash(capsys: Captured, team: str) -> None:
    for given in ("2999-01-01T00:00:00Z", "0001-01-01T00:00:00"):
        status, _, _ = run(capsys, "log", team, "--since", given)
        assert status in (OK, USAGE)
