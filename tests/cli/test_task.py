"""``watchroom task``: a team works on a task, headless, with simulated developers or over HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from cli.running import Captured, as_typed, misuse, printed_json, refusal, run, spawned
from runtime.models.server import Exchange, serving
from tasking import machine_sandbox, on_disk
from watchroom import Workspace, validation
from watchroom_cli.main import OK, REFUSED, USAGE

pytestmark = pytest.mark.slow(6)
REQUIREMENT = "Build a calculator for the command line."


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    if machine_sandbox().best is None:
        pytest.skip("no sandbox works here, so no command runs: bubblewrap is to be installed")
    return tmp_path / "app"


def kept_in_rows(workspace: Workspace, task: str) -> dict[str, str]:
    """Return the newest version of each file of a task in the journal: path → checksum."""
    heads = workspace.journal.heads("file", f"{task}/")
    return {head.path.partition("/")[2]: head.sha256 or "" for head in heads if not head.deleted}


def is_delivered(folder: Path) -> bool:
    """Return whether the program's own tests pass."""
    command = [sys.executable, "-B", "-m", "unittest", "discover", "-s", "calculator/tests", "-t", "."]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode == 0 and "Ran 14 tests" in done.stderr


def checked(root: Path, folder: Path, task: str) -> None:
    """Check that the program works, and that every file has a row."""
    assert is_delivered(folder)
    with Workspace.open(root, create=False) as workspace:
        assert workspace.verify() == []
        found = {path: validation.sha256(data) for path, data in on_disk(folder).items()}
        assert kept_in_rows(workspace, task) == found
        assert workspace.tasks.find(task).status == "done"


class Built(NamedTuple):
    """A finished task: its folder, the team's folder, and the ended process."""

    folder: Path
    root: Path
    done: subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    if machine_sandbox().best is None:
        pytest.skip("no sandbox works here, so no command runs: bubblewrap is to be installed")
    folder = tmp_path_factory.mktemp("task") / "app"
    done = spawned("task", REQUIREMENT, "--workspace", str(folder), "--simulate", "--headless")
    return Built(folder, folder.with_name("app-watchroom"), done)


def test_a_team_builds_a_program_mends_what_fails_and_ends_the_task(built: Built) -> None:
    folder, root, done = built
    assert done.returncode == OK, done.stderr
    summary = json.loads(done.stdout)
    assert (summary["status"], summary["verify"]) == ("done", "clean")
    assert "14 tests pass" in summary["report"]
    assert len(summary["agents"]) == 5
    assert all(count > 0 for count in summary["tokens"])
    assert "root: spawns architect" in done.stderr
    assert "calculator.tests.test_evaluate  → 1\n" in done.stderr, "one test failed"
    assert "calculator.tests.test_evaluate  → 0\n" in done.stderr, "and was mended"
    checked(root, folder, summary["task"])


def test_its_tasks_messages_and_commands_are_shown(capsys: Captured, built: Built) -> None:
    root = str(built.root)
    (task,) = printed_json(capsys, "show", root, "tasks", "--json")
    assert (task["status"], task["what"], task["agents"]) == ("done", REQUIREMENT, "")
    assert task["report"] == "A calculator in calculator/: 14 tests pass."
    messages = printed_json(capsys, "show", root, "messages", "--json")
    report = next(each for each in messages if (each["from"], each["to"]) == ("architect", "root"))
    assert (report["delivered"], report["read"], report["task"]) == (True, True, task["task"])
    commands = printed_json(capsys, "show", root, "commands", "--json")
    assert [each["exit_code"] for each in commands].count(1) == 1
    assert not any(each["running"] for each in commands)


def test_a_killed_task_resumes(folder: Path) -> None:
    root = folder.with_name("team")
    given = ("--workspace", str(folder), "--team", str(root), "--headless")
    with subprocess.Popen(
        as_typed("task", REQUIREMENT, "--simulate", *given), stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr
        line = next(line for line in process.stderr if "spawns evaluate-programmer" in line)
        os.kill(process.pid, signal.SIGKILL)
    assert line
    done = spawned("task", "--team", str(root), "--headless")
    assert done.returncode == OK, done.stderr
    summary = json.loads(done.stdout)
    assert len(summary["agents"]) == 5, "nobody was made twice"
    checked(root, folder, summary["task"])


def test_simulated_developers_speak_the_language_of_the_team(capsys: Captured, folder: Path) -> None:
    folder.mkdir()
    given = ("--workspace", str(folder), "--simulate", "--headless", "--language", "zh")
    status, out, err = run(capsys, "task", REQUIREMENT, *given)
    assert status == OK, err
    assert "14 个测试通过" in json.loads(out)["report"]


@pytest.mark.parametrize("entry", ["README.md", ".git"])
def test_simulated_developers_refuse_a_folder_that_is_not_empty(
    capsys: Captured, tmp_path: Path, entry: str
) -> None:
    folder = tmp_path / "app"
    folder.mkdir()
    (folder / entry).write_text("mine\n")
    given = ("--workspace", str(folder), "--headless")
    said = misuse(capsys, "task", "x", *given, "--simulate")
    assert f"{folder} is not empty" in said
    assert "--model NAME" in said
    assert [path.name for path in tmp_path.iterdir()] == ["app"]
    assert on_disk(folder) == {entry: b"mine\n"}


def test_a_task_needs_a_model_or_simulated_developers(capsys: Captured, tmp_path: Path) -> None:
    given = ("--workspace", str(tmp_path / "app"), "--headless")
    said = misuse(capsys, "task", "x", *given)
    assert "--model NAME" in said
    assert "--simulate" in said
    assert "not allowed with" in misuse(capsys, "task", "x", *given, "--simulate", "--model", "m1")
    assert list(tmp_path.iterdir()) == []


def test_missing_arguments_are_named(capsys: Captured, tmp_path: Path) -> None:
    app = str(tmp_path / "app")
    assert "--workspace" in misuse(capsys, "task")
    assert "--workspace" in misuse(capsys, "task", "x", "--team", app)
    assert "the requirement is missing" in misuse(capsys, "task", " ", "--workspace", app)
    assert "1 or more" in misuse(capsys, "task", "x", "--workspace", app, "--steps", "-1")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a").write_text("a")
    assert "--team" in misuse(capsys, "task", "x", "--workspace", app, "--team", str(tmp_path / "full"))
    assert not Path(app).exists()


def test_a_folder_that_holds_the_journal_is_refused(capsys: Captured, tmp_path: Path) -> None:
    given = ("--workspace", str(tmp_path), "--team", str(tmp_path / "team"), "--headless")
    assert "cannot be a task's workspace" in refusal(capsys, "task", "x", *given)


def test_where_nothing_is_open_nothing_goes_on(tmp_path: Path, capsys: Captured) -> None:
    with Workspace.open(tmp_path / "team"):
        pass
    assert "no open task" in misuse(capsys, "task", "--team", str(tmp_path / "team"), "--headless")


def answer(text: str = "", *calls: tuple[str, dict[str, Any]]) -> bytes:
    message = {
        "content": text,
        "tool_calls": [
            {
                "id": f"c{n}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments)},
            }
            for n, (name, arguments) in enumerate(calls)
        ],
    }
    return json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}).encode()


async def test_a_model_behind_an_address_runs_the_team(tmp_path: Path) -> None:
    answers = [
        answer("", ("write_file", {"path": "a.txt", "content": "hello\n"})),
        answer("", ("end_task", {"status": "done", "report": "Written."})),
        answer("Good."),
    ]

    async def step(exchange: Exchange) -> None:
        await exchange.answer(answers.pop(0), content_type="application/json")

    async with serving(step) as server:
        given = ["task", "Write a.txt", "--workspace", str(tmp_path / "app"), "--headless", "--model", "m1"]
        done = await asyncio.to_thread(spawned, *given, "--base-url", server.url, WATCHROOM_API_KEY="secret")
    assert done.returncode == OK, done.stderr
    assert json.loads(done.stdout)["files"] == ["a.txt"]
    assert "simulated" not in done.stderr
    first = server.requests[0]
    assert first.headers["authorization"] == "Bearer secret"
    body = first.json()
    assert body["model"] == "m1"
    assert [each["role"] for each in body["messages"]] == ["system", "user"]
    offered = {each["function"]["name"] for each in body["tools"]}
    assert {"spawn_agent", "send_message", "run_command", "end_task"} <= offered
    assert "ask_person" not in offered, "nobody is there to answer"


async def test_a_task_whose_model_fails_stays_open_and_goes_on_with_one_of_its_kind(tmp_path: Path) -> None:
    async def step(exchange: Exchange) -> None:
        await exchange.answer(b'{"error": {"message": "no such model"}}', status=404)

    async with serving(step) as server:
        given = ["task", "x", "--workspace", str(tmp_path / "app"), "--headless", "--model", "m1"]
        done = await asyncio.to_thread(spawned, *given, "--base-url", server.url)
    assert done.returncode == REFUSED
    assert json.loads(done.stdout)["status"] == "open"
    assert "no such model" in done.stderr
    assert "wait for you" in done.stderr
    team = str(tmp_path / "app-watchroom")
    assert f"watchroom task --team {team}" in done.stderr
    again = await asyncio.to_thread(spawned, "task", "--team", team, "--headless")
    assert again.returncode == USAGE
    assert "--model m1" in again.stderr


@pytest.mark.parametrize(
    ("where", "rule"),
    [("~", "home folder"), ("/", "home folder"), ("other/agents", "another team"), ("file", "not a folder")],
)
def test_a_folder_that_is_no_place_for_agents_is_refused_and_nothing_is_made(
    capsys: Captured, tmp_path: Path, where: str, rule: str
) -> None:
    with Workspace.open(tmp_path / "other", agents=["alice"]):
        pass
    (tmp_path / "file").write_text("x")
    given = os.path.expanduser(where) if where in ("~", "/") else str(tmp_path / where)
    before = sorted(tmp_path.rglob("*"))
    team = str(tmp_path / "team")
    said = refusal(capsys, "task", "x", "--workspace", given, "--team", team, "--headless")
    assert rule in said or "folder" in said
    assert sorted(tmp_path.rglob("*")) == before


def test_limits_hold_from_the_beginning(capsys: Captured, tmp_path: Path) -> None:
    app = str(tmp_path / "app")
    for limit in ("--steps", "--agents", "--depth"):
        assert "1 or more" in misuse(capsys, "task", "x", "--workspace", app, limit, "0")
        assert "when a task starts" in misuse(capsys, "task", "--workspace", app, limit, "5")
    assert "--base-url needs --model" in misuse(
        capsys, "task", "x", "--workspace", app, "--base-url", "http://127.0.0.1:9/v1"
    )


def test_a_team_whose_steps_are_used_up_fails(capsys: Captured, folder: Path) -> None:
    given = ("--workspace", str(folder), "--simulate", "--headless", "--steps", "6")
    status, out, _ = run(capsys, "task", REQUIREMENT, *given)
    assert status == REFUSED
    assert json.loads(out)["status"] != "done"
