"""Git changes many files: half of it is not taken for the work of somebody else."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from inotify_simple import INotify
from trees.git_repository import Repository
from trees.tree_client import ScriptedClient
from watchroom import Row, Workspace
from watchroom.features.trees.recorder import Window
from watchroom.features.trees.rows import BASELINE, REPO, grade_of

FILES = 10_000


def rows_of(workspace: Workspace, name: str) -> list[Row]:
    """Return the versions of a file as they are now, without a barrier."""
    (tree,) = workspace.trees.all()
    return workspace.journal.history(REPO, tree.path(name))


def is_soon(holds: Callable[[], bool], seconds: float = 60.0) -> bool:
    deadline = time.monotonic() + seconds
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.01)
    return holds()


def lock(repository: Repository) -> Path:
    """Lock the index, as a git command does that begins now."""
    path = repository.folder / ".git" / "index.lock"
    path.touch()
    return path


def make_old(lock: Path, age: float) -> None:
    """Make ``lock`` the lock of a git command that began ``age`` seconds ago."""
    began = time.time() - age
    os.utime(lock, (began, began))


def test_what_changes_while_git_works_is_recorded_afterwards(kept: Workspace, repository: Repository) -> None:
    locked = lock(repository)
    with locked.open("rb"):
        repository.write("a.txt", "half\n")
        time.sleep(0.5)
        assert rows_of(kept, "a.txt") == []
        kept.trees.refresh_all()
        assert rows_of(kept, "a.txt") == []
    locked.unlink()
    assert is_soon(lambda: len(rows_of(kept, "a.txt")) == 2)


def test_a_call_waits_a_second_for_git_and_then_compares_its_own_file(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    alice.read("a.txt")
    locked = lock(repository)
    with locked.open("rb"):
        repository.write("a.txt", "one\ntwo\nthree\nfour\nby hand\n")
        repository.write("b.txt", "by git, perhaps\n")
        began = time.monotonic()
        begun = alice.begin_edit("a.txt", "one", "ONE")
        assert 0.9 < time.monotonic() - began < 6.0
        alice.end_edit(*begun)
        assert [row.actor for row in rows_of(kept, "a.txt")] == ["system", "outside", "alice"]
        assert rows_of(kept, "b.txt") == []
    locked.unlink()
    assert is_soon(lambda: len(rows_of(kept, "b.txt")) == 2)


def test_a_command_that_ends_while_git_works_has_made_its_changes(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    call, given = alice.begin_bash("./generate")
    locked = lock(repository)
    with locked.open("rb"):
        repository.write("b.txt", "by the command\n")
        alice.end_bash(call, given)
        assert rows_of(kept, "b.txt") == []
    locked.unlink()
    assert is_soon(lambda: len(rows_of(kept, "b.txt")) == 2)
    assert [row.actor for row in rows_of(kept, "b.txt")] == ["system", "alice"]
    repository.write("a.txt", "by hand\n")
    kept.trees.refresh_all()
    assert [row.actor for row in rows_of(kept, "a.txt")] == ["system", "outside"]


def test_lines_that_a_command_removed_while_git_worked_are_a_conflict(
    kept: Workspace, repository: Repository, alice: ScriptedClient, bob: ScriptedClient
) -> None:
    (tree,) = kept.trees.all()
    alice.read("b.txt")
    call, given = alice.begin_bash("./generate b.txt")
    bob.read("b.txt")
    bob.edit("b.txt", "b", "b\nby bob")
    locked = lock(repository)
    with locked.open("rb"):
        repository.write("b.txt", "b\nby the command\n")
        alice.end_bash(call, given)
    locked.unlink()
    assert is_soon(lambda: len(kept.journal.refused(REPO, tree.path("b.txt"))) == 1)
    (lost,) = kept.journal.refused(REPO, tree.path("b.txt"))
    assert (lost.error, kept.journal.content(lost.seq)) == ("lines_lost", "b\nby bob\n")
    call, given = alice.begin_bash("true")
    said = alice.hook(
        "PostToolUse", tool_name="Bash", tool_use_id=call, tool_input=given, tool_response={"stdout": ""}
    )
    assert "bob" in str(said)


def test_a_command_is_compared_when_git_gives_up(
    kept: Workspace, repository: Repository, alice: ScriptedClient
) -> None:
    """A git command that changes nothing is no news for the watcher."""
    call, given = alice.begin_bash("git commit")
    locked = lock(repository)
    with locked.open("rb"):
        alice.end_bash(call, given)
    locked.unlink()
    assert is_soon(lambda: not kept.trees.is_uncompared(Window("alice", call)))
    repository.write("a.txt", "by hand\n")
    assert is_soon(lambda: [row.actor for row in rows_of(kept, "a.txt")] == ["system", "outside"])


def test_a_tree_is_first_compared_when_git_is_done(repository: Repository) -> None:
    locked = lock(repository)
    with locked.open("rb"), Workspace.open(repository.root, agents=["alice"]) as workspace:
        assert workspace.keep()
        alice = ScriptedClient(workspace, "alice", repository.folder)
        repository.write("b.txt", "half\n")
        alice.edit("a.txt", "one", "ONE")
        assert [row.actor for row in rows_of(workspace, "a.txt")] == ["system", "alice"]
        workspace.trees.refresh_all()
        assert rows_of(workspace, "b.txt") == []
        locked.unlink()
        assert is_soon(lambda: len(rows_of(workspace, "b.txt")) == 2)


@pytest.mark.parametrize("age", [60.0, -3600.0])
def test_nobody_waits_for_the_lock_of_a_git_that_was_killed(
    kept: Workspace, repository: Repository, alice: ScriptedClient, age: float
) -> None:
    alice.read("a.txt")
    make_old(lock(repository), age)
    repository.write("b.txt", "by hand\n")
    assert is_soon(lambda: len(rows_of(kept, "b.txt")) == 2)
    taken = []
    for old, new in (("one", "ONE"), ("two", "TWO"), ("three", "THREE")):
        began = time.monotonic()
        alice.edit("a.txt", old, new)
        taken.append(time.monotonic() - began)
    assert min(taken) < 0.9


def test_a_lock_that_a_process_has_open_is_waited_for_however_old_it_is(
    kept: Workspace, repository: Repository
) -> None:
    locked = lock(repository)
    with locked.open("rb"):
        make_old(locked, 60.0)
        repository.write("b.txt", "half\n")
        time.sleep(0.7)
        kept.trees.refresh_all()
        assert rows_of(kept, "b.txt") == []
    assert is_soon(lambda: len(rows_of(kept, "b.txt")) == 2)


@contextmanager
def comparing(kept: Workspace, repository: Repository) -> Iterator[None]:
    """A context within a comparison of the whole tree: in it, git compares slow.txt for a second."""
    repository.git("config", "filter.slow.clean", "[ -e .git/begun ] || { touch .git/begun; sleep 1; }; cat")
    repository.commit(__gitattributes="slow.txt filter=slow\n", slow__txt="one\n", z__txt="z\n")
    kept.trees.refresh_all()
    begun = repository.folder / ".git" / "begun"
    begun.unlink()
    repository.write("slow.txt", "two\n")
    # The whole tree is compared when the index has changed.
    repository.git("update-index", "--chmod=+x", "a.txt")
    with ThreadPoolExecutor() as threads:
        compared = threads.submit(kept.trees.refresh_all)
        assert is_soon(begun.exists)
        yield
        compared.result()


def test_a_commit_during_a_comparison_is_no_change_by_git(kept: Workspace, repository: Repository) -> None:
    with comparing(kept, repository):
        repository.commit(b__txt="by hand\n")
    kept.trees.refresh_all()
    assert [row.actor for row in rows_of(kept, "b.txt")] == ["system", "outside"]


def test_what_git_changes_during_a_comparison_is_recorded_afterwards(
    kept: Workspace, repository: Repository
) -> None:
    with comparing(kept, repository):
        locked = lock(repository)
        repository.write("z.txt", "half\n")
    assert [row.actor for row in rows_of(kept, "z.txt")] == ["outside"]
    locked.unlink()
    assert is_soon(lambda: len(rows_of(kept, "z.txt")) == 2)


@pytest.mark.real
def test_a_checkout_of_more_than_ten_seconds_is_git_s_work(repository: Repository) -> None:
    names = [f"slow{number}.txt" for number in range(4)]
    repository.git("config", "filter.slow.smudge", "sleep 3; cat")
    repository.git("config", "filter.slow.clean", "cat")
    repository.write(".gitattributes", "slow* filter=slow\n")
    for name in names:
        repository.write(name, "one\n")
    repository.commit()
    repository.git("checkout", "-q", "-b", "other")
    for name in names:
        repository.write(name, "two\n")
    repository.commit()
    with Workspace.open(repository.root) as workspace:
        assert workspace.keep()
        workspace.trees.refresh_all()
        before = workspace.journal.last_seq()
        repository.git("checkout", "-q", "main")
        workspace.trees.refresh_all()
        assert [row for row in workspace.journal.rows(before, limit=100) if row.zone == REPO] == []


@pytest.mark.real
@pytest.mark.parametrize("has_rows", [False, True])
def test_another_branch_with_many_changed_files_is_git_s_work(repository: Repository, has_rows: bool) -> None:
    names = [f"d{number // 100}/f{number % 100}.py" for number in range(FILES)]
    for name in names:
        repository.write(name, f"{name}\n" * 10)
    repository.commit()
    repository.git("checkout", "-q", "-b", "other")
    for name in names:
        repository.write(name, f"{name} on the other branch\n" * 10)
    repository.commit()
    with Workspace.open(repository.root) as workspace:
        assert workspace.keep()
        workspace.trees.refresh_all()
        if has_rows:
            for name in names[:100]:
                repository.write(name, "by hand\n")
            workspace.trees.refresh_all()
            repository.git("commit", "-qam", "by hand")
            workspace.trees.refresh_all()
        before = workspace.journal.last_seq()
        repository.git("checkout", "-q", "main")
        began = time.monotonic()
        workspace.trees.refresh_all()
        print(f"recorded in {time.monotonic() - began:.2f} s")
        found = [row for row in workspace.journal.rows(before, limit=100_000) if row.zone == REPO]
        assert {grade_of(row) for row in found if row.tool != BASELINE} <= {"git"}
        assert len(found) == (100 if has_rows else 0)


@pytest.mark.slow(8)
def test_changes_are_still_recorded_when_no_more_folders_can_be_watched(
    kept: Workspace, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(INotify, "add_watch", refuse)
    (repository.folder / "new").mkdir()
    repository.write("new/a.txt", "by hand\n")
    assert is_soon(lambda: len(rows_of(kept, "new/a.txt")) == 1, 20.0)
