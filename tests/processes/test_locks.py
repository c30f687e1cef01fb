"""The workspace's lock: for its owner alone, not for ever, and in nobody's way once a row is kept."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import stat
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from calls import ok, refused
from memory_journal import MemoryJournal
from refusing import slow
from watchroom import Toolbox, Workspace
from watchroom.errors import JournalBusy, LocksUnsupported, OutcomeUnknown, WorkspaceLocked
from watchroom.kernel.background import Background
from watchroom.kernel.commit import GroupCommit
from watchroom.model import Appended, Draft, Note
from watchroom.platform import Platform
from watchroom.platform.linux import LinuxPlatform
from watchroom.platform.process_lock import ProcessLock


def open_to_others(control: Path) -> dict[str, str]:
    """What beneath a folder others than its owner may read, write or lock."""
    found = {each: each.lstat().st_mode for each in (control, *control.rglob("*"))}
    return {
        each.name: stat.filemode(mode) for each, mode in found.items() if stat.S_ISREG(mode) and mode & 0o077
    }


def test_the_control_folder_is_its_owners_alone(root: Path, alice: Toolbox) -> None:
    ok(alice, "save_to_my_workspace", filename="notes.md", content="x")
    assert stat.S_IMODE((root / ".watchroom").stat().st_mode) == 0o700
    assert open_to_others(root / ".watchroom") == {}
    # What agents write stays for everyone to read who may enter the workspace.
    assert (root / "agents/alice/notes.md").stat().st_mode & 0o444 == 0o444


def test_a_workspace_made_before_is_closed_to_others(root: Path) -> None:
    with Workspace.open(root, agents=["alice"]):
        pass
    control = root / ".watchroom"
    control.chmod(0o755)
    for each in control.iterdir():
        each.chmod(0o666 if each.is_file() else 0o755)
    with Workspace.open(root):
        assert stat.S_IMODE(control.stat().st_mode) == 0o700
        assert open_to_others(control) == {}


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """While somebody else holds a lock on the file."""
    fd = os.open(path, os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_EX)
    try:
        yield
    finally:
        os.close(fd)


def name_of_this(platform: Platform) -> str:
    """What is told of a holder of a lock that is this process."""
    return f" ({os.getpid()})." if isinstance(platform, LinuxPlatform) else " -."


@pytest.mark.sqlite("A server has no lock file.")
def test_a_lock_that_is_not_let_go_is_told_of_with_its_holder(
    root: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All who wait are refused at once, and the same writers go on as soon as the lock is free."""
    monkeypatch.setattr("watchroom.platform.process_lock.ProcessLock.acquire.__defaults__", (0.3,))
    results: dict[str, object] = {}

    def write(agent: str) -> None:
        results[agent] = refused(
            workspace.tools(agent), "save_to_my_workspace", filename="notes.md", content="x"
        )

    with locked(root / ".watchroom" / "journal.lock"):
        threads = [threading.Thread(target=write, args=(agent,)) for agent in ("alice", "bob", "charlie")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for result in results.values():
        assert isinstance(result, dict)
        assert result["error"] == "workspace_locked"
        assert name_of_this(workspace.platform) in result["message"]
    assert workspace.journal.head("private", "alice/notes.md") is None
    ok(workspace.tools("alice"), "save_to_my_workspace", filename="notes.md", content="x")
    ok(workspace.tools("bob"), "save_to_my_workspace", filename="notes.md", content="x")
    assert workspace.verify() == []


@pytest.mark.sqlite("A server has no lock file.")
def test_whoever_waited_in_vain_waits_once(
    root: Path, workspace: Workspace, alice: Toolbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The row of the refused call follows when the journal is free; the caller does not wait for it."""
    monkeypatch.setattr("watchroom.platform.process_lock.ProcessLock.acquire.__defaults__", (0.3,))
    waits: list[str] = []
    acquire = ProcessLock.acquire

    def counted(lock: ProcessLock, *seconds: float) -> None:
        waits.append(threading.current_thread().name)
        acquire(lock, *seconds)

    monkeypatch.setattr(ProcessLock, "acquire", counted)
    with locked(root / ".watchroom" / "journal.lock"):
        result = refused(alice, "collab_write", filepath="plan.md", content="x", message="m")
        assert waits.count(threading.current_thread().name) == 1
    assert result["error"] == "workspace_locked"
    workspace.flush()
    (row,) = workspace.journal.refused("collab", "plan.md", limit=20)
    assert (row.actor, row.error) == ("alice", "workspace_locked")


def test_a_claim_in_vain_leaves_no_thread_behind(root: Path, workspace: Workspace) -> None:
    """Some are tried again every few seconds, for as long as another process has them."""
    with Workspace.open(root, scan=False) as other, other.journal.claim("index") as is_first:
        assert is_first
        before = threading.active_count()
        for _ in range(3):
            with workspace.journal.claim("index") as is_ours:
                assert not is_ours
        assert threading.active_count() == before
    with workspace.journal.claim("index") as is_ours:
        assert is_ours


def test_an_opening_in_vain_tells_who_holds_the_files_up(
    root: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It ends at once, without waiting again to leave things tidy."""
    workspace.close()
    monkeypatch.setattr("watchroom.kernel.checkout.cursor.LOCK_SECONDS", 0.3)
    with (
        locked(root / ".watchroom" / "lock"),
        pytest.raises(WorkspaceLocked, match=str(os.getpid())),
    ):
        Workspace.open(root)
    assert caplog.text == ""
    with Workspace.open(root) as again:
        assert again.verify() == []


def test_a_writer_is_told_who_holds_the_files_up_and_waits_for_it_once(
    root: Path, workspace: Workspace, alice: Toolbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first write stands, since its row is durable. The next is refused at once, until the files are free."""
    monkeypatch.setattr("watchroom.kernel.checkout.cursor.LOCK_SECONDS", 0.3)
    with locked(root / ".watchroom" / "lock"):
        ok(alice, "collab_write", filepath="plan.md", content="one", message="m", expected_version=0)
        for _ in range(2):
            result = refused(
                alice, "collab_write", filepath="plan.md", content="two", message="m", expected_version=1
            )
            assert result["error"] == "workspace_locked"
            assert name_of_this(workspace.platform) in str(result["message"])
        ok(alice, "check_my_handoffs")
    ok(alice, "collab_write", filepath="plan.md", content="three", message="m", expected_version=1)
    assert (root / "collaborative/current/plan.md").read_text() == "three"
    assert workspace.verify() == []


def test_rows_that_the_journal_has_no_time_for_wait_together() -> None:
    batches: list[int] = []

    class BusyJournal(MemoryJournal):
        def append(self, drafts: Sequence[Draft], *, all_or_nothing: bool = False) -> list[Appended]:
            batches.append(len(drafts))
            raise JournalBusy(seconds=10)

    journal = BusyJournal()
    with closing(Background(journal)) as background:
        commits = GroupCommit(journal, background)
        for agent in ("alice", "bob"):
            commits.note(Note(agent, "collab_read", "collab", "plan.md"))
        with pytest.raises(JournalBusy):
            commits.flush()
        assert batches == [2]


class FailingUnlock(LinuxPlatform):
    """Fails to let go of a lock once, when it ``fails``."""

    fails = False

    def unlock(self, file: int) -> None:
        if self.fails:
            self.fails = False
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        super().unlock(file)


def test_an_error_when_the_lock_is_let_go_takes_nothing_back(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    platform = FailingUnlock()
    with Workspace.open(root, agents=["alice", "bob"], platform=platform) as workspace:
        alice = workspace.tools("alice")
        platform.fails = True
        assert ok(alice, "collab_write", filepath="plan.md", content="x", message="m")["version"] == 1
        assert "could not be unlocked" in caplog.text
        # Another opening of the workspace is another holder of the lock: it is free.
        with Workspace.open(root) as other:
            bob = other.tools("bob")
            assert ok(bob, "collab_write", filepath="b.md", content="x", message="m")["version"] == 1
        assert ok(alice, "collab_write", filepath="plan.md", content="y", message="m")["version"] == 2


class WithoutLocks(LinuxPlatform):
    """As on a file system of a network that has none."""

    def try_lock(self, file: int) -> bool:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))


def test_a_file_system_without_locks_is_refused_by_name(root: Path) -> None:
    with pytest.raises(LocksUnsupported, match="No locks available") as refusal:
        Workspace.open(root, agents=["alice"], platform=WithoutLocks())
    assert str(root) in refusal.value.message()
    # Elsewhere it opens as if nothing had been.
    with Workspace.open(root, agents=["alice"]) as workspace:
        assert workspace.verify() == []


@pytest.mark.sqlite
def test_threads_whose_leader_is_interrupted_do_not_know_whether_they_have_rows(
    workspace: Workspace, root: Path
) -> None:
    commits = GroupCommit(workspace.journal, workspace.background)
    notes = [Note(agent, "collab_read", "collab", "a", message="slow") for agent in ("alice", "bob")]

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    def interrupt_second(first: Future[Appended]) -> None:
        first.result()
        # Now the other thread leads.
        time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGUSR1)

    def commit_third() -> Appended:
        # The main thread waits first, so it leads once the first row is there.
        time.sleep(0.2)
        return commits.commit(Note("charlie", "collab_read", "collab", "c"))

    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        with slow(root, "NEW.message = 'slow'"), ThreadPoolExecutor() as pool:
            first = pool.submit(commits.commit, notes[0])
            time.sleep(0.1)
            third = pool.submit(commit_third)
            pool.submit(interrupt_second, first)
            with pytest.raises(KeyboardInterrupt):
                commits.commit(notes[1])
            with pytest.raises(OutcomeUnknown):
                third.result()
    finally:
        signal.signal(signal.SIGUSR1, before)
