"""``watchroom task --every`` and ``--on``, and ``watchroom routine``, with a service and a client."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from child_processes import ends
from cli.running import Captured, misuse, printed, printed_json, refusal
from service_process import PATIENCE, running_service, service_pid, service_status
from trees.git_repository import Repository
from watchroom import Workspace
from watchroom.agents.clients.configuration import AGENT_VARIABLE
from watchroom.agents.clients.routine_places import RoutinePlaces
from watchroom.agents.clients.routine_run import RoutineRunner
from watchroom.kernel.call_context import CallContext

UNTIL: Final = ("--until", (date.today() + timedelta(days=30)).isoformat())
LIMITS: Final = ("--budget", "1.50", "--total", "20", *UNTIL)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """A repository, and a client ``claude`` that writes its process id and runs while the file ``hang`` is
    there."""
    repository = Repository(tmp_path / "project")
    repository.commit(a__txt="one\n")
    programs = tmp_path / "programs"
    programs.mkdir()
    script = (
        f'#!/bin/sh\necho $$ $PWD "$@" >> {tmp_path}/ran\nwhile [ -e {tmp_path}/hang ]; do sleep 0.1; done\n'
    )
    (programs / "claude").write_text(script)
    (programs / "claude").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv(AGENT_VARIABLE, raising=False)
    monkeypatch.chdir(repository.folder)
    return repository


def wait(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.mark.parametrize(
    "arguments",
    [
        ("--every", "1d", "Go", "--client", "claude", "--budget", "1", "--total", "2"),
        ("--every", "1d", "Go", "--client", "claude", "--budget", "1", *UNTIL),
        ("--every", "1d", "Go", "--client", "claude", "--budget", "1", "--total", "2tokens", *UNTIL),
        ("--every", "1d", "Go", *LIMITS),
        ("--every", "1d", "--client", "claude", *LIMITS),
        ("--every", "1m", "Go", "--client", "claude", *LIMITS),
        ("--every", "day", "Go", "--client", "claude", *LIMITS),
        ("--every", "1d", "--at", "07:00", "Go", "--client", "claude", *LIMITS),
        ("--every", "1d", "Go", "--client", "emacs", *LIMITS),
        ("--on", "ref:", "Go", "--client", "claude", *LIMITS),
        ("--every", "1d", "Go", "--client", "claude", *LIMITS[:4], "--until", "2001-01-01"),
        ("--every", "1d", "Go", "--client", "claude", *LIMITS[:4], "--until", "2999-01-01"),
        ("Go", "--client", "claude", *LIMITS),
    ],
)
def test_an_incomplete_routine_is_refused(
    capsys: Captured, repository: Repository, arguments: tuple[str, ...]
) -> None:
    assert misuse(capsys, "task", *arguments).startswith("watchroom task: ")
    assert not Path(repository.root).exists()


def test_a_routine_is_listed_shown_and_stopped(capsys: Captured, repository: Repository) -> None:
    printed_options = ("--client", "claude --model x", "--tree", "--name", "deps", *LIMITS)
    assert main_ok(capsys, "task", "--every", "day", "--at", "07:00", "Update.", *printed_options)
    (found,) = printed_json(capsys, "routine", "list", "--json")
    assert (found["client"], found["total"], found["tree"]) == ("claude --model x", 20, True)
    assert found["next"].endswith("07:00 · the service is not running")
    lines = printed(capsys, "routine", "list").splitlines()
    assert lines[1].split()[:3] == ["deps", "daily", "07:00"]
    assert "no run yet" in lines[1]
    assert "prompt: Update." in printed(capsys, "routine", "show", "deps")
    assert "deps" in refusal(capsys, "task", "--every", "1d", "Again.", *printed_options)
    assert "stopped" in printed(capsys, "routine", "stop", "deps")
    (found,) = printed_json(capsys, "routine", "list", "--json")
    assert (found["stopped"], found["next"]) == ("person", "stopped")
    assert "it has ended" in refusal(capsys, "routine", "run-now", "deps")
    assert "no routine 'x'" in refusal(capsys, "routine", "show", "x")


def test_a_run_that_could_not_start_shows_why(
    capsys: Captured, repository: Repository, tmp_path: Path
) -> None:
    gone = tmp_path / "gone"
    assert main_ok(capsys, "task", "--every", "1d", "Go", "--client", "claude", "--name", "deps", *LIMITS)
    with Workspace.open(repository.root, create=False) as workspace:
        routines = workspace.routines
        plan = routines.find("deps").plan._replace(folder=str(gone))
        routines.add(CallContext("human:dana"), "lost", "Go", plan)
        routines.run_now(CallContext("human:dana"), "lost")
        runner = RoutineRunner(workspace, ("watchroom",))
        runner.look()
        runner.wait()
    shown = printed(capsys, "routine", "show", "lost").splitlines()[-1]
    assert f"failed: [Errno 2] No such file or directory: '{gone}'" in shown
    (run,) = printed_json(capsys, "routine", "show", "lost", "--json")["runs"]
    assert str(gone) in run["reason"]


def main_ok(capsys: Captured, *arguments: str) -> bool:
    from cli.running import run

    return run(capsys, *arguments)[0] == 0


def test_an_agent_can_neither_add_nor_run_a_routine(
    capsys: Captured, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main_ok(capsys, "task", "--every", "1d", "Go", "--client", "claude", "--name", "own", *LIMITS)
    monkeypatch.setattr("watchroom.agents.clients.processes.find_parent_agent", lambda *_: "alice")
    assert "alice" in refusal(capsys, "task", "--every", "1d", "Go", "--client", "claude", *LIMITS)
    assert "alice" in refusal(capsys, "routine", "run-now", "own")
    monkeypatch.undo()
    monkeypatch.chdir(repository.folder)
    assert [each["routine"] for each in printed_json(capsys, "routine", "list", "--json")] == ["own"]


@pytest.mark.slow(20)
def test_the_service_runs_it_and_a_killed_service_leaves_an_interrupted_run(
    capsys: Captured, repository: Repository, tmp_path: Path, service_allowed: None
) -> None:
    (tmp_path / "hang").touch()
    ran = tmp_path / "ran"
    assert main_ok(
        *(capsys, "task", "--on", "a.txt", "Look at it.", "--client", "claude", "--tree", "--name", "look"),
        *LIMITS,
    )
    assert main_ok(capsys, "routine", "run-now", "look")
    wait(ran.exists)
    pid, folder, *words = ran.read_text().split()
    assert Path(folder).name == "routine-look"
    assert words[-4:] == ["--", "Look", "at", "it."]
    os.kill(service_pid(), signal.SIGKILL)
    assert ends(int(pid), PATIENCE)

    def states() -> list[str]:
        (found,) = printed_json(capsys, "routine", "list", "--json")
        return [each["state"] for each in found["runs"]]

    # The kernel closes the files of a killed process one after the other.
    wait(lambda: states() == ["interrupted"])
    assert not service_status()
    # The next service records the end. It runs once more, because a person asks.
    (tmp_path / "hang").unlink()
    assert main_ok(capsys, "routine", "run-now", "look")
    wait(lambda: len(ran.read_text().splitlines()) == 2)
    wait(lambda: states() == ["interrupted", "done"])
    assert [each["root"] for each in service_status()["workspaces"]] == [os.path.realpath(repository.root)]


@pytest.mark.slow(20)
def test_a_new_service_opens_the_workspaces_with_active_routines(
    capsys: Captured, repository: Repository, tmp_path: Path, service_allowed: None
) -> None:
    """As after a restart of the machine, when something else starts the service."""
    places = RoutinePlaces(str(tmp_path / "state" / "watchroom"))
    root = os.path.realpath(repository.root)
    assert main_ok(
        *(capsys, "task", "--on", "a.txt", "Look at it.", "--client", "claude", "--name", "look"), *LIMITS
    )
    wait(lambda: places.list() == [root])
    places.keep(str(tmp_path / "gone"))
    assert main_ok(capsys, "service", "stop")
    with running_service():
        wait(lambda: [each["root"] for each in service_status()["workspaces"]] == [root])
        assert main_ok(capsys, "routine", "stop", "look")
        wait(lambda: root not in places.list())
    with running_service():
        time.sleep(0.5)
        assert service_status()["workspaces"] == []


def test_leaving_a_repository_forgets_its_routines(
    capsys: Captured, repository: Repository, tmp_path: Path
) -> None:
    places = RoutinePlaces(str(tmp_path / "state" / "watchroom"))
    assert main_ok(
        *(capsys, "task", "--on", "a.txt", "Look at it.", "--client", "claude", "--name", "look"), *LIMITS
    )
    places.keep(os.path.realpath(repository.root))
    assert main_ok(capsys, "leave")
    assert places.list() == []
