"""`run_command` as an agent calls it: the results and errors of TASKS, and the rows of a command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from calls import ok, refused
from sandbox.processes import marked_processes, token
from tasking import Team, kill_and_miss, machine_sandbox
from timeouts import run_until_begun
from watchroom import Agent, Json, Row, Workspace
from watchroom.kernel.call_context import CallContext

pytestmark = pytest.mark.slow(6)


@pytest.fixture(autouse=True)
def sandboxed(team: Team) -> None:
    if team.workspace.commands.sandbox.best is None:
        pytest.skip("no sandbox works here, so no command runs: bubblewrap is to be installed")


def rows_of(team: Team, tool: str) -> list[Row]:
    team.workspace.flush()
    return rows_with(team, tool)


def rows_with(team: Team, tool: str) -> list[Row]:
    return [row for row in team.workspace.journal.rows(limit=10_000) if row.tool == tool]


def wait_for(team: Team, tool: str) -> None:
    committed = threading.Event()
    end = team.workspace.subscribe(committed.set)
    while not rows_of(team, tool):
        assert committed.wait(20)
        committed.clear()
    end()


def test_a_command_runs_in_the_folder_and_tells_all_of_spec_2(team: Team) -> None:
    ok(team.one, "write_file", path="a.txt", content="hello\n")
    result = ok(team.one, "run_command", command="cat a.txt; echo oops >&2; pwd")
    assert result["stdout"] == f"hello\n{team.folder}\n"
    assert (result["stderr"], result["exitCode"]) == ("oops\n", 0)
    assert "changed" not in result


def test_what_it_changes_are_versions_of_its_agent(team: Team) -> None:
    ok(team.one, "write_file", path="old.txt", content="x")
    (team.folder / "by_hand.txt").write_text("y")
    result = ok(team.one, "run_command", command="rm old.txt; mkdir src; printf z > src/new.txt")
    assert sorted(result["changed"]) == ["old.txt", "src/new.txt"]
    changes = {
        row.path.partition("/")[2]: (row.actor, row.deleted)
        for row in rows_of(team, "run_command")
        if row.zone == "file"
    }
    assert changes == {"old.txt": ("alice", True), "src/new.txt": ("alice", False)}
    (by_hand,) = rows_of(team, "outside_edit")
    assert (by_hand.actor, by_hand.path.partition("/")[2]) == ("outside", "by_hand.txt")


def test_it_is_a_row_when_it_begins_while_it_prints_and_when_it_ended(team: Team) -> None:
    ok(team.one, "run_command", command="echo one; echo two >&2")
    (begun,) = [row for row in rows_of(team, "run_command") if row.zone == "command"]
    (ended,) = rows_of(team, "end_command")
    printed = rows_of(team, "command_output")
    content = team.workspace.journal.content
    assert content(begun.seq) == "echo one; echo two >&2"
    told = json.loads(content(ended.seq) or "")
    assert (told["stdout"], told["stderr"], told["exitCode"]) == ("one\n", "two\n", 0)
    assert {(row.detail["stream"], content(row.seq)) for row in printed} == {
        ("stdout", "one\n"),
        ("stderr", "two\n"),
    }
    assert {row.path for row in (begun, ended, *printed)} == {begun.path}
    assert begun.seq < min(row.seq for row in printed)
    assert max(row.seq for row in printed) < ended.seq


def test_one_that_fails_says_how(team: Team) -> None:
    result = refused(team.one, "run_command", command="echo partly; echo wrong >&2; touch left; exit 3")
    assert result["error"] == "command_failed"
    assert (result["stdout"], result["stderr"], result["exitCode"]) == ("partly\n", "wrong\n", 3)
    assert result["changed"] == ["left"]


def test_one_that_takes_too_long_is_ended(team: Team) -> None:
    def run(seconds: float) -> dict[str, Any]:
        timeout = int(seconds * 1000)
        command = f"touch left{timeout}; echo begun; sleep 600"
        result = refused(team.one, "run_command", command=command, timeoutMs=timeout)
        assert result["error"] == "command_timeout"
        assert (result["timedOut"], result["timeoutMs"]) == (True, timeout)
        return result

    result = run_until_begun(run, lambda result: result["stdout"])
    assert (result["stdout"], result["changed"]) == ("begun\n", [f"left{result['timeoutMs']}"])
    *_, ended = rows_of(team, "end_command")
    assert ended.detail["timed_out"] is True


def test_one_that_is_stopped_leaves_nothing_running(team: Team) -> None:
    """Another thread stops it while it runs, as if its agent was cancelled or terminated."""
    marked = token()
    heard = threading.Event()
    ending = team.workspace.subscribe(lambda: heard.set() if rows_with(team, "command_output") else None)
    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(
            refused,
            team.one,
            "run_command",
            command=f"echo begun; touch left; (setsid sleep {marked} &); sleep 60",
        )
        assert heard.wait(30)
        assert team.workspace.commands.stop("bob") == 0
        assert team.workspace.commands.stop("alice") == 1
        result = running.result(30)
    ending()
    assert result["error"] == "command_stopped"
    assert (result["stdout"], result["changed"]) == ("begun\n", ["left"])
    (ended,) = rows_of(team, "end_command")
    assert (ended.actor, ended.detail["stopped"], ended.detail["timed_out"]) == ("alice", True, False)
    assert json.loads(team.workspace.journal.content(ended.seq) or "")["stopped"] is True
    assert marked_processes(marked) == []
    assert team.workspace.commands.stop("alice") == 0


@pytest.mark.parametrize("word", ["terminate_agent", "end_task"])
@pytest.mark.parametrize("is_elsewhere", [False, True])
def test_the_end_of_its_agent_stops_it(team: Team, root: Path, word: str, is_elsewhere: bool) -> None:
    """Only the thread that calls the tool runs the agent."""
    marked = token()
    heard = threading.Event()
    ending = team.workspace.subscribe(lambda: heard.set() if rows_with(team, "command_output") else None)
    task = team.workspace.task_files.task_of(CallContext("alice"))
    given = {
        "terminate_agent": {"agent_id": "alice"},
        "end_task": {"task_id": task, "status": "cancelled", "report": "Enough."},
    }[word]
    with ThreadPoolExecutor(1) as thread, ExitStack() as stack:
        other = team.workspace
        if is_elsewhere:
            other = stack.enter_context(Workspace.open(root, scan=False))
        command = f"echo begun; (setsid sleep {marked} &); sleep 60"
        running = thread.submit(refused, team.one, "run_command", command=command)
        assert heard.wait(30)
        ok(other.tools_for_human("dana"), word, **given)
        result = running.result(30)
    ending()
    assert (result["error"], result["stdout"]) == ("command_stopped", "begun\n")
    assert marked_processes(marked) == []
    assert refused(team.one, "run_command", command="true")["error"] == "agent_ended"


def test_one_that_the_end_of_its_process_cut_off_has_a_last_row(team: Team, root: Path) -> None:
    given: dict[str, Json] = {"command": "echo > begun; read line < go; echo > left; echo > begun; sleep 600"}
    program = f"""
from watchroom import Workspace
with Workspace.open({str(root)!r}, scan=False) as workspace:
    workspace.tools("alice").dispatch_tool_call("run_command", {given!r}, call="s1/1/0")
"""
    ok(team.one, "write_file", path="a.txt", content="before")
    os.mkfifo(team.folder / "begun")
    os.mkfifo(team.folder / "go")
    with subprocess.Popen([sys.executable, "-c", program]) as process:
        (team.folder / "begun").read_text()
        ok(team.one, "run_command", command="true")
        assert len(rows_of(team, "end_command")) == 1, "what another process runs is not over"
        (team.folder / "go").write_text("now\n")
        (team.folder / "begun").read_text()
        kill_and_miss(process, team.workspace.journal)
    with Workspace.open(root, scan=False, sandbox=machine_sandbox()) as again:
        told = again.tools("alice").dispatch_tool_call("run_command", given, call="s1/1/0", again=True)
        assert told["error"] == "command_interrupted"
        assert again.verify() == [], "what it left has rows before its last one"
        ok(again.tools("alice"), "run_command", command="true")
        ok(again.tools("alice"), "run_command", command="true")
    begun = next(row for row in rows_of(team, "run_command") if "sleep 600" in row.message)
    (ended,) = [row for row in rows_of(team, "end_command") if row.path == begun.path]
    assert (ended.actor, ended.version, ended.detail["interrupted"]) == ("system", 2, True)


def test_one_with_a_forbidden_word_is_not_run(team: Team) -> None:
    result = refused(team.one, "run_command", command="touch made; sudo id")
    assert result["error"] == "command_blocked"
    assert "sudo" in result["reason"]
    assert not (team.folder / "made").exists()
    (row,) = rows_of(team, "run_command")
    assert (row.outcome, row.error) == ("denied", "command_blocked")


def test_the_other_task_and_the_journal_are_not_there(team: Team) -> None:
    ok(team.other, "write_file", path="secret.txt", content="theirs")
    for path in (team.others, team.workspace.root):
        result = refused(team.one, "run_command", command=f"ls {path}")
        assert "No such file" in result["stderr"]
    # A read-only empty folder takes the place of a repository.
    there = ok(team.one, "run_command", command="ls -a -I .git")["stdout"]
    assert there == ".\n..\n.watchroom\n"
    assert ok(team.one, "run_command", command="ls -a .watchroom")["stdout"] == ".\n..\n"


@pytest.mark.parametrize("command", ["touch made; echo one", "touch made; echo wrong >&2; exit 3"])
def test_a_call_that_was_cut_off_after_its_command_ended_is_told_how(team: Team, command: str) -> None:
    given: dict[str, Json] = {"command": command}
    first = team.one.dispatch_tool_call("run_command", given, call="s1/1/0")
    assert first["changed"] == ["made"]
    (team.folder / "made").unlink()
    assert team.one.dispatch_tool_call("run_command", given, call="s1/1/0", again=True) == first
    assert not (team.folder / "made").exists(), "it did not run once more"


def test_of_a_command_that_was_cut_off_itself_nobody_knows_how_far_it_got(team: Team) -> None:
    given: dict[str, Json] = {"command": "touch made; echo begun; sleep 600"}
    with ThreadPoolExecutor() as pool:
        running = pool.submit(team.one.dispatch_tool_call, "run_command", given, call="s1/1/0")
        wait_for(team, "command_output")
        again = team.one.dispatch_tool_call("run_command", given, call="s1/1/0", again=True)
        team.workspace.commands.stop("alice")
        assert running.result(30)["error"] == "command_stopped"
    assert again["error"] == "command_interrupted"
    assert len([row for row in rows_of(team, "run_command") if row.zone == "command"]) == 1


def test_what_commands_changed_that_ran_at_once_is_marked(team: Team) -> None:
    (task,) = [each for each in team.workspace.tasks.list() if each.folder == str(team.folder.resolve())]
    team.workspace.register([Agent("carol", task=task.id)])
    carol = team.workspace.tools("carol")
    with ThreadPoolExecutor() as pool:
        os.mkfifo(team.folder / "go")
        slow = pool.submit(ok, team.one, "run_command", command="read line < go; touch a")
        wait_for(team, "run_command")
        ok(carol, "run_command", command="touch b")
        (team.folder / "go").write_text("now\n")
        slow.result(30)
    ok(carol, "run_command", command="touch alone")
    begun = {row.message: row.path for row in rows_of(team, "run_command") if row.zone == "command"}
    beside = {
        row.path.partition("/")[2]: row.detail.get("beside")
        for row in rows_of(team, "run_command")
        if row.zone == "file"
    }
    assert beside == {"b": [begun["read line < go; touch a"]], "a": [begun["touch b"]], "alone": None}
