"""``watchroom demo``: a simulated team without a screen."""

from __future__ import annotations

import json
from pathlib import Path

from cli.running import Captured, misuse, spawned
from watchroom import Workspace
from watchroom_tui.cli import OK


def test_demo_headless_ends_with_a_summary_whose_verdict_is_clean(tmp_path: Path) -> None:
    root = tmp_path / "demo"
    done = spawned("demo", str(root), "--headless", "--for", "3", "--speed", "0", "--agents", "4")
    assert (done.returncode, done.stderr) == (OK, "")
    summary = json.loads(done.stdout.splitlines()[-1])
    assert summary["verify"] == "clean"
    assert summary["calls"] > 0
    assert set(summary) >= {"rows", "outcomes", "conflicts", "recoveries", "handoffs_sent", "edits"}
    ended = summary["recoveries"] + summary["abandoned"]
    quick = summary["quick_recoveries"] / ended if ended else 1.0
    assert summary["recovery_rate"] == round(quick, 4), "within two tries (FILES-goals)"
    with Workspace.open(root, create=False) as workspace:
        assert workspace.journal.last_seq() == sum(summary["rows"].values())
        assert len(workspace.config.agents) == 4
        assert workspace.verify() == []


def test_demo_needs_three_agents(capsys: Captured, tmp_path: Path) -> None:
    root = tmp_path / "demo"
    assert "3 or more" in misuse(capsys, "demo", str(root), "--headless", "--for", "0", "--agents", "2")
    assert not root.exists()
