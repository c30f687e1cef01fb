"""Limits on the changes of commands that are read, reported and kept, and the quota of a task's folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from calls import ok, refused
from hostile.leftovers import small_files, sparse_files
from requirements.tasks.test_rows import heads, unaccounted
from tasking import Team
from timeouts import run_until_begun
from watchroom import Workspace
from watchroom.errors import ConfigInvalid
from watchroom.features.config.rows import dump_config, parse_config
from watchroom.features.tasks import commands
from watchroom.features.tasks.files import BATCH_ROWS, ChangeAuthor
from watchroom.kernel.call_context import CallContext

COMMAND = ChangeAuthor(CallContext("alice", "run_command"), "make", {"command": "make"})


@pytest.fixture
def sandboxed(team: Team) -> Team:
    if team.workspace.commands.sandbox.best is None:
        pytest.skip("no sandbox works here, so no command runs: bubblewrap is to be installed")
    return team


def set_quota(workspace: Workspace, setting: str) -> None:
    config = Path(workspace.root) / ".watchroom" / "config.toml"
    config.write_text(f"{setting}\n" + config.read_text())
    workspace.scan()


def test_many_files_are_recorded_in_batches_between_which_others_can_write(sandboxed: Team) -> None:
    before = sandboxed.workspace.append_statistics
    result = ok(sandboxed.one, "run_command", command=small_files(1_000))
    after = sandboxed.workspace.append_statistics
    assert len(heads(sandboxed.workspace, sandboxed.folder)) == 1_000
    assert after.appends - before.appends >= 1_000 / BATCH_ROWS
    # The same commit has the waiting notes.
    assert after.max_rows <= BATCH_ROWS + 10
    assert (len(result["changed"]), result["moreChanged"]) == (100, 900)
    (ended,) = [row for row in sandboxed.workspace.journal.rows(limit=10_000) if row.tool == "end_command"]
    assert ended.detail["changed"] == 1_000


def test_the_paths_that_are_told_are_bounded_in_all(sandboxed: Team) -> None:
    result = ok(sandboxed.one, "run_command", command="mkdir $(printf %0200d/%0200d/%0200d 1 2 3) -p; cd 0*/0*/0*; touch $(seq 90)")  # fmt: skip
    assert len(result["changed"]) + result["moreChanged"] == 90
    assert sum(map(len, result["changed"])) <= 20_000


def test_a_large_file_is_known_by_its_size_and_times_alone(sandboxed: Team) -> None:
    result = ok(
        sandboxed.one, "run_command", command=f"{sparse_files(2)}; head -c 11000000 /dev/zero > large"
    )
    assert sorted(result["changed"]) == ["large", "sparse0", "sparse1"]
    rows = heads(sandboxed.workspace, sandboxed.folder)
    for name in ("large", "sparse0"):
        status = (sandboxed.folder / name).stat()
        detail = rows[name].detail
        assert "sha256" not in detail
        assert (detail["size"], detail["modified"]) == (status.st_size, status.st_mtime_ns)
        assert "not read" in (sandboxed.workspace.journal.content(rows[name].seq) or "")
    assert sandboxed.workspace.verify() == []
    assert "changed" not in ok(sandboxed.one, "run_command", command="true")
    result = ok(sandboxed.one, "run_command", command="printf x | dd of=large conv=notrunc status=none; touch -r sparse1 large")  # fmt: skip
    assert result["changed"] == ["large"]
    assert refused(sandboxed.one, "read_file", path="sparse1")["error"] == "too_large"


def test_what_there_was_no_time_for_is_recorded_by_the_next_call_as_its_authors(team: Team) -> None:
    files = team.workspace.task_files
    for number in range(BATCH_ROWS + 50):
        (team.folder / f"{number}.txt").write_text("theirs\n")
    first = files.record_changes(CallContext("alice"), COMMAND, until=0)
    assert (len(first.rows), first.pending) == (BATCH_ROWS, 50)
    left = sorted(set(heads(team.workspace, team.folder)) ^ {path.name for path in team.folder.glob("*.txt")})
    (team.folder / left[0]).write_text("by hand, since then\n")
    second = files.record_changes(CallContext("alice"), until=0)
    assert second.pending == 0
    authors = {row.path.partition("/")[2]: row.actor for row in second.rows}
    assert authors == {**dict.fromkeys(left, "alice"), left[0]: "outside"}
    assert unaccounted(team.workspace, team.folder) == []


def test_however_little_time_there_is_each_call_goes_on(sandboxed: Team) -> None:
    for number in range(3 * BATCH_ROWS):
        (sandboxed.folder / f"{number}").write_text("x")
    pending = [
        sandboxed.workspace.task_files.record_changes(CallContext("alice"), until=0).pending for _ in range(3)
    ]
    assert pending == [2 * BATCH_ROWS, BATCH_ROWS, 0]


def test_a_command_says_what_there_was_no_time_to_look_at(
    sandboxed: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "_MIN_RECORDING_SECONDS", 0)
    command = f"touch $(seq {BATCH_ROWS + 50}); echo touched; sleep 60"

    def run(seconds: float) -> dict[str, Any]:
        ok(sandboxed.one, "run_command", command="rm -f *")
        return refused(sandboxed.one, "run_command", command=command, timeoutMs=int(seconds * 1000))

    result = run_until_begun(run, lambda result: result["stdout"])
    assert (result["error"], result["pending"]) == ("command_timeout", 50)
    assert "50" in result["notice"]
    assert "pending" not in ok(sandboxed.one, "run_command", command="true")
    rows = heads(sandboxed.workspace, sandboxed.folder).values()
    assert {(row.actor, row.tool) for row in rows} == {("alice", "run_command")}
    assert len(rows) == BATCH_ROWS + 50


def test_a_folder_that_holds_too_many_files_takes_no_more(sandboxed: Team) -> None:
    set_quota(sandboxed.workspace, "max_task_files = 20")
    ok(sandboxed.one, "run_command", command="touch $(seq 20)")
    ok(sandboxed.one, "write_file", path="1", content="longer than before")
    result = refused(sandboxed.one, "write_file", path="sub/new.txt", content="x")
    assert result["error"] == "task_quota_exceeded"
    assert "22" in result["message"]
    assert not (sandboxed.folder / "sub").exists()
    result = refused(sandboxed.one, "run_command", command="touch a b; echo done")
    assert (result["error"], result["stdout"], result["exitCode"]) == ("task_quota_exceeded", "done\n", 0)
    assert result["changed"] == ["a", "b"]


def test_of_a_folder_that_holds_too_much_commands_can_remove_but_not_add(sandboxed: Team) -> None:
    set_quota(sandboxed.workspace, "max_task_bytes = 1_000_000")
    result = refused(sandboxed.one, "run_command", command="head -c 1500000 /dev/urandom > large")
    assert result["error"] == "task_quota_exceeded"
    assert refused(sandboxed.one, "write_file", path="new", content="x")["error"] == "task_quota_exceeded"
    refused(sandboxed.one, "run_command", command="echo note > short; cat large > twice")
    assert (sandboxed.folder / "twice").stat().st_size < 10_000
    ok(sandboxed.one, "run_command", command="rm large; echo removed")
    ok(sandboxed.one, "write_file", path="new", content="x")
    ok(sandboxed.one, "run_command", command="echo x > more")


def test_in_a_folder_that_holds_twice_as_much_nothing_runs(sandboxed: Team) -> None:
    set_quota(sandboxed.workspace, "max_task_files = 5")
    (sandboxed.folder / "many").mkdir()
    for number in range(9):
        (sandboxed.folder / "many" / str(number)).touch()
    result = refused(sandboxed.one, "run_command", command="rm -r many")
    assert result["error"] == "task_quota_exceeded"
    assert "stdout" not in result
    assert (sandboxed.folder / "many" / "8").exists()
    for number in range(5):
        (sandboxed.folder / "many" / str(number)).unlink()
    ok(sandboxed.one, "run_command", command="rm -r many")


def test_the_quota_is_two_lines_of_the_config() -> None:
    config = parse_config("max_task_files = 7\nmax_task_bytes = 1_000")
    assert (config.max_task_files, config.max_task_bytes) == (7, 1_000)
    assert parse_config(dump_config(config)) == config


@pytest.mark.parametrize("wrong", ["0", "-1", "true", "1.5", '"7"', "99999999999999999999"])
@pytest.mark.parametrize("name", ["max_task_files", "max_task_bytes"])
def test_what_is_no_bound_is_refused(name: str, wrong: str) -> None:
    with pytest.raises(ConfigInvalid, match=name):
        parse_config(f"{name} = {wrong}")
