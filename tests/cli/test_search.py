"""``watchroom search``: find texts and their places, and report what is not indexed."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from calls import ok
from cli.running import Captured, printed, printed_json, refusal, run
from watchroom import Workspace
from watchroom.history.search.database import INDEX_NAME
from watchroom.kernel.checkout.layout import CONTROL


@pytest.fixture
def team(root: Path, workspace: Workspace) -> str:
    alice, bob = workspace.tools("alice"), workspace.tools("bob")
    ok(alice, "collab_write", filepath="plan.md", content="one\nuse the 数据\n库\n", message="first")
    ok(bob, "save_to_my_workspace", filename="notes.md", content="the \x1b[31m database is red\n")
    workspace.close()
    return str(root)


def test_texts_are_found_with_their_places(capsys: Captured, team: str) -> None:
    (hit,) = printed_json(capsys, "search", team, "数据库", "--json")["hits"]
    assert (hit["actor"], hit["zone"], hit["path"], hit["version"]) == ("alice", "collab", "plan.md", 1)
    assert (hit["line"], [hit["excerpt"][start:end] for start, end in hit["matches"]]) == (2, ["数据\n库"])
    text = printed(capsys, "search", team, "数据库")
    assert "collab plan.md v1:2" in text
    assert "use the «数据⏎库»" in text


def test_agent_zone_and_range_narrow_a_search(capsys: Captured, team: str) -> None:
    def found(*arguments: str) -> list[str]:
        return [
            hit["path"] for hit in printed_json(capsys, "search", team, "the", *arguments, "--json")["hits"]
        ]

    assert found() == ["bob/notes.md", "plan.md"]
    assert found("--agent", "alice") == found("--zone", "collab") == ["plan.md"]
    row = printed_json(capsys, "search", team, "数据库", "--json")["hits"][0]["row"]
    assert found("--from", str(row)) == ["bob/notes.md"]
    assert found("--to", str(row)) == ["plan.md"]


def test_hits_contain_no_control_characters(capsys: Captured, team: str) -> None:
    assert "\x1b" not in printed(capsys, "search", team, "database")


def test_a_search_that_finds_nothing_says_so(capsys: Captured, team: str) -> None:
    assert run(capsys, "search", team, "nowhere") == (0, "", "No hits.\n")


def test_a_search_says_what_it_could_not_index(
    capsys: Captured, team: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("watchroom_cli.history.search._INDEX_SECONDS", 0.0)
    status, _, told = run(capsys, "search", team, "the")
    assert status == 0
    assert "Searched up to row 0 of" in told
    monkeypatch.setattr("watchroom_cli.history.search._INDEX_SECONDS", 10.0)
    monkeypatch.setattr("watchroom.history.search.database._BUSY_SECONDS", 0)
    with closing(sqlite3.connect(Path(team) / CONTROL / INDEX_NAME, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert "could not be indexed" in run(capsys, "search", team, "the")[2]


def test_a_search_without_words_is_refused(capsys: Captured, team: str) -> None:
    assert "has no words" in refusal(capsys, "search", team, "?!")
