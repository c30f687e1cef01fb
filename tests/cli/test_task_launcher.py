"""A task started from elsewhere runs in its own process, which does not need its starter."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path

import psutil
import pytest
from child_processes import is_running
from cli.running import Captured, printed_json
from damage import journal_of
from presences import wait_until_lost
from watchroom import Workspace
from watchroom.kernel.journal import open_journal
from watchroom_tui.presentation.localization import load_texts
from watchroom_tui.worker.task_launcher import (
    MOST_TEXT,
    TaskNotLaunched,
    TaskOrder,
    check_order,
    launch_task,
)

TEXTS = load_texts("en")
PATIENCE = 30
BEGIN = """
import sys
from contextlib import closing
from watchroom.kernel.journal import open_journal
from watchroom_tui.presentation.localization import load_texts
from watchroom_tui.worker.task_launcher import TaskOrder, launch_task
root, folder = sys.argv[1:]
print(*launch_task(TaskOrder("-- Build it.", folder, is_simulated=True), root, "dana", load_texts("en"), "en", speed=0.01))
"""


@pytest.fixture
def team(root: Path) -> str:
    Workspace.open(root, agents=["alice"]).close()
    return str(root)


def test_a_task_outlives_its_starter_and_is_lost_once_killed(
    team: str, tmp_path: Path, capsys: Captured, journal_name: str
) -> None:
    arguments = [sys.executable, "-c", BEGIN, team, str(tmp_path / "app")]
    began = subprocess.run(
        arguments, capture_output=True, text=True, timeout=PATIENCE, check=True, start_new_session=True
    )
    task, number, output = began.stdout.split()
    process = int(number)
    try:
        assert is_running(process)
        assert os.getsid(process) == process, "no hangup of a terminal reaches it"
        (shown,) = printed_json(capsys, "show", team, "tasks", "--json")
        assert (shown["task"], shown["status"], shown["what"]) == (task, "open", "-- Build it.")
        assert shown["folder"] == str(tmp_path / "app")
        assert f"Team journal: {team}" in Path(output).read_text()
        with Workspace.open(team, scan=False) as workspace, closing(workspace.journal.changes()) as changes:
            (row,) = [row for row in workspace.journal.rows(limit=10_000) if row.path == task]
            assert row.actor == "human:dana"
            while not any(workspace.journal.heads("session")):
                changes.wait(PATIENCE)
        with pytest.raises(TaskNotLaunched, match="shares files with an open task"):
            launch_task(TaskOrder("Another one.", str(tmp_path / "app"), "m1"), team, "dana", TEXTS, "en")
    finally:
        os.kill(process, signal.SIGKILL)
        os.unlink(output)
    with suppress(psutil.NoSuchProcess):
        psutil.Process(process).wait(PATIENCE)
    with closing(open_journal(journal_of(team))) as journal:
        wait_until_lost(journal, process)
    (need,) = printed_json(capsys, "show", team, "needs", "--json")
    assert need["kind"] == "lost"
    # On a server, another machine has another folder.
    resume = "watchroom resume DIR root" if journal_name == "postgres" else f"watchroom task --team {team}"
    assert resume in need["what"]


@pytest.mark.parametrize(
    ("order", "says"),
    [
        (TaskOrder(" ", "app"), "the requirement is missing"),
        (TaskOrder("-", "app"), "the requirement is missing"),
        (TaskOrder("x" * (MOST_TEXT + 1), "app"), "at most 20000 characters"),
        (TaskOrder("a\0b", "app"), "control characters"),
        (TaskOrder("x", " "), "a folder to work in"),
        (TaskOrder("x", "app", "m\n1"), "model's name"),
        (TaskOrder("x", "/"), "home folder"),
        (TaskOrder("x", "team/below"), "cannot be a task's workspace"),
        (TaskOrder("x", "app"), "Give a model, or select"),
        (TaskOrder("x", "app", "m1", is_simulated=True), "Give a model, or select"),
        (TaskOrder("x", "full", is_simulated=True), "is not empty"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_invalid_task_is_refused_before_anything_is_created(
    team: str, order: TaskOrder, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(team).parent
    monkeypatch.chdir(folder)
    Path("full").mkdir()
    Path("full", "a").write_text("a")
    before = sorted(folder.rglob("*"))
    with pytest.raises(TaskNotLaunched, match=says):
        check_order(order, team, TEXTS, "en")
    assert sorted(folder.rglob("*")) == before
