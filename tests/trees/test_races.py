"""``watchroom race``: the same prompt for several agents, each in its own tree, and the pick of one."""

from __future__ import annotations

import json
import os
import pty
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from child_processes import ends
from cli.running import Captured, as_typed, misuse, printed, printed_json, refusal, run
from service_process import PATIENCE
from trees import race_client
from trees.git_repository import Repository
from watchroom import Workspace
from watchroom.agents.clients.configuration import AGENT_VARIABLE
from watchroom.agents.clients.kept_client import MAX_LOG_BYTES
from watchroom.features.config.rows import Agent
from watchroom.features.races.reads import RaceReader
from watchroom.features.races.rows import BEGIN_RACE, END_RACE, PICK_RACE
from watchroom.model import ASK

TEXT: Final = "one\ntwo\nthree\nfour\nfive\n"
"""What a.txt has at first."""
FAST: Final = ("--client", "opencode")
"""The client whose script runs no hooks, for tests with a short timeout."""


class World:
    """A repository, clients that do what the test says, and what they have seen."""

    def __init__(self, repository: Repository, seen: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.repository = repository
        self.seen = seen
        self._patch = monkeypatch

    def acts(self, **acts: Mapping[str, Any]) -> None:
        """Set what the clients do, by ``n`` and the number of their tree."""
        self._patch.setenv("RACE_ACTS", json.dumps({name[1:]: given for name, given in acts.items()}))

    def saw(self, number: int) -> dict[str, Any]:
        """Return what a client has seen."""
        found: dict[str, Any] = json.loads((self.seen / f"{number}.json").read_text())
        return found

    def folder(self, name: str) -> Path:
        return self.repository.folder.with_name("project.trees") / name

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a race as it is typed, in a session of its own."""
        return subprocess.Popen(
            as_typed("race", *arguments),
            cwd=self.repository.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def wait_for(self, *names: str) -> None:
        """Wait until the clients have written these files."""
        deadline = time.monotonic() + PATIENCE
        while not all((self.seen / each).exists() for each in names):
            assert time.monotonic() < deadline, [*self.seen.iterdir()]
            time.sleep(0.05)

    def rows(self, tool: str) -> list[Any]:
        with Workspace.open(self.repository.root, create=False) as workspace:
            return [row for row in workspace.journal.rows(0) if row.tool == tool]


@pytest.fixture
def seen(repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder in which the clients write what they have seen."""
    programs, seen = tmp_path / "programs", tmp_path / "seen"
    for each in (programs, seen):
        each.mkdir()
    for name in ("claude", "codex", "opencode"):
        (programs / name).write_text(f'#!/bin/sh\nexec {sys.executable} {race_client.__file__} "$@"\n')
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("RACE_SEEN", str(seen))
    monkeypatch.delenv(AGENT_VARIABLE, raising=False)
    monkeypatch.chdir(repository.folder)
    return seen


@pytest.fixture
def world(seen: Path, service: None, repository: Repository, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(repository, seen, monkeypatch)


def agents(found: Any, *names: str) -> list[Any]:
    """Return these fields of the agents in the JSON of a race."""
    return [tuple(each[name] for name in names) for each in found["agents"]]


# A race


@pytest.mark.slow(6)
def test_agents_work_on_one_prompt_and_a_person_picks_one(capsys: Captured, world: World) -> None:
    world.repository.write("deep/c.txt", "c\n")
    world.repository.commit()
    start = world.repository.git("rev-parse", "HEAD")
    world.acts(
        n1={"write": {"a.txt": TEXT + "six\n", "new.txt": "new\n"}, "model": "claude-sonnet-4-5"},
        n2={"write": {"b.txt": "broken\n"}, "model": "mystery"},
        n3={"commits": True, "write": {"a.txt": "one\n"}, "status": 3, "says": "oh no\n"},
    )
    status, out, said = run(
        *(capsys, "race", "3", "Add a sixth line", "--client", "claude --model x", "--client", "codex"),
        *("--check", "grep -qx b b.txt", "--name", "six"),
    )
    assert status == 0, said
    lines = [line.split() for line in out.splitlines()]
    assert lines[0] == [
        "#",
        *["agent", "client", "files", "added", "removed", "check", "cost", "time", "state"],
    ]
    # The clients start at the same time, so either can be the first.
    assert {lines[1].pop(1), lines[3].pop(1)} == {"claude1", "claude2"}
    assert lines[1][:8] == ["1", "claude", "--model", "x", "2", "2", "0", "passed"]
    assert lines[1][8].startswith("$0.0")
    assert lines[2][:8] == ["2", "codex1", "codex", "1", "1", "1", "failed", "(1)"]
    assert "race-six-3: the output of its client is in " in said
    assert "  oh no" in said
    assert "watchroom race pick six K" in out
    # What the clients got.
    for number in (1, 2, 3):
        saw = world.saw(number)
        assert (saw["prompt"], saw["input"]) == (["Add a sixth line"], "")
        assert saw["folder"] == saw["pwd"] == str(world.folder(f"race-six-{number}"))
    assert world.saw(1)["words"][-3:] == ["-p", "--model", "x"]
    assert world.saw(2)["words"][-3:] == ["exec", "-c", 'sandbox_mode="workspace-write"']
    found = printed_json(capsys, "race", "show", "--json")
    assert agents(found, "files", "added", "removed", "state", "status") == [
        (2, 2, 0, "done", 0),
        (1, 1, 1, "done", 0),
        (1, 0, 4, "failed", 3),
    ]
    assert [each["check"]["status"] for each in found["agents"]] == [0, 1, 0]
    assert found["agents"][0]["cost"] > 0
    log = Path(world.repository.root, ".watchroom", "races", "six-3.log")
    assert 0 < log.stat().st_size <= MAX_LOG_BYTES
    assert log.stat().st_mode & 0o777 == 0o600
    # The pick.
    out = printed(capsys, "race", "pick", "six", "1")
    assert "race-six-2 is kept as refs/watchroom/races/six/2." in out
    assert f"Picked race-six-1: {world.folder('race-six-1')}" in out
    assert [world.folder(f"race-six-{number}").exists() for number in (1, 2, 3)] == [True, False, False]
    git = world.repository.git
    assert git("show", "refs/watchroom/races/six/2:b.txt") == "broken"
    assert git("show", "refs/watchroom/races/six/3:a.txt") == "one"
    assert git("merge-base", start, "refs/watchroom/races/six/3") == start
    assert git("for-each-ref", "--format=%(refname)", "refs/watchroom").splitlines() == [
        "refs/watchroom/races/six/2",
        "refs/watchroom/races/six/3",
    ]
    out = printed(capsys, "race", "show", "six")
    assert "picked" in out
    assert "2 is kept as refs/watchroom/races/six/2." in out
    assert printed_json(capsys, "race", "show", "six", "--json")["picked"] == 1
    # Again: nothing more happens. Another: refused.
    assert "kept as" not in printed(capsys, "race", "pick", "six", "1")
    assert "another agent's work was picked" in refusal(capsys, "race", "pick", "six", "2")
    assert len(world.rows(PICK_RACE)) == 2, "the second is the refused one"


@pytest.mark.slow(3)
def test_tokens_without_a_price_are_no_zero_dollars(capsys: Captured, world: World) -> None:
    world.acts(n1={"model": "mystery", "write": {"a.txt": "x\n"}}, n2={})
    status, out, said = run(capsys, "race", "2", "Go")
    assert status == 0, said
    assert "unpriced (1.1k tokens)" in out
    assert "$" not in out
    found = printed_json(capsys, "race", "show", "--json")
    assert agents(found, "cost", "tokens") == [(None, 1100), (None, 0)]


@pytest.mark.slow(6)
def test_an_agent_that_waits_for_a_person_is_shown_so(capsys: Captured, world: World) -> None:
    world.acts(n1={"asks": True, "write": {"a.txt": "x\n"}}, n2={})
    process = world.start("2", "Go")
    world.wait_for("2.wrote")
    assert process.stderr is not None
    assert any("race-1-1  claude  waiting for a person" in line for line in process.stderr)
    assert "waiting for a person" in printed(capsys, "race", "show").splitlines()[1]
    found = printed_json(capsys, "race", "show", "--json")
    assert agents(found, "waiting", "state") == [(True, "running"), (False, "done")]
    (asked,) = world.rows(ASK)
    printed(capsys, "answer", ".", str(asked.seq), "--approve")
    out, said = process.communicate(timeout=3 * PATIENCE)
    assert process.returncode == 0, said
    assert [line.split()[-1] for line in out.splitlines()[1:3]] == ["done", "done"]


@pytest.mark.parametrize("client", ["claude", "codex", "opencode"])
def test_a_prompt_that_looks_like_an_option_is_a_prompt(capsys: Captured, world: World, client: str) -> None:
    status, _, said = run(capsys, "race", "2", "--client", client, "--", "--help; rm -rf $HOME")
    assert status == 0, said
    assert world.saw(2)["prompt"] == ["--help; rm -rf $HOME"]
    assert "watchroom race" in misuse(capsys, "race", "2", "--", "-")


def test_wrong_arguments_are_refused_before_anything_is_made(capsys: Captured, world: World) -> None:
    for count in ("1", "9", "0", "-2", "x", "1000000"):
        assert "2 to 8" in misuse(capsys, "race", "--", count, "Go")
    assert "one prompt in quotes" in misuse(capsys, "race", "2", "two", "words")
    assert "no text" in misuse(capsys, "race", "2", "  ")
    assert "100,000 bytes" in misuse(capsys, "race", "2", "长" * 40_000)
    assert "watchroom race" in misuse(capsys, "race", "2", "Go", "--as", "dana")
    assert "not a client" in misuse(capsys, "race", "2", "Go", "--client", "vim")
    assert "not a client" in misuse(capsys, "race", "2", "Go", "--client", "claude -- x")
    assert "not a client" in misuse(capsys, "race", "2", "Go", "--client", "claude 'x")
    assert "above 0" in misuse(capsys, "race", "2", "Go", "--timeout", "0")
    assert "above 0" in misuse(capsys, "race", "2", "Go", "--timeout", "nan")
    assert "watchroom race" in misuse(capsys, "race", "2", "Go", "--land")
    assert "watchroom race" in misuse(capsys, "race", "show", "--check", "true")
    assert "watchroom race" in misuse(capsys, "race", "pick", "x")
    assert "at most 40" in refusal(capsys, "race", "2", "Go", "--name", "a/b")
    assert "does not exist" in refusal(capsys, "race", "2", "Go", "--from=--output=x")
    for command in (("race", "show"), ("race", "show", "9")):
        said = refusal(capsys, *command)
        assert 'There are no races. Start one: watchroom race 3 "PROMPT"' in said
    assert world.repository.git("worktree", "list").count("\n") == 0
    assert world.repository.git("branch", "--list", "race-*") == ""


def test_an_agent_can_neither_race_nor_pick(
    capsys: Captured, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    status, _, said = run(capsys, "race", "2", "Go")
    assert status == 0, said
    monkeypatch.setenv(AGENT_VARIABLE, "claude*")
    assert "only people" in refusal(capsys, "race", "2", "Go")
    assert "only people" in refusal(capsys, "race", "pick", "1", "1")
    with Workspace.open(world.repository.root, create=False) as workspace:
        race = RaceReader(workspace.journal).read("1")
        workspace.register([Agent("alice")])
        answer = workspace.tools("alice").dispatch_tool_call("pick_race", {"race": "1", "number": 1})
    assert race is not None
    assert race.picked is None
    assert answer["success"] is False
    assert world.folder("race-1-2").exists()


@pytest.mark.slow(4)
def test_a_terminal_shows_each_agent_while_it_works(world: World) -> None:
    world.acts(n1={"hangs": True, "write": {"a.txt": TEXT + "six\n"}}, n2={})
    master, terminal = pty.openpty()
    with subprocess.Popen(
        as_typed("race", *FAST, "2", "Go", "--timeout", "0.15"),
        cwd=world.repository.folder,
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
    ) as process:
        os.close(terminal)
        said = b"".join(iter(lambda: _read(master), b"")).decode()
        assert process.wait(3 * PATIENCE) == 0, said
    os.close(master)
    assert "race-1-1  opencode  running  0." in said
    assert re.search(r"race-1-1  opencode  running  \S+ s  files: 1  \+1 −0", said)
    assert "race-1-1  opencode  timeout" in said
    assert "race-1-2  opencode  done" in said


def _read(master: int) -> bytes:
    try:
        return os.read(master, 4096)
    except OSError:
        # The last process has closed the terminal.
        return b""


# What goes wrong


def test_a_tree_that_cannot_be_made_takes_the_others_back(capsys: Captured, world: World) -> None:
    world.folder("race-x-3").mkdir(parents=True)
    before = world.repository.git("for-each-ref")
    assert "'race-x-3' was not added" in refusal(capsys, "race", "4", "Go", "--name", "x")
    assert world.repository.git("for-each-ref") == before
    assert [*world.folder("x").parent.iterdir()] == [world.folder("race-x-3")]
    assert world.rows(BEGIN_RACE) == []
    assert not (world.seen / "1.json").exists()
    world.folder("race-x-3").rmdir()
    assert run(capsys, "race", "4", "Go", "--name", "x")[0] == 0


def test_no_client_starts_after_a_failed_setup(capsys: Captured, world: World) -> None:
    Workspace.open(world.repository.root).close()
    path = world.repository.root / ".watchroom" / "config.toml"
    path.write_text(path.read_text() + "\n[trees]\nsetup = 'echo broken; exit 4'\n")
    said = refusal(capsys, "race", "2", "Go")
    assert "The setup command ended with exit status 4" in said
    assert "  broken" in said
    assert world.repository.git("branch", "--list", "race-*") == ""
    assert not (world.seen / "1.json").exists()


@pytest.mark.slow(8)
def test_an_agent_that_does_not_end_is_ended_after_the_timeout(capsys: Captured, world: World) -> None:
    world.acts(
        n1={"write": {"a.txt": "x\n"}}, n2={"hangs": True, "stubborn": True, "write": {"b.txt": "y\n"}}
    )
    status, out, said = run(capsys, "race", *FAST, "2", "Go", "--timeout", "0.1", "--check", "true")
    assert status == 0, said
    assert ends(world.saw(2)["pid"], PATIENCE)
    found = printed_json(capsys, "race", "show", "--json")
    assert agents(found, "state", "files") == [("done", 1), ("timeout", 1)]
    assert found["agents"][1]["check"]["status"] == 0, "its work is checked as well"
    assert "timeout" in out


@pytest.mark.slow(7)
def test_a_check_that_hangs_is_ended(capsys: Captured, world: World) -> None:
    world.acts(n1={"write": {"slow": ""}}, n2={"write": {"a.txt": "x\n"}})
    check = "if [ -e slow ]; then sleep 600; fi"
    status, out, said = run(capsys, "race", *FAST, "2", "Go", "--timeout", "0.1", "--check", check)
    assert status == 0, said
    assert "timeout" in out.splitlines()[1]
    assert "passed" in out.splitlines()[2]


@pytest.mark.slow(4)
def test_ctrl_c_stops_all_clients_and_keeps_their_trees(capsys: Captured, world: World) -> None:
    act = {"hangs": True, "write": {"b.txt": "mine\n"}}
    world.acts(n1=act, n2={**act, "stubborn": True, "starts": True})
    process = world.start("2", "Go", "--name", "x", "--check", "true")
    world.wait_for("1.wrote", "2.wrote")
    assert "is running" in refusal(capsys, "race", "pick", "x", "1")
    assert "is running" in refusal(capsys, "race", "2", "Go", "--name", "x")
    assert agents(printed_json(capsys, "race", "show", "--json"), "state", "files") == [("running", 1)] * 2
    process.send_signal(signal.SIGINT)
    out, said = process.communicate(timeout=3 * PATIENCE)
    assert process.returncode == 130, said
    assert "Its trees stay. See them: watchroom race show x." in said
    assert "Traceback" not in said + out
    for number in (1, 2):
        assert ends(world.saw(number)["pid"], PATIENCE)
        assert world.folder(f"race-x-{number}").joinpath("b.txt").read_text() == "mine\n"
    assert ends(int((world.seen / "2.started").read_text()), PATIENCE)
    found = printed_json(capsys, "race", "show", "--json")
    assert agents(found, "state", "check", "files") == [("stopped", None, 1)] * 2
    assert "Picked" in printed(capsys, "race", "pick", "x", "2")
    assert world.repository.git("show", "refs/watchroom/races/x/1:b.txt") == "mine"


@pytest.mark.slow(8)
def test_a_killed_race_is_shown_as_interrupted_and_can_be_picked(capsys: Captured, world: World) -> None:
    act = {"hangs": True, "write": {"b.txt": "mine\n"}}
    world.acts(n1=act, n2={**act, "stubborn": True}, n3={"write": {"a.txt": "x\n"}})
    process = world.start("3", "Go", "--name", "x", "--check", "true")
    world.wait_for("1.wrote", "2.wrote", "3.wrote")
    deadline = time.monotonic() + PATIENCE
    while not world.rows(END_RACE):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    process.kill()
    process.communicate(timeout=3 * PATIENCE)
    for number in (1, 2):
        assert ends(world.saw(number)["pid"], PATIENCE)
    found = printed_json(capsys, "race", "show", "--json")
    assert agents(found, "state", "files", "check") == [
        ("interrupted", 1, None),
        ("interrupted", 1, None),
        ("done", 1, None),
    ]
    out = printed(capsys, "race", "show")
    assert "interrupted" in out
    assert "not run" in out
    printed(capsys, "race", "pick", "x", "2")
    assert world.repository.git("show", "refs/watchroom/races/x/1:b.txt") == "mine"
    assert world.repository.git("show", "refs/watchroom/races/x/3:a.txt") == "x"
    assert world.folder("race-x-2").joinpath("b.txt").read_text() == "mine\n"
    assert len(world.rows(END_RACE)) == 1


def test_a_check_without_room_for_its_copy_stops_nothing(
    capsys: Captured, world: World, tmp_path: Path
) -> None:
    (tmp_path / "cache").touch()
    status, out, said = run(capsys, "race", "2", "Go", "--check", "true")
    assert status == 0, said
    assert "race-1-1 was not checked: Not a directory" in said
    assert "race-1-2 was not checked: Not a directory" in said
    assert out.count("not run") == 2


def test_a_full_disk_takes_all_trees_back(world: World) -> None:
    world.repository.write("large.bin", "x" * 400_000)
    world.repository.commit()
    Workspace.open(world.repository.root).close()
    before = world.repository.git("for-each-ref")

    def limit() -> None:
        # As on a full disk, files cannot grow beyond this: git cannot write the large one.
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))

    done = subprocess.run(
        as_typed("race", "2", "Go"),
        cwd=world.repository.folder,
        capture_output=True,
        text=True,
        preexec_fn=limit,
        timeout=PATIENCE,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "git failed" in done.stderr
    assert world.repository.git("for-each-ref") == before
    assert world.repository.git("worktree", "list").count("\n") == 0
    assert not (world.seen / "1.json").exists()


# The pick


def test_what_no_ref_has_keeps_a_tree(capsys: Captured, world: World) -> None:
    world.repository.commit(__gitignore=".env\n")
    world.acts(n1={}, n2={"write": {".env": "KEY=1\n", "b.txt": "y\n"}})
    assert run(capsys, "race", "2", "Go", "--name", "x")[0] == 0
    (world.folder("race-x-2") / "link").symlink_to("b.txt")
    status, out, said = run(capsys, "race", "pick", "x", "1")
    assert (status, "Picked race-x-1" in out) == (1, True)
    assert "only this tree has them: .env." in said
    assert "link" not in said, "the ref has it"
    assert (world.folder("race-x-2") / ".env").read_text() == "KEY=1\n"
    assert world.repository.git("show", "refs/watchroom/races/x/2:link") == "b.txt"
    (world.folder("race-x-2") / ".env").unlink()
    (world.folder("race-x-2") / "late.txt").write_text("late\n")
    printed(capsys, "race", "pick", "x", "1")
    assert not world.folder("race-x-2").exists()
    assert world.repository.git("show", "refs/watchroom/races/x/2:late.txt") == "late"


def test_a_tree_that_git_cannot_read_stays_and_the_next_is_put_away(capsys: Captured, world: World) -> None:
    assert run(capsys, "race", "3", "Go", "--name", "x")[0] == 0
    # Git adds no repository without a commit.
    world.repository.git("init", "--quiet", str(world.folder("race-x-2") / "inner"))
    (world.folder("race-x-2") / "inner" / "file").touch()
    status, out, said = run(capsys, "race", "pick", "x", "1")
    assert (status, "Picked race-x-1" in out) == (1, True)
    assert said.startswith("race-x-2: ")
    assert [world.folder(f"race-x-{number}").exists() for number in (1, 2, 3)] == [True, True, False]


def test_the_picked_work_is_committed_and_lands_after_the_check(capsys: Captured, world: World) -> None:
    world.acts(n1={"write": {"b.txt": "b\nmore\n"}, "commits": True}, n2={"write": {"b.txt": "other\n"}})
    status, _, said = run(capsys, "race", "2", "Add\nmore", "--name", "x", "--check", "grep -q b b.txt")
    assert status == 0, said
    (world.folder("race-x-1") / "new.txt").write_text("new\n")
    out = printed(capsys, "race", "pick", "x", "1", "--land")
    assert "race-x-1 has landed in main" in out
    assert world.repository.read("b.txt") == "b\nmore\n"
    assert world.repository.read("new.txt") == "new\n"
    assert world.repository.git("log", "-1", "--format=%s", "main") == "Add"
    assert world.folder("race-x-1").exists()


def test_a_picked_tree_that_conflicts_waits_for_a_person(capsys: Captured, world: World) -> None:
    world.acts(n1={"write": {"a.txt": TEXT.replace("two", "TWO")}}, n2={"write": {"b.txt": "other\n"}})
    assert run(capsys, "race", "2", "Go", "--name", "x")[0] == 0
    world.repository.commit(a__txt=TEXT.replace("two", "zwei"))
    head = world.repository.git("rev-parse", "main")
    status, out, said = run(capsys, "race", "pick", "x", "1", "--land")
    assert status == 1
    assert "race-x-1 conflicts with main. Nothing was changed." in said
    assert "  a.txt" in out
    assert world.repository.git("rev-parse", "main") == head
    assert world.repository.git("show", "refs/watchroom/races/x/2:b.txt") == "other"
    assert printed_json(capsys, "race", "show", "--json")["picked"] == 1
    assert "conflict" in printed(capsys, "show", ".")


def test_a_race_cannot_take_a_name_with_refs_of_an_earlier_race(capsys: Captured, world: World) -> None:
    """`watchroom leave` deletes the journal, and leaves the refs."""
    world.repository.git("update-ref", "refs/watchroom/races/x/2", "HEAD")
    before = world.repository.git("for-each-ref")
    assert "has the work of an earlier race" in refusal(capsys, "race", "2", "Go", "--name", "x")
    assert world.repository.git("for-each-ref") == before
    assert world.repository.git("worktree", "list").count("\n") == 0


def test_a_second_race_gets_the_next_number(capsys: Captured, world: World) -> None:
    world.repository.git("branch", "race-2-1")
    for _ in range(2):
        status, _, said = run(capsys, "race", "2", "Go")
        assert status == 0, said
    assert printed_json(capsys, "race", "show", "--json")["race"] == "3"
    assert printed_json(capsys, "race", "show", "1", "--json")["race"] == "1"
    assert "this name is already used" in refusal(capsys, "race", "2", "Go", "--name", "3")
    assert "Races: 3, 1." in refusal(capsys, "race", "show", "9")
    assert "no agent with this number" in refusal(capsys, "race", "pick", "3", "3")
