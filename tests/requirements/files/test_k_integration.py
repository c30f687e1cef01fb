"""Module K: scenes that cross the zones (FILES)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from calls import ok, refused
from watchroom import Toolbox, Workspace

KANBAN = {"title": "lww_register", "tasks": "or_set", "done_count": "pn_counter"}
THREE = ("alice", "bob", "charlie")
TASKS_EACH = 20


@pytest.fixture
def team(root: Path) -> Iterator[dict[str, Toolbox]]:
    with Workspace.open(root, agents=["researcher", "analyst", "writer"]) as workspace:
        yield {agent: workspace.tools(agent) for agent in ("researcher", "analyst", "writer")}


def test_K_1_research_analysis_writing(team: dict[str, Toolbox]) -> None:
    researcher, analyst, writer = team["researcher"], team["analyst"], team["writer"]
    ok(researcher, "save_to_my_workspace", filename="data.md", content="调研数据...")
    ok(
        researcher,
        "handoff_file",
        to_agent="analyst",
        filename="data.md",
        content="调研数据...",
        message="请分析",
    )
    assert ok(analyst, "check_my_handoffs")["count"] == 1
    assert (
        ok(analyst, "read_handoff", from_agent="researcher", filename="data.md")["content"] == "调研数据..."
    )
    ok(
        analyst,
        "collab_write",
        filepath="report.md",
        content="分析结果...",
        message="初稿",
        expected_version=-1,
    )
    assert ok(writer, "collab_read", filepath="report.md")["version"] == 1
    ok(
        writer,
        "collab_write",
        filepath="report.md",
        content="润色后的报告...",
        message="润色",
        expected_version=1,
    )
    conflict = refused(
        analyst,
        "collab_write",
        filepath="report.md",
        content="补充数据...",
        message="补充",
        expected_version=1,
    )
    assert conflict["is_conflict"] is True
    newest = ok(analyst, "collab_read", filepath="report.md")
    merged = newest["content"] + "\n" + conflict["your_content"]
    ok(
        analyst,
        "collab_write",
        filepath="report.md",
        content=merged,
        message="合并",
        expected_version=newest["version"],
    )
    history = ok(writer, "collab_history", filepath="report.md")["history"]
    assert [entry["author"] for entry in history] == ["analyst", "writer", "analyst"]
    final = ok(writer, "collab_read", filepath="report.md")["content"]
    assert "润色后的报告" in final
    assert "补充数据" in final


def test_K_2_a_board_in_real_time_and_private_drafts(root: Path) -> None:
    with Workspace.open(root, agents=THREE) as workspace:
        alice, bob, charlie = map(workspace.tools, THREE)
        board = {"doc_id": "kanban"}
        ok(alice, "realtime_create_document", **board, schema=KANBAN)
        ok(alice, "realtime_set_field", **board, field_name="title", value="Sprint 1")
        together = Barrier(len(THREE))

        def work(agent: Toolbox) -> None:
            together.wait()
            draft = f"draft of {agent.actor}"
            ok(agent, "save_to_my_workspace", filename="draft.md", content=draft)
            for number in range(TASKS_EACH):
                task = f"{agent.actor} {number}"
                ok(agent, "realtime_edit_set", **board, field_name="tasks", operation="add", element=task)

        with ThreadPoolExecutor(len(THREE)) as pool:
            list(pool.map(work, (alice, bob, charlie)))
        for agent in (alice, bob):
            ok(agent, "realtime_edit_counter", **board, field_name="done_count", operation="increment")
        snapshot = ok(charlie, "realtime_get_document_snapshot", **board)["snapshot"]
        assert snapshot["title"] == "Sprint 1"
        assert sorted(snapshot["tasks"]) == sorted(
            f"{agent} {number}" for agent in THREE for number in range(TASKS_EACH)
        )
        assert snapshot["done_count"] == 2
        _check_drafts(root)
        assert workspace.verify() == []


def test_K_2_from_a_process_for_each_agent(root: Path) -> None:
    Workspace.open(root, agents=THREE).close()
    board = {"doc_id": "kanban"}
    _at_once(root, ("alice", "realtime_create_document", {**board, "schema": KANBAN}))
    _at_once(root, ("alice", "realtime_set_field", {**board, "field_name": "title", "value": "Sprint 1"}))
    add = {**board, "field_name": "tasks", "operation": "add"}
    count = {**board, "field_name": "done_count", "operation": "increment"}
    _at_once(
        root,
        *(
            (agent, "save_to_my_workspace", {"filename": "draft.md", "content": f"draft of {agent}"})
            for agent in THREE
        ),
        *((agent, "realtime_edit_set", {**add, "element": f"{agent}'s task"}) for agent in THREE),
    )
    _at_once(root, *((agent, "realtime_edit_counter", count) for agent in ("alice", "bob")))
    (seen,) = _at_once(root, ("charlie", "realtime_get_document_snapshot", board))
    assert seen["snapshot"] == {
        "title": "Sprint 1",
        "tasks": [f"{agent}'s task" for agent in THREE],
        "done_count": 2,
    }
    _check_drafts(root)
    with Workspace.open(root) as workspace:
        assert workspace.verify() == []


def _at_once(root: Path, *calls: tuple[str, str, Mapping[str, object]]) -> list[dict[str, Any]]:
    """The results of calls that are made at the same time, each in a process of its own."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "watchroom_cli.main", "call", str(root), agent, tool, json.dumps(given)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for agent, tool, given in calls
    ]
    results: list[dict[str, Any]] = [json.loads(process.communicate()[0]) for process in processes]
    assert [process.returncode for process in processes] == [0] * len(calls), results
    return results


def _check_drafts(root: Path) -> None:
    """Each agent's own folder holds its own draft, and nothing else."""
    for agent in THREE:
        folder = root / "agents" / agent
        assert [file.name for file in folder.iterdir()] == ["draft.md"]
        assert (folder / "draft.md").read_text() == f"draft of {agent}"


def test_K_3_others_workspaces_as_reference(root: Path, team: dict[str, Toolbox]) -> None:
    researcher, analyst, writer = team["researcher"], team["analyst"], team["writer"]
    ok(researcher, "save_to_my_workspace", filename="notes.md", content="notes")
    ok(analyst, "save_to_my_workspace", filename="model.md", content="model")
    gathered = []
    for agent in ("researcher", "analyst"):
        (filename,) = ok(writer, "list_workspace_files", agent_id=agent)["files"]
        gathered.append(ok(writer, "read_from_workspace", agent_id=agent, filename=filename)["content"])
    ok(writer, "save_to_my_workspace", filename="final_report.md", content="\n".join(gathered))
    assert (root / "agents/writer/final_report.md").read_text() == "notes\nmodel"
    assert (root / "agents/researcher/notes.md").read_text() == "notes"
    assert (root / "agents/analyst/model.md").read_text() == "model"
