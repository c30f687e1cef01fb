"""Module I: documents as a whole (FILES)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from calls import ok, refused
from memory_journal import MemoryJournal
from watchroom import Toolbox, Workspace

SCHEMA = {
    "title": "lww_register",
    "body": "rga",
    "members": "or_set",
    "settings": "lww_map",
    "view_count": "pn_counter",
}


@pytest.fixture
def board(alice: Toolbox, bob: Toolbox) -> dict[str, object]:
    """The document of I-2, with the values that it has."""
    ok(alice, "realtime_create_document", doc_id="board", schema=SCHEMA)
    on = {"doc_id": "board"}
    ok(alice, "realtime_set_field", **on, field_name="title", value="看板")
    body = {"position": 0, "text": "描述"}
    ok(bob, "realtime_edit_text", **on, field_name="body", operation="insert", args=body)
    for name in ("alice", "bob"):
        ok(bob, "realtime_edit_set", **on, field_name="members", operation="add", element=name)
    ok(alice, "realtime_set_field", **on, field_name="settings", key="theme", value="dark")
    ok(alice, "realtime_edit_counter", **on, field_name="view_count", operation="increment", amount=5)
    return {
        "title": "看板",
        "body": "描述",
        "members": ["alice", "bob"],
        "settings": {"theme": "dark"},
        "view_count": 5,
    }


def test_I_1_create_a_document_of_all_types(alice: Toolbox) -> None:
    created = ok(alice, "realtime_create_document", doc_id="board", schema=SCHEMA)
    assert created["field_types"] == SCHEMA


def test_I_2_a_snapshot_holds_every_field(alice: Toolbox, board: dict[str, object]) -> None:
    found = ok(alice, "realtime_get_document_snapshot", doc_id="board")
    assert found["snapshot"] == board
    assert found["field_types"] == SCHEMA


def test_I_3_an_unknown_document_is_named(alice: Toolbox, board: object) -> None:
    result = refused(alice, "realtime_get_document_snapshot", doc_id="nonexistent")
    assert result["error"] == "document_not_found"
    assert "board" in result["suggestion"]


def test_I_4_an_unknown_field_is_named(alice: Toolbox, board: object) -> None:
    result = refused(alice, "realtime_set_field", doc_id="board", field_name="color", value="red")
    assert result["error"] == "field_not_found"
    assert "title" in result["suggestion"]


def test_I_5_an_operation_of_another_type_is_refused(alice: Toolbox, board: object) -> None:
    args = {"position": 0, "text": "x"}
    on = {"doc_id": "board", "field_name": "title"}
    result = refused(alice, "realtime_edit_text", **on, operation="insert", args=args)
    assert result["error"] == "wrong_field_type"
    assert "has the type lww_register, not rga" in result["message"]


def test_I_6_a_document_outlives_its_process(
    root: Path, workspace: Workspace, board: dict[str, object]
) -> None:
    workspace.flush()
    file = root / "realtime/.crdt_state/board.crdt.json"
    assert file.exists()
    workspace.close()
    # Of what is in memory, the rows are all that is left.
    kept = workspace.journal if isinstance(workspace.journal, MemoryJournal) else None
    with Workspace.open(root, journal=kept) as again:
        found = ok(again.tools("bob"), "realtime_get_document_snapshot", doc_id="board")
        assert found["snapshot"] == board


def test_I_6_the_file_is_there_at_once_and_can_be_read(
    root: Path, workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    ok(alice, "realtime_create_document", doc_id="board", schema=SCHEMA)
    workspace.flush()
    file = root / "realtime/.crdt_state/board.crdt.json"
    assert json.loads(file.read_text())["values"]["title"] is None
    ok(bob, "realtime_set_field", doc_id="board", field_name="title", value="看板")
    workspace.flush()
    kept = json.loads(file.read_text())
    assert (kept["values"]["title"], kept["version"], kept["by"]) == ("看板", 2, "bob")


def test_a_document_is_created_once(alice: Toolbox, bob: Toolbox, board: dict[str, object]) -> None:
    result = refused(bob, "realtime_create_document", doc_id="board", schema={"other": "rga"})
    assert result["error"] == "document_exists"
    assert "alice" in result["message"]
    assert ok(bob, "realtime_get_document_snapshot", doc_id="board")["snapshot"] == board


def test_a_refused_creation_is_one_row(
    workspace: Workspace, alice: Toolbox, bob: Toolbox, board: object
) -> None:
    before = workspace.journal.last_seq()
    refused(bob, "realtime_create_document", doc_id="board", schema={"other": "rga"})
    (row,) = workspace.journal.rows(before)
    assert (row.actor, row.outcome, row.error, row.path) == ("bob", "failed", "document_exists", "board")
    assert json.loads(workspace.journal.content(row.seq) or "")["schema"] == {"other": "rga"}


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("realtime_set_field", {"field_name": "color", "value": {"red": "钥匙"}}),
        (
            "realtime_edit_text",
            {"field_name": "title", "operation": "insert", "args": {"position": 0, "text": "钥匙"}},
        ),
        ("realtime_edit_text", {"field_name": "body", "operation": "append", "args": {"text": "钥匙"}}),
        ("realtime_edit_set", {"field_name": "body", "operation": "add", "element": "钥匙"}),
    ],
)
def test_what_was_refused_is_kept(
    workspace: Workspace, alice: Toolbox, board: object, tool: str, arguments: dict[str, object]
) -> None:
    refused(alice, tool, doc_id="board", **arguments)
    row = workspace.journal.rows_before(workspace.journal.last_seq() + 1, limit=1)[0]
    assert row.outcome in ("denied", "failed")
    kept = json.loads(workspace.journal.content(row.seq) or "")
    assert kept == {"doc_id": "board", **arguments}


@pytest.mark.parametrize("doc_id", ["../board", "a/b", "", ".crdt_state", "a\x1b[31m", "con"])
def test_a_name_that_leaves_the_folder_is_refused(alice: Toolbox, doc_id: str) -> None:
    refused(alice, "realtime_create_document", doc_id=doc_id, schema=SCHEMA)


@pytest.mark.parametrize("schema", [{}, {"title": "text"}, {"a/b": "rga"}, [], "title"])
def test_a_schema_that_cannot_be_is_refused(alice: Toolbox, schema: object) -> None:
    refused(alice, "realtime_create_document", doc_id="board", schema=schema)
