"""Module K: scenes that cross the zones (spec 1). K-2 comes with realtime documents."""

from __future__ import annotations

from pathlib import Path

import pytest
from calls import ok, refused
from watchroom import Toolbox, Workspace


@pytest.fixture
def team(root: Path) -> dict[str, Toolbox]:
    workspace = Workspace.open(root, agents=["researcher", "analyst", "writer"])
    return {agent: workspace.tools(agent) for agent in ("researcher", "analyst", "writer")}


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
