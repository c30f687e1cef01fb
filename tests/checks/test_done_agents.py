"""Agents of each kind that say that they are done, while a check fails, hangs, or is killed with its process."""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from checks.checking import agent_of, begins, configure, ends, model_of, sent_back
from child_processes import is_running
from clients.attached import PATIENCE, AttachedClient, attendant, wait_for
from clients.test_acp import Run, says
from requirements.tasks.test_society_at_work import Minds, call
from service_process import running_service
from tasking import machine_sandbox
from trees.git_repository import Repository
from watchroom import Agent, Workspace
from watchroom.agents.society import Society
from watchroom.features.checks.rows import read_end
from watchroom.features.sessions.runtime.models import Reply
from watchroom.kernel.call_context import CallContext
from watchroom.model import BEGIN_CHECK, END_CHECK, Row


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def team(repository: Repository) -> Iterator[Workspace]:
    """The workspace of the repository, which the service keeps."""
    with Workspace.open(repository.root, agents=["alice"]) as workspace:
        yield workspace


def until(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def is_end(sequel: str) -> Callable[[Row], bool]:
    return lambda row: row.tool == END_CHECK and read_end(row).sequel == sequel


class Client(AttachedClient):
    """A client in a repository, as Claude Code is one."""

    def __init__(self, repository: Repository, *, agent: str = "alice", has_terminal: bool = True) -> None:
        super().__init__(repository.root, agent=agent, has_terminal=has_terminal)
        self._cwd = str(repository.folder)

    def begin(self, name: str, **more: object) -> subprocess.Popen[str]:
        return super().begin(name, **{"cwd": self._cwd, **more})

    def woken(self, hook: subprocess.Popen[str]) -> str:
        """The prompt with which the hook wakes the idle client."""
        _, said = hook.communicate(timeout=PATIENCE)
        assert hook.returncode == 2
        return said


async def test_an_acp_agent_is_sent_back_twice_and_then_unproven(
    kept: Workspace, repository: Repository
) -> None:
    configure(kept, "echo '2 failed, 39 passed in 0.1s'; exit 1")
    run = Run(kept, repository.folder, [says("Done")])
    await run.once()
    prompts = [each["prompt"][0]["text"] for each in run.sent("session/prompt")]
    assert prompts[0] == "Do it"
    assert prompts[1:] == sent_back(kept)
    assert [end.sequel for end in ends(kept)] == ["back", "back", "unproven"]
    assert [need.agent for need in model_of(kept).needs if need.kind == "unproven"] == ["alice"]


async def test_an_acp_agent_that_is_ended_ends_its_check(kept: Workspace, repository: Repository) -> None:
    mark = repository.folder.parent / "started"
    configure(kept, f"touch {mark}; sleep 1000")
    run = Run(kept, repository.folder, [says("Done")])
    going = run.start()
    await asyncio.to_thread(until, mark.exists)
    kept.session_zone.control(CallContext("human:ann", "cancel_agent"), "alice", None, "")
    await asyncio.wait_for(going, PATIENCE)
    assert [end.state for end in ends(kept)] == ["interrupted"]
    assert agent_of(kept).check is not None
    assert not agent_of(kept).check.is_running  # type: ignore[union-attr]


def test_an_attached_agent_is_woken_twice_and_then_unproven(team: Workspace, repository: Repository) -> None:
    configure(team, "echo '2 failed, 39 passed in 0.1s'; exit 1")
    client = Client(repository)
    with attendant(repository.root):
        client.hook("UserPromptSubmit", prompt="Go")
        for _ in range(2):
            said = client.woken(client.begin("Stop"))
            assert "2 failed, 39 passed" in said
            # A client may tell of this prompt too. It is not a person's.
            client.hook("UserPromptSubmit", prompt=said)
        idle = client.begin("Stop")
        wait_for(team, is_end("unproven"))
        assert idle.poll() is None
        client.hook("UserPromptSubmit", prompt="Something else")
        assert client.answer(idle) is None
        # What a person says begins the count again.
        assert "1 of 2" in client.woken(client.begin("Stop"))
    assert [end.sequel for end in ends(team)] == ["back", "back", "unproven", "back"]
    assert len([need for need in model_of(team).needs if need.kind == "unproven"]) == 1


def test_a_prompt_that_an_agent_causes_does_not_begin_the_count_again(
    team: Workspace, repository: Repository
) -> None:
    configure(team, "false")
    client = Client(repository)
    with attendant(repository.root):
        client.hook("UserPromptSubmit", prompt="Go")
        for number in range(2):
            client.woken(client.begin("Stop"))
            ended = f"<task-notification>\n<task-id>b{number}</task-id>\n</task-notification>"
            client.hook("UserPromptSubmit", prompt=ended)
        idle = client.begin("Stop")
        first = wait_for(team, is_end("unproven"))
        # News wakes it too, and the client reports them as a prompt.
        team.messages.notify("alice", "Somebody has landed a change.")
        client.hook("UserPromptSubmit", prompt=client.woken(idle))
        idle = client.begin("Stop")
        wait_for(team, lambda row: row.seq > first.seq and is_end("unproven")(row))
        client.hook("UserPromptSubmit", prompt="Stop it")
        assert client.answer(idle) is None
    assert [end.sequel for end in ends(team)] == ["back", "back", "unproven", "unproven"]


def test_the_hook_of_a_stop_does_not_wait_for_the_check(team: Workspace, repository: Repository) -> None:
    go = repository.folder.parent / "go"
    configure(team, f"while ! [ -e {go} ]; do sleep 0.05; done")
    client = Client(repository, has_terminal=False)
    with attendant(repository.root):
        client.hook("UserPromptSubmit", prompt="Go")
        client.hook("Stop")
        wait_for(team, lambda row: row.tool == BEGIN_CHECK)
        assert ends(team) == []
        check = agent_of(team).check
        assert check is not None
        assert check.is_running
        go.touch()
        wait_for(team, is_end("done"))


def test_a_person_is_told_of_an_agent_that_nothing_wakes(team: Workspace, repository: Repository) -> None:
    configure(team, "false")
    client = Client(repository, has_terminal=False)
    with attendant(repository.root):
        client.hook("UserPromptSubmit", prompt="Go")
        client.hook("Stop")
        wait_for(team, is_end("unproven"))
        # It reads the failure with its next prompt.
        said = client.hook("UserPromptSubmit", prompt="And?")
        assert said is not None
        assert "this check failed" in said["hookSpecificOutput"]["additionalContext"]


def test_a_check_that_hangs_is_ended_in_the_service(team: Workspace, repository: Repository) -> None:
    configure(team, "sleep 1000", "time_limit = 1", "attempts = 0")
    client = Client(repository, has_terminal=False)
    with attendant(repository.root):
        client.hook("UserPromptSubmit", prompt="Go")
        client.hook("Stop")
        row = wait_for(team, is_end("unproven"))
    assert read_end(row).state == "timed_out"


def test_a_check_whose_service_is_killed_runs_once_more(team: Workspace, repository: Repository) -> None:
    mark = repository.folder.parent / "started"
    pid = repository.folder.parent / "pid"
    configure(team, f"if [ -e {mark} ]; then exit 0; fi; echo $$ > {pid}; touch {mark}; sleep 1000")
    client = Client(repository, has_terminal=False)
    with attendant(repository.root) as service:
        client.hook("UserPromptSubmit", prompt="Go")
        client.hook("Stop")
        until(mark.exists)
        service.kill()
        service.wait(PATIENCE)
    running = int(pid.read_text())
    until(lambda: not is_running(running))
    with running_service():
        client.hook("UserPromptSubmit", prompt="Are you there?")
        wait_for(team, is_end("done"))
    assert [(end.state, end.sequel) for end in ends(team)] == [("interrupted", "again"), ("passed", "done")]
    assert len(begins(team)) == 2


def test_work_that_waits_for_its_check_is_checked_after_the_service_was_killed(
    team: Workspace, repository: Repository
) -> None:
    mark, go = (repository.folder.parent / name for name in ("started", "go"))
    configure(team, f"touch {mark}; while ! [ -e {go} ]; do sleep 0.05; done")
    team.register([Agent("bob")])
    alice, bob = (Client(repository, agent=name, has_terminal=False) for name in ("alice", "bob"))
    with attendant(repository.root) as service:
        for client in (alice, bob):
            client.hook("UserPromptSubmit", prompt="Go")
            client.hook("Stop")
        until(mark.exists)
        service.kill()
        service.wait(PATIENCE)
    assert {row.path for row in begins(team)} == {"alice"}
    go.touch()
    with running_service():
        alice.hook("UserPromptSubmit", prompt="Are you there?")
        wait_for(team, lambda row: row.path == "bob" and is_end("done")(row))


def test_an_agent_of_a_task_is_sent_back_in_its_folder(tmp_path: Path) -> None:
    with Workspace.open(tmp_path / "team", sandbox=machine_sandbox()) as workspace:
        configure(workspace, "grep -q right result.txt", "attempts = 1")
        minds = Minds(
            root=[Reply("Done."), call("write_file", path="result.txt", content="wrong\n"), Reply("Done.")]
        )
        society = Society(workspace, minds)
        task = society.submit_requirement("Build it.", tmp_path / "one", by="human:dana")
        asyncio.run(society.run(task.id, stay=False))
        assert [(end.state, end.sequel) for end in ends(workspace)] == [
            ("failed", "back"),
            ("failed", "unproven"),
        ]
        assert len([text for text in sent_back(workspace, "root") if "check" in text]) == 1
