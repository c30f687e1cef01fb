"""Module B: the handoff zone (FILES)."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

from calls import ok, refused
from watchroom import Toolbox, Workspace


def test_B_1_hand_a_file_over(root: Path, workspace: Workspace, alice: Toolbox) -> None:
    ok(alice, "handoff_file", to_agent="bob", filename="data.csv", content="1,2,3", message="请分析这份数据")
    assert (root / "handoff/alice_to_bob/data.csv").read_text() == "1,2,3"
    workspace.flush()
    meta = json.loads((root / "handoff/alice_to_bob/data.csv.meta.json").read_text(encoding="utf-8"))
    assert (meta["from"], meta["to"], meta["message"]) == ("alice", "bob", "请分析这份数据")
    assert datetime.fromisoformat(meta["timestamp"]).tzinfo is not None


def test_B_2_receiver_checks_the_inbox(alice: Toolbox, bob: Toolbox, charlie: Toolbox) -> None:
    ok(alice, "handoff_file", to_agent="bob", filename="data.csv", content="1,2,3", message="请分析")
    ok(charlie, "handoff_file", to_agent="bob", filename="config.json", content="{}", message="新配置")
    result = ok(bob, "check_my_handoffs")
    assert result["count"] == 2
    assert [(each["from"], each["filename"], each["message"]) for each in result["handoffs"]] == [
        ("alice", "data.csv", "请分析"),
        ("charlie", "config.json", "新配置"),
    ]


def test_B_3_an_empty_inbox(alice: Toolbox, bob: Toolbox) -> None:
    ok(bob, "handoff_file", to_agent="alice", filename="x", content="for alice", message="not for bob")
    result = ok(bob, "check_my_handoffs")
    assert (result["count"], result["handoffs"]) == (0, [])


def test_B_4_read_a_delivery(alice: Toolbox, bob: Toolbox) -> None:
    ok(alice, "handoff_file", to_agent="bob", filename="data.csv", content="1,2,3", message="请分析")
    result = ok(bob, "read_handoff", from_agent="alice", filename="data.csv")
    assert (result["content"], result["from"]) == ("1,2,3", "alice")


def test_B_5_a_later_delivery_replaces_the_earlier(
    root: Path, workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    ok(alice, "handoff_file", to_agent="bob", filename="data.csv", content="旧数据", message="先看")
    ok(alice, "handoff_file", to_agent="bob", filename="data.csv", content="新数据", message="更新了")
    assert ok(bob, "read_handoff", from_agent="alice", filename="data.csv")["content"] == "新数据"
    workspace.flush()
    meta = json.loads((root / "handoff/alice_to_bob/data.csv.meta.json").read_text(encoding="utf-8"))
    assert meta["message"] == "更新了"
    rows = workspace.journal.history("handoff", "alice_to_bob/data.csv")
    assert [workspace.journal.content(row.seq) for row in rows] == ["旧数据", "新数据"]


def test_acknowledged_deliveries_leave_the_inbox_until_they_are_sent_again(
    alice: Toolbox, bob: Toolbox
) -> None:
    ok(alice, "handoff_file", to_agent="bob", filename="data.csv", content="1", message="first")
    ok(bob, "read_handoff", from_agent="alice", filename="data.csv")
    ok(bob, "acknowledge_handoff", from_agent="alice", filename="data.csv", message="thanks")
    assert ok(bob, "check_my_handoffs")["count"] == 0
    (kept,) = ok(bob, "check_my_handoffs", include_acknowledged=True)["handoffs"]
    assert kept["acknowledged"] is True
    ok(alice, "handoff_file", to_agent="bob", filename="data.csv", content="2", message="second")
    (again,) = ok(bob, "check_my_handoffs")["handoffs"]
    assert (again["delivery"], again["read"], again["acknowledged"]) == (2, False, False)


def test_handing_over_to_nobody_is_refused_at_once(alice: Toolbox) -> None:
    result = refused(alice, "handoff_file", to_agent="zed", filename="x", content="x", message="x")
    assert result["error"] == "unknown_agent"
    assert "bob" in result["suggestion"]


def test_metadata_of_another_handoff_cannot_be_forged(
    root: Path, workspace: Workspace, alice: Toolbox
) -> None:
    ok(alice, "handoff_file", to_agent="bob", filename="x", content="x", message="honest")
    refused(alice, "handoff_file", to_agent="bob", filename="x.meta.json", content="{}", message="x")
    workspace.flush()
    assert json.loads((root / "handoff/alice_to_bob/x.meta.json").read_text())["message"] == "honest"
