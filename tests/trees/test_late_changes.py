"""Git, the journal, a filter or the file watches delay a comparison: its changes still have their authors, and
lines that a command removed are found."""

from __future__ import annotations

import errno
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Thread

import pytest
from inotify_simple import INotify
from refusing import refusing
from trees.git_repo import git
from trees.git_repository import Repository
from trees.test_git_operations import comparing, is_soon, lock, rows_of
from trees.test_own_trees import UnwatchedPlatform
from trees.tree_client import Refused, ScriptedClient
from watchroom import Workspace
from watchroom.errors import JournalError
from watchroom.features.trees.recorder import Window
from watchroom.features.trees.rows import CLIENT_CALL_ID, REPO

STEPS = """\
steps=$(($(cat .git/steps 2>/dev/null || echo 0) + 1))
if [ $steps -le 4 ]; then echo half $steps > b.txt; touch .git/index; else echo b > b.txt; fi
echo $steps > .git/steps.new; mv .git/steps.new .git/steps
cat
"""
"""A filter that does a step of a checkout whenever git compares a file."""


def authors(kept: Workspace, name: str) -> list[str]:
    return [row.actor for row in rows_of(kept, name)]


def texts(kept: Workspace, name: str) -> list[str | None]:
    return [kept.journal.content(row.seq) for row in rows_of(kept, name)]


def lost(kept: Workspace, name: str) -> list[str | None]:
    """The texts of the conflicts about lost lines of a file."""
    tree = next(iter(kept.trees.all()))
    found = kept.journal.refused(REPO, tree.path(name))
    return [kept.journal.content(row.seq) for row in found if row.error == "lines_lost"]


# Comparisons that git interrupts


def test_a_write_is_checked_though_git_begins_after_its_call(kept: Workspace, repository: Repository) -> None:
    carol = ScriptedClient(kept, "carol", repository.folder, client="opencode")
    carol.read("a.txt")
    carol.edit("a.txt", "one", "ONE")
    with ThreadPoolExecutor() as threads:
        with comparing(kept, repository):
            repository.write("a.txt", "by hand\n")
            asked = threads.submit(carol.begin_write, "a.txt", "by carol\n")
            # The call waits for the comparison.
            time.sleep(0.3)
            locked = lock(repository)
        with pytest.raises(Refused):
            asked.result()
    locked.unlink()


def test_a_comparison_waits_for_a_git_that_changes_files_all_the_time(
    kept: Workspace, repository: Repository, tmp_path: Path
) -> None:
    program = tmp_path / "steps"
    program.write_text(STEPS)
    repository.commit(__gitattributes="slow.txt filter=slow\n", slow__txt="one\n")
    kept.trees.refresh_all()
    repository.git("config", "filter.slow.clean", f"sh {program}")
    repository.git("update-index", "--chmod=+x", "a.txt")
    repository.write("slow.txt", "two\n")
    kept.trees.refresh_all()
    steps = repository.folder / ".git" / "steps"
    assert is_soon(lambda: steps.exists() and int(steps.read_text()) > 4)
    assert is_soon(lambda: texts(kept, "slow.txt")[-1] == "two\n")
    assert texts(kept, "b.txt") == []


def test_files_are_not_recorded_as_git_leaves_them_while_others_are_read(
    kept: Workspace, repository: Repository
) -> None:
    repository.commit(__gitattributes="b.txt filter=slow\n", z__txt="z\n")
    repository.write("z.txt", "by hand\n")
    kept.trees.refresh_all()
    before = texts(kept, "z.txt")
    locked = lock(repository)
    repository.git("config", "filter.slow.smudge", f"touch {locked}; echo half > z.txt; cat")
    repository.write("z.txt", "by hand again\n")
    repository.write("b.txt", "two\n")
    locked.unlink()
    kept.trees.refresh_all()
    assert locked.exists()
    assert texts(kept, "z.txt") == before
    repository.git("config", "--unset", "filter.slow.smudge")
    repository.write("z.txt", "by hand\n")
    locked.unlink()
    assert is_soon(lambda: texts(kept, "b.txt") == ["b\n", "two\n"])
    assert texts(kept, "z.txt") == before


# Comparisons after the end of a command


def test_lines_that_one_of_two_commands_removed_while_git_worked_are_a_conflict(
    kept: Workspace, repository: Repository, alice: ScriptedClient, bob: ScriptedClient
) -> None:
    carol = ScriptedClient(kept, "carol", repository.folder)
    alice.read("b.txt")
    alices, bobs = alice.begin_bash("./generate b.txt"), bob.begin_bash("./other")
    carol.read("b.txt")
    carol.edit("b.txt", "b", "b\nby carol")
    locked = lock(repository)
    with locked.open("rb"):
        repository.write("b.txt", "b\nby the command\n")
        alice.end_bash(*alices)
        bob.end_bash(*bobs)
    locked.unlink()
    assert is_soon(lambda: lost(kept, "b.txt") == ["b\nby carol\n"], 10.0)


def test_a_command_that_changed_a_file_while_git_worked_has_not_read_it(
    kept: Workspace, repository: Repository, bob: ScriptedClient
) -> None:
    codex = ScriptedClient(kept, "alice", repository.folder, client="codex")
    bob.read("b.txt")
    bob.edit("b.txt", "b", "b\nby bob")
    call, given = codex.begin_bash("./generate b.txt")
    locked = lock(repository)
    with locked.open("rb"):
        repository.write("b.txt", "b\nby the command\n")
        codex.end_bash(call, given)
    locked.unlink()
    assert is_soon(lambda: lost(kept, "b.txt") == ["b\nby bob\n"], 10.0)


@pytest.fixture
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the time for which calls wait for git."""
    monkeypatch.setattr("watchroom.features.trees.service._GIT_SECONDS", 0.1)


def begin_background(client: ScriptedClient, command: str) -> str:
    """Begin a command that goes on after its report. Return the id of its call."""
    call, given = client.begin_bash(command)
    client.report("Bash", call, given, {"stdout": "", "stderr": "", "backgroundTaskId": "task"})
    return call


@pytest.mark.usefixtures("_impatient")
@pytest.mark.parametrize(("is_first", "is_late"), [(True, False), (True, True), (False, True)])
def test_changes_of_an_ended_command_are_not_by_one_in_the_background(
    kept: Workspace,
    repository: Repository,
    alice: ScriptedClient,
    bob: ScriptedClient,
    is_first: bool,
    is_late: bool,
) -> None:
    alice.read("b.txt")
    if is_first:
        begin_background(alice, "./serve")
    call, given = alice.begin_bash("./generate b.txt")
    if not is_first:
        begin_background(alice, "./serve")
    bob.read("b.txt")
    bob.edit("b.txt", "b", "b\nby bob")
    locked = lock(repository)
    with locked.open("rb"):
        repository.write("b.txt", "b\nby the command\n")
        if is_late:
            alice.end_bash(call, given)
    locked.unlink()
    if not is_late:
        alice.end_bash(call, given)
    assert is_soon(lambda: lost(kept, "b.txt") == ["b\nby bob\n"], 10.0)
    assert rows_of(kept, "b.txt")[-1].detail[CLIENT_CALL_ID] == call


@pytest.mark.usefixtures("_impatient")
@pytest.mark.parametrize("is_in_background", [False, True])
def test_a_change_of_another_tree_during_two_commands_is_reported_once(
    kept: Workspace, repository: Repository, tmp_path: Path, is_in_background: bool
) -> None:
    linked = tmp_path / "linked"
    repository.git("worktree", "add", "-q", str(linked))
    kept.trees.look_after()
    alice = ScriptedClient(kept, "alice", linked)
    first = begin_background(alice, "./serve") if is_in_background else ""
    locked = lock(repository)
    with locked.open("rb"):
        if not is_in_background:
            alice.end_bash(*alice.begin_bash("./first"))
        second = alice.begin_bash("./second")
        repository.write("b.txt", "by a command\n")
    locked.unlink()
    alice.end_bash(*second)
    alice.hook(
        "UserPromptSubmit", prompt=f"<task-notification>{first or 'No task'} has ended</task-notification>"
    )
    assert "".join(alice.told).count(str(repository.folder / "b.txt")) == 1


def test_a_change_of_another_tree_while_git_worked_is_reported(
    kept: Workspace, repository: Repository, tmp_path: Path
) -> None:
    linked = tmp_path / "linked"
    repository.git("worktree", "add", "-q", str(linked))
    kept.trees.look_after()
    alice = ScriptedClient(kept, "alice", linked)
    call, given = alice.begin_bash("./generate")
    locked = lock(repository)
    with locked.open("rb"):
        repository.write("b.txt", "by the command\n")
        alice.end_bash(call, given)
    locked.unlink()
    assert is_soon(lambda: not kept.trees.is_uncompared(Window("alice", call)))

    def is_told() -> bool:
        alice.end_bash(*alice.begin_bash("./other"))
        return any(str(repository.folder / "b.txt") in each for each in alice.told)

    assert is_soon(is_told, 10.0)


def test_an_unwatched_tree_is_compared_soon_after_a_command_and_git_have_ended(
    repository: Repository,
) -> None:
    with Workspace.open(repository.root, agents=["alice"], platform=UnwatchedPlatform()) as workspace:
        assert workspace.keep()
        workspace.trees.refresh_all()
        alice = ScriptedClient(workspace, "alice", repository.folder)
        call, given = alice.begin_bash("./generate")
        locked = lock(repository)
        with locked.open("rb"):
            alice.end_bash(call, given)
        locked.unlink()
        assert is_soon(lambda: not workspace.trees.is_uncompared(Window("alice", call)), 10.0)


# Commits of which a comparison learns late


def test_a_commit_whose_rows_were_refused_is_recorded_afterwards(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    call, given = alice.begin_bash("./generate && git commit -a")
    with refusing(repository.root, f"NEW.zone = '{REPO}'"):
        repository.commit(b__txt="by the command\n")
        with pytest.raises(JournalError):
            alice.end_bash(call, given)
    kept.trees.refresh_all()
    assert authors(kept, "b.txt") == ["system", "alice"]


@pytest.mark.parametrize("kept_days", [90, 0])
def test_a_commit_after_git_has_shortened_its_log_is_no_change_by_git(
    repository: Repository, kept_days: int
) -> None:
    for _ in range(3):
        asked = ("commit", "-q", "--allow-empty", "-m", "old")
        git(repository.folder, *asked, GIT_COMMITTER_DATE="2020-01-01T00:00:00")
    repository.commit()
    with Workspace.open(repository.root, agents=["alice"]) as workspace:
        assert workspace.keep()
        workspace.trees.refresh_all()
        expire = ("reflog", "expire", f"--expire={kept_days}.days", "--all")
        if not kept_days:
            repository.commit(a__txt="by hand\n")
            repository.git(*expire)
            workspace.trees.refresh_all()
        alice = ScriptedClient(workspace, "alice", repository.folder)
        call, given = alice.begin_bash("./generate && git commit -a && git gc")
        with lock(repository).open("rb"):
            repository.write("b.txt", "by the command\n")
            (repository.folder / ".git" / "index.lock").unlink()
            repository.git("commit", "-qam", "m")
            if kept_days:
                repository.git(*expire)
            alice.end_bash(call, given)
        assert authors(workspace, "b.txt") == ["system", "alice"]


# Filters, trees and watches that fail


def test_changes_are_recorded_although_a_filter_hangs(
    kept: Workspace, repository: Repository, alice: ScriptedClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("watchroom.features.trees.git._STATUS_SECONDS", 0.3)
    repository.commit(__gitattributes="slow.txt filter=slow\n", slow__txt="one\n")
    kept.trees.refresh_all()
    call, given = alice.begin_bash("./generate")
    repository.git("update-index", "--chmod=+x", "a.txt")
    repository.git("config", "filter.slow.clean", "sleep 60")
    repository.write("slow.txt", "two\n")
    repository.write("b.txt", "by the command\n")
    alice.end_bash(call, given)
    assert authors(kept, "b.txt") == ["system", "alice"]
    assert texts(kept, "slow.txt")[-1] == "two\n"


def test_a_tree_in_which_git_fails_does_not_stop_the_recording_of_others(
    kept: Workspace, repository: Repository, alice: ScriptedClient, tmp_path: Path
) -> None:
    repository.git("worktree", "add", "-q", str(tmp_path / "broken"))
    kept.trees.look_after()
    (repository.folder / ".git" / "worktrees" / "broken" / "index").write_bytes(b"no index")
    call, given = alice.begin_bash("./generate")
    repository.write("b.txt", "by the command\n")
    alice.end_bash(call, given)
    tree = kept.trees.tree_at(str(repository.folder))
    assert tree is not None
    assert [row.actor for row in kept.journal.history(REPO, tree.path("b.txt"))] == ["system", "alice"]


def test_a_process_begins_to_keep_a_workspace_during_a_comparison(repository: Repository) -> None:
    with Workspace.open(repository.root) as workspace:
        workspace.trees.refresh_all()
        with comparing(workspace, repository):
            keeping = Thread(target=workspace.keep, daemon=True)
            keeping.start()
            keeping.join(20.0)
            assert not keeping.is_alive()


@pytest.mark.slow(2)
def test_a_tree_that_cannot_be_watched_again_is_compared_at_intervals(
    kept: Workspace, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("watchroom.features.trees.watcher.UNWATCHED_SECONDS", 0.2)
    monkeypatch.setattr(INotify, "add_watch", refuse)
    repository.write(".gitignore", "*.log\n")
    assert is_soon(lambda: len(rows_of(kept, ".gitignore")) == 1)
    repository.write("a.txt", "by hand\n")
    assert is_soon(lambda: authors(kept, "a.txt") == ["system", "outside"], 10.0)
