"""Agents are notified once, with their next result, of changes by others to what they have seen."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from calls import ok, refused
from evidence import all_rows
from projections.folding import PLAN, denied, needs, shared_path, stale_write, write
from watchroom import Toolbox, Workspace
from watchroom.features.config.rows import Agent
from watchroom.model import Row, Write

READ = 'collab_read {"filepath": "plan.md"}'


def notices(toolbox: Toolbox) -> list[dict[str, Any]]:
    """What the agent's next call reports."""
    found: list[dict[str, Any]] = ok(toolbox, "check_my_handoffs").get("notices", [])
    return found


def rows_with_notices(workspace: Workspace) -> list[Row]:
    workspace.flush()
    return [row for row in all_rows(workspace.journal) if "notices" in row.detail]


def test_a_change_of_a_file_that_the_agent_read_is_reported_once(alice: Toolbox, bob: Toolbox) -> None:
    write(alice, "one\ntwo\n", 0)
    ok(bob, "collab_read", filepath=PLAN)
    assert notices(bob) == []
    write(alice, "one\n2\nthree\n", 1)
    expected = {"zone": "collab", "path": PLAN, "version": 2, "seen": 1, "by": ["alice"], "call": READ}
    assert notices(bob) == [expected]
    assert notices(bob) == []
    assert notices(alice) == [], "an agent knows its own changes"
    write(alice, "one\n", 2)
    assert [(each["version"], each["seen"]) for each in notices(bob)] == [(3, 1)], "it read only version 1"


def test_the_row_of_the_call_records_the_notices(workspace: Workspace, alice: Toolbox, bob: Toolbox) -> None:
    write(alice, "one\n", 0)
    write(bob, "two\n", 1)
    workspace.flush()
    before = workspace.journal.last_seq()
    given = notices(alice)
    (row,) = rows_with_notices(workspace)
    assert (row.actor, row.tool, row.detail["notices"]) == ("alice", "check_my_handoffs", given)
    assert workspace.journal.last_seq() == before + 1, "a notice is no operation of its own"


def test_a_refused_call_reports_changes_and_stays_in_its_series(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    write(alice, "one\n", 0)
    denied(alice, 2)
    write(bob, "two\n", 1)
    result = refused(alice, "save_to_my_workspace", filename="../x", content="")
    assert [each["path"] for each in result["notices"]] == [PLAN]
    denied(alice, 1)
    assert [(each.row.actor, each.times) for each in needs(workspace, "denied")] == [("alice", 4)]


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
    ok(alice, "collab_read", filepath=PLAN, version=1)
    assert notices(alice) == [], "an old version is not what the agent knows"


def test_a_deleted_file_is_reported(workspace: Workspace, alice: Toolbox) -> None:
    write(alice, "one\n", 0)
    workspace.journal.append([Write("bob", "collab_delete", "collab", PLAN, None, expected=1)])
    (notice,) = notices(alice)
    assert notice["deleted"]
    assert "call" not in notice


def test_a_name_from_an_agent_is_quoted_in_the_call(alice: Toolbox, bob: Toolbox) -> None:
    path = 'a "b"}[red] 计划.md'
    write(alice, "one\n", 0, path)
    write(bob, "two\n", 1, path)
    tool, _, arguments = notices(alice)[0]["call"].partition(" ")
    assert ok(alice, tool, **json.loads(arguments))["content"] == "two\n"


def test_a_call_without_a_row_leaves_notices_to_the_next(alice: Toolbox, bob: Toolbox) -> None:
    write(alice, "one\n", 0)
    write(bob, "two\n", 1)
    assert "notices" not in ok(alice, "list_plans")
    assert "notices" not in refused(alice, "collab_read")
    assert [each["path"] for each in notices(alice)] == [PLAN]


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
    ok(anna, "realtime_get_field", doc_id="d", field_name="n")
    ok(lead, "whiteboard_append", board="global", content="more")
    ok(lead, "realtime_edit_counter", doc_id="d", field_name="n", operation="increment", amount=1)
    board, document = notices(anna)
    assert (board["path"], board["by"]) == ("global", ["lead"])
    assert board["call"] == 'whiteboard_read {"board": "global"}'
    assert (document["path"], document["call"]) == ("d", 'realtime_get_document_snapshot {"doc_id": "d"}')
    assert notices(anna) == []


def test_a_section_that_was_read_counts_as_its_board(team: Workspace) -> None:
    lead, anna = team.tools("lead"), team.tools("anna")
    ok(lead, "whiteboard_update_section", board="global", section="Milestones", content="one")
    ok(anna, "whiteboard_read", board="global", section="Milestones")
    ok(lead, "whiteboard_update_section", board="global", section="Milestones", content="two")
    assert [each["path"] for each in notices(anna)] == ["global"]


def test_an_append_does_not_hide_what_others_wrote_before(team: Workspace) -> None:
    lead, anna = team.tools("lead"), team.tools("anna")
    ok(lead, "whiteboard_write", board="global", content="# A\n", message="m", expected_version=0)
    ok(anna, "whiteboard_append", board="global", content="from anna")
    result = ok(lead, "whiteboard_append", board="global", content="from lead")
    assert [each["by"] for each in result["notices"]] == [["anna"]]
    ok(lead, "whiteboard_append", board="global", content="more from lead")
    assert notices(lead) == []


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


def test_people_get_no_notices(workspace: Workspace, alice: Toolbox) -> None:
    dana = workspace.tools_for_human("dana")
    ok(dana, "collab_write", filepath=PLAN, content="one\n", message="m", expected_version=0)
    write(alice, "two\n", 1)
    assert "notices" not in ok(dana, "collab_list")


def test_at_most_five_are_reported_at_a_time(alice: Toolbox, bob: Toolbox) -> None:
    paths = [f"{number}.md" for number in range(7)]
    for path in paths:
        write(alice, "one\n", 0, path)
    for path in paths:
        write(bob, "two\n", 1, path)
    first, second = ok(alice, "check_my_handoffs"), ok(alice, "check_my_handoffs")
    assert (len(first["notices"]), first["notices_left"]) == (5, 2)
    assert (len(second["notices"]), "notices_left" in second) == (2, False)
    assert notices(alice) == []
    assert [each["path"] for each in (*first["notices"], *second["notices"])] == paths


def test_calls_at_the_same_time_report_a_change_once(alice: Toolbox, bob: Toolbox) -> None:
    write(alice, "one\n", 0)
    for version in range(1, 6):
        write(bob, f"{version}\n", version)
        with ThreadPoolExecutor(4) as pool:
            found = [each for each in pool.map(notices, [alice] * 4) if each]
        assert [[notice["version"] for notice in each] for each in found] == [[version + 1]]


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
        alice, bob = workspace.tools("alice"), workspace.tools("bob")
        for path in ("own.md", "read.md"):
            write(bob, "two\n", 1, path)
        assert {each["path"] for each in notices(alice)} == {"own.md", "read.md"}
    with Workspace.open(root) as workspace:
        assert notices(workspace.tools("alice")) == []


def test_a_change_behind_many_rows_is_reported(workspace: Workspace, alice: Toolbox, bob: Toolbox) -> None:
    write(alice, "one\n", 0)
    assert notices(alice) == []
    write(bob, "two\n", 1)
    for _ in range(600):
        ok(bob, "check_my_handoffs")
    workspace.flush()
    assert [each["path"] for each in notices(alice)] == [PLAN]


def test_a_repeated_call_returns_the_notices_of_its_first_run(alice: Toolbox, bob: Toolbox) -> None:
    write(alice, "one\n", 0)
    write(bob, "two\n", 1)
    save: dict[str, Any] = {"filename": "a.md", "content": "x"}
    given = alice.dispatch_tool_call("save_to_my_workspace", save, call="one")["notices"]
    assert given
    assert alice.dispatch_tool_call("save_to_my_workspace", save, call="one", again=True)["notices"] == given
    assert notices(alice) == []


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
    config.write_text(config.read_text().replace("change_notices = 3", "change_notices = true"))
    workspace.scan()
    ok(alice, "collab_list")
    assert [each["version"] for each in notices(alice)] == [2]
