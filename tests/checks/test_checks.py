"""A check of a person shows whether an agent that says that it is done is done."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path

import psutil
import pytest
from checks.checking import agent_of, begins, claim_of, configure, ends, model_of, rows_of, sent_back
from runtime.scripted import until
from trees.git_repository import Repository
from trees.tree_client import ScriptedClient
from watchroom import Json, Workspace
from watchroom.errors import ConfigInvalid
from watchroom.features.checks.rows import is_prompt_of_check
from watchroom.features.checks.rules import CheckSettings, parse_checks
from watchroom.features.checks.summaries import clean_output, summarize
from watchroom.features.config.rows import dump_config, parse_config
from watchroom.features.overview.fold import Fold
from watchroom.kernel.call_context import CallContext
from watchroom.model import CANCEL, END_CHECK, LOST, MESSAGE, PAUSE, SYSTEM, Note
from watchroom.serving.service import checks as queues

PATIENCE = 30.0


def stop(client: ScriptedClient) -> None:
    """End the agent's answer, with which it says that it is done."""
    client.hook("Stop")


def test_a_failure_is_sent_back_twice_and_then_a_person_decides(
    kept: Workspace, alice: ScriptedClient, tmp_path: Path
) -> None:
    configure(kept, "echo '= 2 failed, 39 passed in 0.12s ='; exit 1")
    for number in (1, 2, 3):
        stop(alice)
        end = kept.checks.run(claim_of(kept), cache=str(tmp_path))
        assert end is not None
        assert (end.state, end.failed, end.total) == ("failed", 2, 41)
        assert end.sequel == ("back" if number < 3 else "unproven")
        alice.hook("UserPromptSubmit", prompt=sent_back(kept)[-1])
    told = sent_back(kept)
    assert len(told) == 2
    assert "2 failed, 39 passed" in told[0]
    assert is_prompt_of_check(told[0])
    needs = [need for need in model_of(kept).needs if need.kind == "unproven"]
    assert [(need.agent, need.times) for need in needs] == [("alice", 1)]
    view = agent_of(kept).check
    assert view is not None
    assert view.is_unproven
    assert {row.actor for row in (*begins(kept), *rows_of(kept, END_CHECK))} == {SYSTEM}


def test_work_that_passes_is_shown_as_such_and_closes_the_need(
    kept: Workspace, alice: ScriptedClient, repository: Repository, tmp_path: Path
) -> None:
    configure(kept, "grep -q done a.txt", "attempts = 0")
    stop(alice)
    first = kept.checks.run(claim_of(kept), cache=str(tmp_path))
    assert first is not None
    assert first.sequel == "unproven"
    # Uncommitted work counts.
    alice.edit("a.txt", "one", "done")
    stop(alice)
    second = kept.checks.run(claim_of(kept), cache=str(tmp_path))
    assert second is not None
    assert (second.state, second.sequel) == ("passed", "done")
    assert [need for need in model_of(kept).needs if need.kind == "unproven"] == []


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
def test_a_file_that_git_is_told_to_ignore_is_checked(
    kept: Workspace, alice: ScriptedClient, repository: Repository, tmp_path: Path, flag: str
) -> None:
    configure(kept, "grep -q one a.txt", "attempts = 0")
    alice.edit("a.txt", "one", "broken")
    repository.git("update-index", flag, "a.txt")
    stop(alice)
    end = kept.checks.run(claim_of(kept), cache=str(tmp_path))
    assert end is not None
    assert end.state == "failed"


def test_a_file_with_the_times_and_size_of_before_is_checked(
    kept: Workspace, alice: ScriptedClient, repository: Repository, tmp_path: Path
) -> None:
    configure(kept, "grep -q one a.txt", "attempts = 0")
    file = repository.folder / "a.txt"
    os.utime(file, (10**9, 10**9))
    repository.git("update-index", "--refresh")
    # Git keeps times of changes in whole seconds.
    time.sleep(1.1)
    alice.edit("a.txt", "one", "six")
    os.utime(file, (10**9, 10**9))
    repository.git("config", "core.trustctime", "false")
    repository.git("config", "core.checkStat", "minimal")
    stop(alice)
    end = kept.checks.run(claim_of(kept), cache=str(tmp_path))
    assert end is not None
    assert end.state == "failed"


def test_a_test_that_changes_its_copy_does_not_change_later_checks(
    kept: Workspace, alice: ScriptedClient, tmp_path: Path
) -> None:
    configure(kept, "sh check.sh", "attempts = 0")
    alice.edit("a.txt", "one", "broken")
    states = []
    for script in (
        "git update-index --skip-worktree a.txt && echo one > a.txt && exit 1",
        "grep -q one a.txt",
    ):
        alice.write("check.sh", f"{script}\n")
        stop(alice)
        end = kept.checks.run(claim_of(kept), cache=str(tmp_path))
        assert end is not None
        states.append(end.state)
    assert states == ["failed", "failed"]


def test_a_person_accepts_unproven_work(kept: Workspace, alice: ScriptedClient, tmp_path: Path) -> None:
    configure(kept, "false", "attempts = 0")
    stop(alice)
    kept.checks.run(claim_of(kept), cache=str(tmp_path))
    (need,) = [each for each in model_of(kept).needs if each.kind == "unproven"]
    answer = kept.tools_for_human("ann").dispatch_tool_call("mark_as_seen", {"row": need.row.seq})
    assert answer["success"]
    assert [each for each in model_of(kept).needs if each.kind == "unproven"] == []
    view = agent_of(kept).check
    assert view is not None
    assert not view.is_unproven
    assert view.accepted is not None
    assert view.accepted.actor == "human:ann"


def test_a_check_that_hangs_is_ended_with_all_it_started(
    kept: Workspace, alice: ScriptedClient, tmp_path: Path
) -> None:
    mark = f"3{os.getpid() % 1000:03}7"
    configure(kept, f"setsid sleep {mark} & yes | head -c 100000000; sleep {mark}", "time_limit = 1")
    stop(alice)
    began = time.monotonic()
    end = kept.checks.run(claim_of(kept), cache=str(tmp_path))
    assert time.monotonic() - began < PATIENCE
    assert end is not None
    assert (end.state, end.status, end.sequel) == ("timed_out", None, "back")
    assert [each for each in psutil.process_iter(["cmdline"]) if mark in (each.info["cmdline"] or [])] == []
    output = kept.journal.content(rows_of(kept, END_CHECK)[-1].seq) or ""
    assert len(output) <= 8000


def test_a_check_with_paths_runs_only_if_the_agent_changed_one(
    kept: Workspace, alice: ScriptedClient, bob: ScriptedClient, tmp_path: Path
) -> None:
    configure(kept, "true", 'paths = ["*.txt"]')
    bob.edit("b.txt", "b", "c")
    stop(alice)
    assert kept.checks.run(claim_of(kept), cache=str(tmp_path)) is None
    alice.write("notes.md", "n\n")
    assert kept.checks.run(claim_of(kept), cache=str(tmp_path)) is None
    assert begins(kept) == []
    alice.edit("a.txt", "one", "uno")
    assert kept.checks.run(claim_of(kept), cache=str(tmp_path)) is not None
    # Nothing has changed since it passed.
    assert kept.checks.run(claim_of(kept), cache=str(tmp_path)) is None


def test_a_check_with_paths_runs_if_the_commands_of_several_agents_may_have_changed_one(
    kept: Workspace, alice: ScriptedClient, bob: ScriptedClient, repository: Repository, tmp_path: Path
) -> None:
    configure(kept, "true", 'paths = ["*.txt"]')
    carol = ScriptedClient(kept, "carol", repository.folder)
    calls = [(client, *client.begin_bash("make")) for client in (alice, bob)]
    (repository.folder / "a.txt").write_text("made\n")
    for client, call, given in calls:
        client.end_bash(call, given)
    for client in (alice, bob, carol):
        stop(client)
    for agent in ("alice", "bob", "carol"):
        kept.checks.run(claim_of(kept, agent), cache=str(tmp_path))
    assert [row.path for row in begins(kept)] == ["alice", "bob"]
    assert kept.checks.run(claim_of(kept), cache=str(tmp_path)) is None, "nothing has changed since it passed"


@pytest.mark.parametrize("how", [PAUSE, CANCEL])
def test_an_agent_that_is_held_meanwhile_is_not_sent_back(
    kept: Workspace, alice: ScriptedClient, tmp_path: Path, how: str
) -> None:
    started = tmp_path / "started"
    configure(kept, f"touch {started}; while [ -e {started} ]; do sleep 0.05; done; false")
    stop(alice)
    found: list[object] = []
    claim = claim_of(kept)
    run = threading.Thread(target=lambda: found.append(kept.checks.run(claim, cache=str(tmp_path / "c"))))
    run.start()
    deadline = time.monotonic() + PATIENCE
    while not started.exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    kept.session_zone.control(CallContext("human:ann", how), "alice", None, "")
    started.unlink()
    run.join(PATIENCE)
    assert [each.sequel for each in ends(kept)] == ["held"]
    assert sent_back(kept) == []
    assert [need.kind for need in model_of(kept).needs] == []


def test_an_agent_without_a_budget_is_not_sent_back(
    kept: Workspace, alice: ScriptedClient, tmp_path: Path
) -> None:
    configure(kept, "false")
    kept.budgets.set_budget(CallContext("human:ann"), "session", "", "steps", 1)
    stop(alice)
    kept.checks.run(claim_of(kept), cache=str(tmp_path))
    assert [each.sequel for each in ends(kept)] == ["held"]
    assert sent_back(kept) == []


def test_an_agent_that_went_on_is_not_sent_back(
    kept: Workspace, alice: ScriptedClient, tmp_path: Path
) -> None:
    configure(kept, "false")
    stop(alice)
    claim = claim_of(kept)
    alice.hook("UserPromptSubmit", prompt="Something else")
    kept.checks.run(claim, cache=str(tmp_path))
    assert [each.sequel for each in ends(kept)] == ["superseded"]
    assert sent_back(kept) == []


def test_what_a_person_says_begins_the_count_again(
    kept: Workspace, alice: ScriptedClient, tmp_path: Path
) -> None:
    configure(kept, "false", "attempts = 1")
    stop(alice)
    kept.checks.run(claim_of(kept), cache=str(tmp_path))
    kept.session_zone.control(CallContext("human:ann", MESSAGE), "alice", None, "Try harder")
    kept.checks.run(claim_of(kept), cache=str(tmp_path))
    kept.checks.run(claim_of(kept), cache=str(tmp_path))
    kept.checks.run(claim_of(kept, prompted=kept.journal.last_seq()), cache=str(tmp_path))
    assert [each.sequel for each in ends(kept)] == ["back", "back", "unproven", "back"]


@pytest.mark.parametrize("zone", ["agent", "session"])
def test_a_result_that_an_agent_wrote_does_not_count(
    kept: Workspace, alice: ScriptedClient, tmp_path: Path, zone: str
) -> None:
    configure(kept, "false", "attempts = 0", 'paths = ["a.txt"]')
    alice.edit("a.txt", "one", "uno")
    stop(alice)
    kept.checks.run(claim_of(kept), cache=str(tmp_path))
    true = rows_of(kept, END_CHECK)[-1]
    planted = {**true.detail, "state": "passed", "sequel": "done"}
    kept.journal.append([Note("alice", END_CHECK, zone, "alice", detail=planted)])  # type: ignore[arg-type]
    view = agent_of(kept).check
    assert view is not None
    assert view.is_unproven
    kinds = {need.kind for need in model_of(kept).needs}
    assert kinds == {"unproven", "forged"}
    # It does not count as the last time that the check passed either.
    end = kept.checks.run(claim_of(kept), cache=str(tmp_path))
    assert end is not None
    assert end.state == "failed"


def test_a_check_whose_process_was_killed_runs_once_more(
    kept: Workspace, alice: ScriptedClient, tmp_path: Path
) -> None:
    configure(kept, "false", "attempts = 0")
    stop(alice)
    claim = claim_of(kept)
    detail: dict[str, Json] = {
        "check": "tests",
        "command": "false",
        "session": claim.session,
        "claim": claim.row,
    }
    kept.journal.append([Note(SYSTEM, "begin_check", "agent", "alice", detail=detail)])
    (again,) = kept.checks.recover()
    assert again.is_again
    assert ends(kept)[-1].state == "interrupted"
    stopping = threading.Event()
    stopping.set()
    # The next process is ended too: then a person decides.
    kept.journal.append([Note(SYSTEM, "begin_check", "agent", "alice", detail={**detail, "is_again": True})])
    assert kept.checks.recover() == []
    assert [end.sequel for end in ends(kept)] == ["again", "unproven"]
    assert kept.checks.recover() == []


def test_work_whose_check_had_not_begun_when_its_process_ended_is_checked(
    kept: Workspace, repository: Repository, tmp_path: Path
) -> None:
    configure(kept, "grep -q done a.txt")
    with Workspace.open(repository.root, create=False) as ended:
        clients = [ScriptedClient(ended, name, repository.folder) for name in ("alice", "bob")]
        for client in clients:
            stop(client)
        assert kept.checks.recover() == [], "that process checks them"
        # Bob has gone on.
        clients[1].hook("UserPromptSubmit", prompt="And?")
    (claim,) = kept.checks.recover()
    assert claim.agent == "alice"
    end = kept.checks.run(claim, cache=str(tmp_path))
    assert end is not None
    # Nothing may wake the client.
    assert (end.state, end.sequel) == ("failed", "unproven")
    assert kept.checks.recover() == []


def test_a_check_whose_process_is_not_seen_alive_does_not_run_for_ever(
    kept: Workspace, alice: ScriptedClient
) -> None:
    stop(alice)
    detail: dict[str, Json] = {"check": "tests", "session": claim_of(kept).session, "presence": "gone-1"}
    kept.journal.append([Note(SYSTEM, "begin_check", "agent", "alice", detail=detail)])
    check = agent_of(kept).check
    assert check is not None
    assert check.is_running
    kept.journal.append([Note(SYSTEM, LOST, "workspace", "gone-1", "failed", "not_seen_alive")])
    check = agent_of(kept).check
    assert check is not None
    assert not check.is_running


def test_a_snapshot_keeps_the_check_of_an_agent(
    kept: Workspace, alice: ScriptedClient, tmp_path: Path
) -> None:
    configure(kept, "false", "attempts = 0")
    stop(alice)
    kept.checks.run(claim_of(kept), cache=str(tmp_path))
    fold = Fold(kept.journal.content, kept.journal.row)
    while rows := kept.journal.rows(fold.seq):
        fold.apply(rows)
    dumped = json.loads(json.dumps(fold.dump()))
    loaded = Fold.load(kept.journal.content, kept.journal.row, dumped).model()
    assert loaded.agents == fold.model().agents
    assert loaded.has_checks
    assert [need.kind for need in loaded.needs] == ["unproven"]


def test_a_check_that_is_stopped_runs_once_more(
    kept: Workspace, alice: ScriptedClient, tmp_path: Path
) -> None:
    configure(kept, "sleep 1000")
    stop(alice)
    stopping = threading.Event()
    threading.Timer(0.5, stopping.set).start()
    end = kept.checks.run(claim_of(kept), stopping, cache=str(tmp_path))
    assert end is not None
    assert (end.state, end.sequel) == ("interrupted", "again")
    (again,) = kept.checks.recover()
    assert again.session == claim_of(kept).session


async def test_a_check_whose_end_could_not_be_recorded_runs_once_more(
    kept: Workspace,
    alice: ScriptedClient,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(queues, "_RETRY_SECONDS", 0.05)
    go = tmp_path / "go"
    configure(kept, f"while ! [ -e {go} ]; do sleep 0.05; done")
    await asyncio.to_thread(stop, alice)
    queue = queues.CheckQueue(kept)
    queue.add(claim_of(kept))
    await until(lambda: len(begins(kept)) == 1)
    with closing(sqlite3.connect(Path(kept.root, ".watchroom/journal.db"))) as database:
        database.execute("ALTER TABLE rows RENAME TO unreadable")
        go.touch()
        await until(lambda: "was not checked" in caplog.text)
        database.execute("ALTER TABLE unreadable RENAME TO rows")
    await until(lambda: [end.state for end in ends(kept)] == ["interrupted", "passed"])
    await queue.close()


def test_without_a_folder_a_check_is_not_run_and_a_person_decides(tmp_path: Path) -> None:
    with Workspace.open(tmp_path / "team", agents=["alice"]) as workspace:
        configure(workspace, "true")
        client = ScriptedClient(workspace, "alice", tmp_path)
        stop(client)
        end = workspace.checks.run(claim_of(workspace))
        assert end is not None
        assert (end.state, end.sequel) == ("not_run", "unproven")


def test_the_settings_are_bounded_and_written_as_they_are_read() -> None:
    text = (
        '[[checks]]\nname = "tests"\ncommand = "make"\npaths = ["src/**"]\ntime_limit = 5.5\nattempts = 3\n'
    )
    config = parse_config(text)
    assert config.checks == (CheckSettings("tests", "make", ("src/**",), 5.5, 3),)
    assert parse_config(dump_config(config)) == config
    wrong: list[object] = [
        {},
        [{}],
        [{"name": "a"}],
        [{"name": "a", "command": ""}],
        [{"name": "a\n", "command": "b"}],
        [{"name": "a", "command": "b", "time_limit": 0}],
        [{"name": "a", "command": "b", "time_limit": 100_000}],
        [{"name": "a", "command": "b", "attempts": 100}],
        [{"name": "a", "command": "b", "attempts": 1.5}],
        [{"name": "a", "command": "b", "attempts": True}],
        [{"name": "a", "command": "b", "paths": "x"}],
        [{"name": "a", "command": "b", "more": 1}],
        [{"name": "a", "command": "b"}] * 2,
        [{"name": str(n), "command": "b"} for n in range(21)],
    ]
    for each in wrong:
        with pytest.raises(ConfigInvalid):
            parse_checks(each)


@pytest.mark.parametrize(
    ("output", "line", "failed", "total"),
    [
        (
            "...\n=== 2 failed, 39 passed, 1 skipped in 0.12s ===\n",
            "2 failed, 39 passed, 1 skipped in 0.12s",
            2,
            41,
        ),
        (
            "\x1b[31m1 failed\x1b[0m, \x1b[32m2 passed\x1b[0m, 1 error in 3.00s\n",
            "1 failed, 2 passed, 1 error in 3.00s",
            2,
            4,
        ),
        ("5 passed in 61.02s (0:01:01)", "5 passed in 61.02s (0:01:01)", 0, 5),
        (
            "Tests:       1 failed, 2 passed, 3 total\nTime: 1 s\n",
            "Tests:       1 failed, 2 passed, 3 total",
            1,
            3,
        ),
        (
            "test result: ok. 3 passed; 0 failed; 0 ignored\ntest result: FAILED. 1 passed; 2 failed; 0 ignored\n",
            "test result: FAILED. 1 passed; 2 failed; 0 ignored",
            2,
            6,
        ),
        ("Ran 4 tests in 0.1s\n\nFAILED (failures=1, errors=1)\n", "FAILED (failures=1, errors=1)", 2, 4),
        (
            "--- PASS: TestA (0.00s)\n--- FAIL: TestB (0.00s)\nFAIL\texample/x\t0.1s\n",
            "FAIL\texample/x\t0.1s",
            1,
            2,
        ),
        ("make: *** [all] Error 2\n\n", "make: *** [all] Error 2", 0, 0),
        ("", "", 0, 0),
    ],
)
def test_a_summary_is_one_line(output: str, line: str, failed: int, total: int) -> None:
    found = summarize(clean_output(output))
    assert (found.line.replace("\\t", "\t"), found.failed, found.total) == (line, failed, total)


def test_output_is_plain_and_bounded() -> None:
    cleaned = clean_output("x" * 100_000 + "\n\x1b]0;title\x07\x1b[2J\x00last\u202e\n")
    assert len(cleaned) <= 8000
    assert cleaned.endswith(" last ")
    assert summarize(cleaned).line == "last"
