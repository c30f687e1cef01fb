"""Agents are notified once, with their next result, of changes by others to what they have seen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from calls import ok, refused
from projections.folding import PLAN, shared_path, stale_write, write
from watchroom import Toolbox, Workspace
from watchroom.features.config.rows import Agent

READ = 'collab_read {"filepath": "plan.md"}'


def notices(toolbox: Toolbox) -> list[dict[str, Any]]:
    """What the agent's next call reports."""
    found: list[dict[str, Any]] = ok(toolbox, "check_my_handoffs").get("notices", [])
    return found


def test_a_change_of_a_file_that_the_agent_read_is_reported_once(alice: Toolbox, bob: Toolbox) -> None:
    write(alice, "one\ntwo\n", 0)
    ok(bob, "collab_read", filepath=PLAN)
    assert notices(bob) == []
    write(alice, "one\n2\nthree\n", 1)
    expected = {"path": PLAN, "version": 2, "seen": 1, "by": ["alice"], "lines": 2, "call": READ}
    assert notices(bob) == [expected]
    assert notices(bob) == []
    assert notices(alice) == [], "an agent knows its own changes"
    write(alice, "one\n", 2)
    assert [each["seen"] for each in notices(bob)] == [2]


def test_a_refused_call_reports_changes_too(alice: Toolbox, bob: Toolbox) -> None:
    write(alice, "one\n", 0)
    write(bob, "two\n", 1)
    result = refused(alice, "save_to_my_workspace", filename="../x", content="")
    assert [each["path"] for each in result["notices"]] == [PLAN]


def test_what_a_call_returns_is_not_reported(alice: Toolbox, bob: Toolbox) -> None:
    write(alice, "one\n", 0)
    write(bob, "two\n", 1)
    assert "notices" not in ok(alice, "collab_read", filepath=PLAN)
    write(bob, "three\n", 2)
    stale_write(alice, 2)
    assert notices(alice) == [], "the refusal contained the current text"


def test_files_that_the_agent_has_not_seen_are_not_reported(alice: Toolbox, bob: Toolbox) -> None:
    write(bob, "one\n", 0)
    write(bob, "two\n", 1)
    ok(alice, "collab_list")
    assert notices(alice) == []


@pytest.fixture
def team(root: Path) -> Iterator[Workspace]:
    agents = [Agent("lead", layer="top"), Agent("anna", layer="mid")]
    with Workspace.open(root, agents=agents) as workspace:
        yield workspace


def test_boards_and_documents(team: Workspace) -> None:
    lead, anna = team.tools("lead"), team.tools("anna")
    ok(lead, "whiteboard_write", board="global", content="# A\n", message="m", expected_version=0)
    ok(lead, "realtime_create_document", doc_id="d", schema={"n": "pn_counter"})
    ok(anna, "whiteboard_read", board="global")
    ok(anna, "realtime_get_document_snapshot", doc_id="d")
    ok(lead, "whiteboard_append", board="global", content="more")
    ok(lead, "realtime_edit_counter", doc_id="d", field_name="n", operation="increment", amount=1)
    board, document = notices(anna)
    assert (board["path"], board["by"], board["lines"] > 0) == ("global", ["lead"], True)
    assert board["call"] == 'whiteboard_read {"board": "global"}'
    assert (document["path"], document["call"]) == ("d", 'realtime_get_document_snapshot {"doc_id": "d"}')
    assert "lines" not in document


def test_an_append_does_not_hide_what_others_wrote_before(team: Workspace) -> None:
    lead, anna = team.tools("lead"), team.tools("anna")
    ok(lead, "whiteboard_write", board="global", content="# A\n", message="m", expected_version=0)
    ok(anna, "whiteboard_append", board="global", content="from anna")
    result = ok(lead, "whiteboard_append", board="global", content="from lead")
    assert [each["by"] for each in result["notices"]] == [["anna"]]


def test_an_external_edit_that_a_person_accepts_is_reported(
    root: Path, workspace: Workspace, alice: Toolbox
) -> None:
    write(alice, "one\n", 0)
    workspace.flush()
    shared_path(root).write_text("by hand\n")
    workspace.scan()
    dana = workspace.tools_for_human("dana")
    ok(dana, "collab_write", filepath=PLAN, content="by dana\n", message="m", expected_version=1)
    assert [(each["by"], each["version"]) for each in notices(alice)] == [(["human:dana"], 2)]


def test_at_most_five_are_reported_at_a_time(alice: Toolbox, bob: Toolbox) -> None:
    paths = [f"{number}.md" for number in range(7)]
    for path in paths:
        write(alice, "one\n", 0, path)
    for path in paths:
        write(bob, "two\n", 1, path)
    first, second = notices(alice), notices(alice)
    assert (len(first), len(second), notices(alice)) == (5, 2, [])
    assert sorted(each["path"] for each in (*first, *second)) == paths


def test_a_restart_forgets_neither_what_was_seen_nor_what_was_reported(root: Path) -> None:
    with Workspace.open(root, agents=["alice", "bob"]) as workspace:
        alice, bob = workspace.tools("alice"), workspace.tools("bob")
        for path in ("a.md", "b.md"):
            write(alice, "one\n", 0, path)
        write(bob, "two\n", 1, "a.md")
        assert [each["path"] for each in notices(alice)] == ["a.md"]
    with Workspace.open(root) as workspace:
        write(workspace.tools("bob"), "two\n", 1, "b.md")
    with Workspace.open(root) as workspace:
        assert [each["path"] for each in notices(workspace.tools("alice"))] == ["b.md"]
    with Workspace.open(root) as workspace:
        assert notices(workspace.tools("alice")) == []


def test_what_was_seen_long_ago_counts_after_a_restart(root: Path) -> None:
    with Workspace.open(root, agents=["alice", "bob"]) as workspace:
        alice, bob = workspace.tools("alice"), workspace.tools("bob")
        write(alice, "one\n", 0, "own.md")
        write(bob, "one\n", 0, "read.md")
        ok(alice, "collab_read", filepath="read.md")
        for _ in range(1600):
            ok(bob, "check_my_handoffs")
    with Workspace.open(root) as workspace:
        bob = workspace.tools("bob")
        for path in ("own.md", "read.md"):
            write(bob, "two\n", 1, path)
        assert {each["path"] for each in notices(workspace.tools("alice"))} == {"own.md", "read.md"}


def test_a_change_behind_many_rows_is_reported(workspace: Workspace, alice: Toolbox, bob: Toolbox) -> None:
    write(alice, "one\n", 0)
    assert notices(alice) == []
    write(bob, "two\n", 1)
    for _ in range(600):
        ok(bob, "check_my_handoffs")
    workspace.flush()
    assert [each["path"] for each in notices(alice)] == [PLAN]


def test_a_person_switches_notices_off(
    root: Path, alice: Toolbox, bob: Toolbox, workspace: Workspace
) -> None:
    write(alice, "one\n", 0)
    config = root / ".watchroom/config.toml"
    config.write_text("change_notices = false\n" + config.read_text())
    workspace.scan()
    write(bob, "two\n", 1)
    assert notices(alice) == []
    config.write_text(config.read_text().replace("change_notices = false", "change_notices = 3"))
    workspace.scan()
    assert notices(alice) == [], "an invalid config changes nothing"
