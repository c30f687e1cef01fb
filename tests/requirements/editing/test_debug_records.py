"""Debug records by category, and the id that ties them to an operation's rows and answer."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from calls import ok, refused
from watchroom import Json, Toolbox, Workspace
from watchroom.model import Note
from watchroom.platform.debug_log import CATEGORIES, category_logger
from watchroom.texts import LANGUAGES, Language
from watchroom_cli.main import DEBUG_FILE_VARIABLE, DEBUG_VARIABLE, OK, USAGE, main

Records = Callable[[], list[logging.LogRecord]]


@pytest.fixture
def records(caplog: pytest.LogCaptureFixture) -> Records:
    for category in CATEGORIES:
        caplog.set_level(logging.DEBUG, category_logger(category).name)
    return lambda: caplog.records


def told(record: logging.LogRecord) -> dict[str, Any]:
    return record.__dict__


@pytest.fixture
def plan(alice: Toolbox) -> None:
    ok(alice, "collab_write", filepath="plan.md", content="two and two\n" * 4, message="m")
    ok(alice, "open_buffer", source="collab", path="plan.md")


@pytest.mark.usefixtures("plan")
def test_nothing_is_recorded_unless_it_is_wanted(alice: Toolbox, caplog: pytest.LogCaptureFixture) -> None:
    ok(alice, "plan_append", text="three\n")
    ok(alice, "plan_flush")
    assert caplog.records == []
    assert not any(category_logger(each).isEnabledFor(logging.DEBUG) for each in CATEGORIES)


@pytest.mark.usefixtures("plan")
def test_a_match_is_traced_with_its_places(alice: Toolbox, records: Records) -> None:
    refused(alice, "plan_replace", old_text="two", new_text="2")
    ok(alice, "plan_replace_selection", selection_id=2)
    refused(alice, "plan_replace", old_text="nowhere", new_text="2")
    several, chosen, none = map(told, records())
    assert {each.name for each in records()} == {"watchroom.TextEdit.MatchTrace"}
    assert [each["status"] for each in (several, chosen, none)] == ["MultiMatch", "Success", "NoMatch"]
    assert [each["start"] for each in several["matches"]] == [0, 8, 12, 20, 24]
    assert (several["match_count"], several["edition"], several["sought"]) == (8, 1, "two")
    assert [(each["id"], each["start"]) for each in several["contexts"]][:2] == [(1, 0), (2, 0)]
    assert (chosen["matches"], chosen["delta"]) == ([{"start": 8, "end": 11}], -2)
    assert (none["matches"], none["match_count"], none["code"]) == ([], 0, "no_match")
    assert {each["buffer"] for each in (several, chosen, none)} == {"alice/plan"}
    assert all(each["seconds"] > 0 for each in (several, chosen, none))


@pytest.mark.usefixtures("plan")
def test_what_becomes_of_sources_has_categories_of_its_own(
    alice: Toolbox, bob: Toolbox, records: Records
) -> None:
    ok(alice, "plan_append", text="three\n")
    ok(bob, "collab_write", filepath="plan.md", content="other\n", message="m", expected_version=-1)
    refused(alice, "plan_flush")
    ok(alice, "plan_accept_source")
    ok(alice, "plan_append", text="three\n")
    ok(alice, "plan_flush")
    found = [(each.name.removeprefix("watchroom."), told(each)["code"]) for each in records()]
    assert found == [
        ("TextEdit.MatchTrace", "appended"),
        ("Sync.External", "flush_conflict"),
        ("Sync.External", "accepted"),
        ("TextEdit.MatchTrace", "appended"),
        ("Sync.Persistence", "flushed"),
    ]
    assert told(records()[-1])["base_version"] == 3


@pytest.mark.usefixtures("plan")
def test_an_operation_has_one_id_in_its_answer_its_rows_and_its_records(
    workspace: Workspace, alice: Toolbox, records: Records
) -> None:
    calls: list[tuple[str, dict[str, Json], str]] = [
        ("plan_append", {"text": "three\n"}, "buffer"),
        ("plan_replace", {"old_text": "nowhere", "new_text": "x"}, "buffer"),
        ("plan_diff", {}, "buffer"),
        ("plan_flush", {}, "buffer collab"),
    ]
    seen = set()
    for tool, arguments, zones in calls:
        before = workspace.journal.last_seq()
        answer = alice.dispatch_tool_call(tool, arguments)
        workspace.flush()
        made = [row for row in workspace.journal.rows(before, limit=100) if row.tool != "collab_read"]
        assert {row.zone for row in made} == set(zones.split())
        assert {row.detail.get("operation") for row in made} == {answer["operation_id"]}
        assert told(records()[-1])["operation_id"] == answer["operation_id"]
        seen.add(answer["operation_id"])
    assert len(seen) == len(calls)


def test_a_flush_that_fails_is_recorded(alice: Toolbox, root: Path, records: Records) -> None:
    ok(alice, "open_buffer", source="private", path="plan.md")
    ok(alice, "plan_append", text="mine\n")
    (root / "agents/alice/plan.md").write_bytes(b"\xff\0")
    answer = refused(alice, "plan_flush")
    last = records()[-1]
    assert last.name == "watchroom.Sync.Persistence"
    assert (told(last)["code"], told(last)["operation_id"]) == ("flush_failed", answer["operation_id"])


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_answer_that_cannot_be_read_is_told_as_that(
    workspace: Workspace, language: Language, records: Records
) -> None:
    alice = workspace.tools("alice", language=language)
    ok(alice, "open_buffer", source="collab", path="plan.md")
    kept: dict[str, Json] = {"response": {"status": "Splendid"}}
    detail: dict[str, Json] = {**kept, "call": "call-1"}
    workspace.journal.append([Note("alice", "plan_append", "buffer", "alice/plan", detail=detail)])
    answer = alice.dispatch_tool_call("plan_append", {"text": "x"}, call="call-1", again=True)
    assert (answer["success"], answer["error"], answer["status"]) == (False, "schema_violation", "Exception")
    assert "SchemaViolation" in str(answer["flags"])
    assert answer["suggestion"]
    (record,) = records()
    assert record.name == "watchroom.TextEdit.Schema"
    assert told(record)["raw"] == {"status": "Splendid"}


class TestEnvironment:
    """``WATCHROOM_DEBUG_CATEGORIES`` says which records commands write."""

    def call(self, root: Path, tool: str, **arguments: Json) -> int:
        return main(["call", str(root), "alice", tool, json.dumps(arguments)])

    def test_records_are_lines_of_json(
        self, tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file = tmp_path / "debug.jsonl"
        Workspace.open(root, agents=["alice"]).close()
        monkeypatch.setenv(DEBUG_FILE_VARIABLE, str(file))
        monkeypatch.setenv(DEBUG_VARIABLE, "TextEdit.MatchTrace, Sync")
        assert self.call(root, "open_buffer", source="private", path="plan.md") == OK
        assert self.call(root, "plan_append", text="计划\u202e\n") == OK
        assert self.call(root, "plan_flush") == OK
        monkeypatch.delenv(DEBUG_VARIABLE)
        assert self.call(root, "plan_append", text="more\n") == OK
        lines = [json.loads(line) for line in file.read_text(encoding="ascii").splitlines()]
        assert [(each["category"], each["tool"]) for each in lines] == [
            ("TextEdit.MatchTrace", "plan_append"),
            ("Sync.Persistence", "plan_flush"),
        ]

    def test_what_is_no_category_is_refused(
        self, root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setenv(DEBUG_VARIABLE, "TextEdit.Nonsense")
        assert self.call(root, "collab_list") == USAGE
        assert "TextEdit.MatchTrace" in capsys.readouterr().err
