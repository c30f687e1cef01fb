"""``watchroom status``: one line for the status lines of terminals and prompts of shells."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from cli.running import Captured, printed, refusal, run
from pty_driver import Terminal
from rich.cells import cell_len
from service_process import PATIENCE, service_status
from trees.git_repository import Repository
from watchroom import Workspace
from watchroom.agents.clients import client_program
from watchroom.features.requests.rows import Request
from watchroom.features.sessions.rows import format_step_detail
from watchroom.kernel.call_context import CallContext
from watchroom.kernel.rules.details import StepDetail
from watchroom_cli.command import own_program
from watchroom_cli.main import LANGUAGE_VARIABLE, OK
from watchroom_cli.plain.status_text import MAX_CELLS

PROGRAM = (sys.executable, "-m", "watchroom_cli.program")
CONFLICT = "1 need: bob and alice both changed plan.md"


def as_printed(*arguments: str, cwd: str = "/", **environment: str) -> str:
    """Return the output of the program, which must succeed without errors."""
    done = subprocess.run(
        [*PROGRAM, *arguments],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout


def serve(root: str) -> None:
    """Open the workspace in the service, as a client does."""
    with client_program.connect([*own_program()]) as connection:
        connection.sendall(client_program.request("GET", "/use", [("root", root)]))
        while not service_status()["workspaces"]:
            time.sleep(0.01)


def test_the_most_urgent_need_is_printed(
    capsys: Captured, team: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert printed(capsys, "status", team, "--line") == f"{CONFLICT}\n"
    assert printed(capsys, "status", team) == f"{CONFLICT}\n"
    assert service_status() == {}, "no service was started"
    monkeypatch.setenv(LANGUAGE_VARIABLE, "zh")
    assert printed(capsys, "status", team, "--line").startswith("1 项待处理：bob")


def test_nothing_is_printed_if_nothing_waits(
    capsys: Captured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(capsys, "status", str(tmp_path), "--line") == (OK, "", "")
    assert "watchroom" in refusal(capsys, "status", str(tmp_path))
    Workspace.open(tmp_path / "team").close()
    monkeypatch.chdir(tmp_path / "team")
    assert run(capsys, "status", "--line") == (OK, "", "")
    assert printed(capsys, "status") == "Nothing needs you.\n"


@pytest.mark.sqlite("The journal is a file.")
def test_a_damaged_journal_does_not_fail_a_status_line(capsys: Captured, tmp_path: Path) -> None:
    Workspace.open(tmp_path).close()
    for each in (tmp_path / ".watchroom").glob("journal*"):
        each.write_bytes(b"no database" * 1000)
    status, out, err = run(capsys, "status", str(tmp_path), "--line")
    assert (status, out) == (OK, "")
    assert err.startswith("watchroom: ")
    assert run(capsys, "status", str(tmp_path))[0] != OK


def ask(workspace: Workspace, agent: str, text: str) -> None:
    """Let ``agent`` ask the person in a session of its own."""
    detail = format_step_detail(StepDetail("waiting_for_human_input"), last_processed=0)
    session = workspace.session_zone.begin(agent, "s1", "{}", "", detail)
    workspace.requests.ask(CallContext(agent), f"{session.path}/c1", Request("prompt", text))


def test_several_agents_that_wait_are_counted(capsys: Captured, tmp_path: Path) -> None:
    with Workspace.open(tmp_path, agents=["alice", "bob"]) as workspace:
        ask(workspace, "alice", "Which port?")
        ask(workspace, "bob", "Which name?")
        line = printed(capsys, "status", str(tmp_path), "--line")
    assert line == "2 needs, 2 agents wait: alice asks: Which port?\n"


def test_the_line_is_short_plain_text(capsys: Captured, tmp_path: Path) -> None:
    with Workspace.open(tmp_path, agents=["alice"]) as workspace:
        ask(workspace, "alice", "\x1b]0;x\x07#[fg=red]#(reboot)\nmany " + "long" * 30)
    line = printed(capsys, "status", str(tmp_path), "--line").removesuffix("\n")
    assert cell_len(line) <= MAX_CELLS
    assert line.isprintable()
    assert "#" not in line
    assert line.startswith("1 need: alice asks: ")


@pytest.mark.slow(6)
def test_the_service_answers_at_once(team: str, service: None) -> None:
    serve(team)
    (served,) = service_status()["workspaces"]
    inside = next(each for each in Path(team).iterdir() if each.is_dir())
    for arguments, folder in ((("--line", team), "/"), (("--line",), str(inside))):
        assert as_printed("status", *arguments, cwd=folder) == f"{CONFLICT}\n"
    assert as_printed("status", "--line", team, WATCHROOM_LANGUAGE="zh").startswith("1 项待处理")
    # Loading the command line takes longer than the answer.
    loaded = "import sys; from watchroom_cli.program import main; main(); print(*sys.modules)"
    command = [sys.executable, "-c", loaded, "status", "--line", team]
    modules = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert not {"watchroom_cli.main", "watchroom.errors", "argparse", "asyncio"} & {*modules}
    (after,) = service_status()["workspaces"]
    assert after == served, "a question does not use the workspace"


@pytest.mark.slow(6)
def test_the_service_opens_no_workspace_for_a_status_line(team: str, tmp_path: Path, service: None) -> None:
    other = tmp_path / "other"
    Workspace.open(other).close()
    serve(str(other))
    assert as_printed("status", "--line", team) == f"{CONFLICT}\n"
    assert as_printed("status", "--line", "/") == ""
    assert [each["root"] for each in service_status()["workspaces"]] == [os.path.realpath(other)]


@pytest.mark.slow(6)
def test_each_tree_of_a_repository_has_the_line_of_its_workspace(tmp_path: Path, service: None) -> None:
    repository = Repository(tmp_path / "project")
    repository.commit(a__txt="a\n")
    with Workspace.open(repository.root, agents=["alice"]) as workspace:
        ask(workspace, "alice", "Which port?")
    serve(str(repository.root))
    assert "alice asks: Which port?" in as_printed("status", "--line", cwd=str(repository.folder))


@pytest.mark.slow(6)
def test_tmux_shows_the_line(team: str, service: None) -> None:
    if shutil.which("tmux") is None:
        pytest.skip("needs tmux")
    serve(team)
    with TemporaryDirectory(dir="/tmp") as folder:
        socket = str(Path(folder) / "s")
        shown = f"#({shlex.join([*PROGRAM, 'status', '--line', team])})"
        settings = Path(folder) / "tmux.conf"
        settings.write_text(
            f"set -g status-interval 1\nset -g status-right-length 90\nset -g status-right '{shown}'\n"
        )
        try:
            with Terminal(
                ["tmux", "-S", socket, "-f", str(settings), "new-session", "sleep 600"]
            ) as terminal:
                terminal.wait_for_text(CONFLICT, timeout=PATIENCE)
        finally:
            subprocess.run(["tmux", "-S", socket, "kill-server"], check=True, capture_output=True)
