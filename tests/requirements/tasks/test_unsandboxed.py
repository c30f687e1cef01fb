"""A machine without a sandbox: nothing runs, unless people are asked about each command."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

import pytest
from calls import ok, refused
from clock import JumpingMonotonicClock
from sandbox.processes import marked_processes, token
from tasking import Team
from timeouts import run_until_begun
from watchroom import Agent, Row, Workspace
from watchroom.agents.clients.events import ClientInfo, PromptSubmitted, SessionEnded
from watchroom.agents.clients.session import ClientSession
from watchroom.errors import ConfigInvalid, NoSandbox
from watchroom.features.config.rows import dump_config, parse_config
from watchroom.model import ASK
from watchroom.platform.sandbox.limits import CgroupFactory
from watchroom.platform.sandbox.probe import SandboxProbe
from watchroom.platform.sandbox.supervised import UnsandboxedBackend
from zones.test_open_requests import fill_open_requests


class Asking(NamedTuple):
    """A team with an agent that runs a command, and the request for it."""

    team: Team
    begin: Callable[..., Future[dict[str, Any]]]
    asked: Callable[[], Row]


@pytest.fixture
def team(tmp_path: Path, root: Path) -> Iterator[Team]:
    with Workspace.open(root, sandbox=SandboxProbe((), False)) as workspace:
        folders = [tmp_path / "one", tmp_path / "other"]
        for agent, folder in zip(("alice", "bob"), folders, strict=True):
            task = workspace.tasks.submit("human:dana", "Build something.", folder)
            workspace.register([Agent(agent, task=task.id)])
        yield Team(workspace, workspace.tools("alice"), workspace.tools("bob"), *folders)


@pytest.fixture
def asking(team: Team) -> Iterator[Asking]:
    try:
        UnsandboxedBackend(CgroupFactory())
    except NoSandbox:
        pytest.skip("commands are ended here only with a backend")
    opt_in(team.workspace)
    rows: SimpleQueue[Row] = SimpleQueue()
    seen = team.workspace.journal.last_seq()

    def look() -> None:
        nonlocal seen
        for row in team.workspace.journal.rows(seen, limit=100):
            seen = row.seq
            if row.tool == ASK:
                rows.put(row)

    end = team.workspace.subscribe(look)
    with ThreadPoolExecutor(1) as thread:
        yield Asking(
            team,
            lambda command, **more: thread.submit(
                lambda: team.one.dispatch_tool_call("run_command", {"command": command, **more})
            ),
            lambda: rows.get(timeout=30),
        )
        team.workspace.commands.stop("alice")
    end()


def opt_in(workspace: Workspace) -> None:
    config = Path(workspace.root) / ".watchroom" / "config.toml"
    config.write_text('unfenced_commands = "ask"\n' + config.read_text())
    workspace.scan()


def test_nothing_runs_unless_the_workspace_opted_in(team: Team) -> None:
    result = refused(team.one, "run_command", command="touch made")
    assert result["error"] == "no_sandbox"
    assert not (team.folder / "made").exists()


def test_opting_in_is_a_line_of_the_config() -> None:
    config = parse_config('unfenced_commands = "ask"')
    assert config.unfenced_commands == "ask"
    assert parse_config(dump_config(config)) == config
    assert parse_config("").unfenced_commands == "refuse"
    with pytest.raises(ConfigInvalid, match="unfenced_commands"):
        parse_config('unfenced_commands = "allow"')


def test_what_a_person_approves_of_runs(asking: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_KEY", "watchroom-secret-5309")
    running = asking.begin("echo well; env; touch made; pwd")
    asked = asking.asked()
    assert (asked.actor, asked.detail["tools"]) == ("alice", ["run_command"])
    assert asked.detail["subjects"] == ["echo well; env; touch made; pwd"]
    assert "sandbox" in asked.message
    assert not (asking.team.folder / "made").exists()
    ok(asking.team.workspace.tools_for_human("ada"), "answer_request", request=asked.seq, approved=True)
    result = running.result(30)
    assert result["success"] is True
    assert result["stdout"].startswith("well\n")
    assert result["stdout"].endswith(f"{asking.team.folder}\n")
    assert "5309" not in result["stdout"]
    assert result["changed"] == ["made"]


def test_an_answer_from_another_process_counts(asking: Asking, root: Path) -> None:
    running = asking.begin("echo well")
    asked = asking.asked()
    with Workspace.open(root, scan=False) as other:
        ok(other.tools_for_human("ada"), "answer_request", request=asked.seq, approved=True)
    assert running.result(30)["stdout"] == "well\n"


def test_what_a_person_rejects_does_not(asking: Asking) -> None:
    running = asking.begin("touch made")
    person = asking.team.workspace.tools_for_human("ada")
    ok(person, "answer_request", request=asking.asked().seq, approved=False, reason="Not on my machine.")
    result = running.result(30)
    assert result["error"] == "command_rejected"
    assert "Not on my machine." in result["message"]
    assert not (asking.team.folder / "made").exists()
    rows = asking.team.workspace.journal.rows(limit=1000)
    (row,) = [row for row in rows if row.tool == "run_command"]
    assert (row.outcome, row.error) == ("denied", "command_rejected")


def test_what_a_person_changes_runs_as_changed(asking: Asking) -> None:
    running = asking.begin("rm -rf build")
    asked = asking.asked()
    decision = {"call_id": "command", "approved": True, "arguments": '{"command": "echo build"}'}
    ok(
        asking.team.workspace.tools_for_human("ada"),
        "answer_request",
        request=asked.seq,
        decisions=[decision],
    )
    assert running.result(30)["stdout"] == "build\n"


def test_what_nobody_answers_in_time_does_not_run(asking: Asking) -> None:
    running = asking.begin("touch made")
    asked = asking.asked()
    expires = asked.detail["expires"]
    assert isinstance(expires, int)
    assert 0 < expires - asked.time <= 600 * 10**9
    asking.team.workspace.requests.expire(asked.path)
    assert running.result(30)["error"] == "command_rejected"
    assert not (asking.team.folder / "made").exists()


def test_one_that_is_stopped_while_it_waits_asks_no_more(asking: Asking) -> None:
    running = asking.begin("touch made")
    asked = asking.asked()
    assert asking.team.workspace.commands.stop("alice") == 1
    assert running.result(30)["error"] == "command_stopped"
    ended = asking.team.workspace.requests.ended(asked.path)
    assert ended is not None
    assert ended.answer is None


def pause_while_asked(asking: Asking) -> tuple[ClientSession, Future[dict[str, Any]]]:
    """A command that a person approves after another person has paused its agent."""
    workspace = asking.team.workspace
    session = ClientSession(workspace, "alice", "s-1", ClientInfo("claude"))
    session.record(PromptSubmitted("Go"))
    running = asking.begin("touch made")
    asked = asking.asked()
    person = workspace.tools_for_human("ada")
    ok(person, "pause_agent", agent_id="alice")
    ok(person, "answer_request", request=asked.seq, approved=True)
    with pytest.raises(TimeoutError):
        running.result(1.2)
    assert not (asking.team.folder / "made").exists()
    return session, running


def test_an_approved_command_waits_until_its_paused_agent_is_resumed(asking: Asking) -> None:
    _, running = pause_while_asked(asking)
    ok(asking.team.workspace.tools_for_human("ada"), "resume_agent", agent_id="alice")
    assert running.result(30)["changed"] == ["made"]


def test_a_command_is_not_run_in_a_pause_that_runs_out(
    asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = JumpingMonotonicClock(monkeypatch)
    _, running = pause_while_asked(asking)
    clock.ahead = 600
    assert running.result(30)["error"] == "agent_paused"
    assert not (asking.team.folder / "made").exists()


def test_the_end_of_a_paused_session_releases_no_command(asking: Asking) -> None:
    session, running = pause_while_asked(asking)
    session.record(SessionEnded("cancelled", "ada"))
    assert running.result(30)["error"] == "agent_paused"
    assert not (asking.team.folder / "made").exists()


def test_one_that_is_stopped_in_a_pause_does_not_run(asking: Asking) -> None:
    _, running = pause_while_asked(asking)
    asking.team.workspace.commands.stop("alice")
    assert running.result(30)["error"] == "command_stopped"
    assert not (asking.team.folder / "made").exists()


def test_an_approved_command_of_an_agent_that_was_stopped_meanwhile_is_refused(asking: Asking) -> None:
    """At a budget, which another call of the agent reached."""
    workspace = asking.team.workspace
    session = ClientSession(workspace, "alice", "s-1", ClientInfo("claude"))
    session.record(PromptSubmitted("Go"))
    running = asking.begin("touch made")
    approval = asking.asked()
    person = workspace.tools_for_human("ada")
    ok(person, "set_budget", scope="agent", measure="steps", most=1)
    assert workspace.budgets.hold_call("alice") is not None
    ok(person, "answer_request", request=asking.asked().seq, values=["stop"])
    ok(person, "answer_request", request=approval.seq, approved=True)
    assert running.result(30)["error"] == "budget_reached"
    assert not (asking.team.folder / "made").exists()


def test_a_command_that_nobody_can_be_asked_about_does_not_run(asking: Asking) -> None:
    """The agent has too many open requests."""
    fill_open_requests(asking.team.workspace)
    assert asking.begin("touch made").result(30)["error"] == "too_many_requests"
    assert not (asking.team.folder / "made").exists()


def test_a_forbidden_word_is_not_even_asked_about(asking: Asking) -> None:
    assert asking.begin("sudo id").result(30)["error"] == "command_blocked"


def test_it_is_ended_with_all_that_it_started(asking: Asking) -> None:
    marked = token()
    command = f"(setsid sleep {marked} &); echo begun; sleep {marked}"
    person = asking.team.workspace.tools_for_human("ada")

    def run(seconds: float) -> dict[str, Any]:
        running = asking.begin(command, timeoutMs=int(seconds * 1000))
        ok(person, "answer_request", request=asking.asked().seq, approved=True)
        return running.result(60)

    result = run_until_begun(run, lambda result: result["stdout"])
    assert (result["error"], result["stdout"]) == ("command_timeout", "begun\n")
    assert marked_processes(marked) == []


def test_it_gains_no_rights(asking: Asking) -> None:
    running = asking.begin("grep -E 'NoNewPrivs|CapEff' /proc/self/status; ulimit -c; echo ${#TMPDIR}")
    person = asking.team.workspace.tools_for_human("ada")
    ok(person, "answer_request", request=asking.asked().seq, approved=True)
    words = running.result(30)["stdout"].split()
    assert words[:5] == ["CapEff:", "0" * 16, "NoNewPrivs:", "1", "0"]
    assert int(words[5]) > len(os.sep)
