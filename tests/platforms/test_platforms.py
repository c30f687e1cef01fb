"""Each platform does what is asked of it: Linux, POSIX alone, and Linux whose kernel refuses what it adds."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest
from platforms.unanswered import NO_PROC, fail_ps, no_free_descriptors
from watchroom.agents.clients.acp_runner import namespace_command
from watchroom.errors import JournalError
from watchroom.kernel.journal import SqliteJournal
from watchroom.model import Note
from watchroom.platform import Platform, detect_platform
from watchroom.platform.disk import Folder
from watchroom.platform.linux import LinuxPlatform

PATIENCE = 30


def refuse(*_: object, **__: object) -> int:
    raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))


@pytest.fixture(params=["linux", "posix", "linux without its calls"])
def platform(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Platform:
    if request.param == "posix":
        return Platform()
    if request.param != "linux":
        monkeypatch.setattr("inotify_simple.INotify.__init__", refuse)
        monkeypatch.setattr(os, "pidfd_open", refuse)
    return LinuxPlatform()


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "1000"]) as process:
        yield process
        process.kill()


def test_who_waits_for_a_file_is_woken_by_a_write_a_call_and_its_closing(
    platform: Platform, tmp_path: Path
) -> None:
    path = tmp_path / "journal.lock"
    path.write_text("1")
    with ThreadPoolExecutor() as threads, closing(platform.watch_file(str(path))) as watch:
        began = time.monotonic()
        waiting = threads.submit(watch.wait, PATIENCE)
        with open(path, "r+") as file:
            # It stays open meanwhile, as a journal's does.
            file.write("2")
            file.flush()
            waiting.result(PATIENCE)
        for end in (watch.wake, watch.close):
            watch.wait(0)
            waiting = threads.submit(watch.wait, PATIENCE)
            end()
            waiting.result(PATIENCE)
        assert time.monotonic() - began < PATIENCE
        watch.wake()


def test_an_append_of_another_opening_wakes(platform: Platform, tmp_path: Path) -> None:
    with (
        closing(SqliteJournal(tmp_path / "journal.db", platform)) as ours,
        closing(SqliteJournal(tmp_path / "journal.db", platform)) as theirs,
        closing(ours.changes()) as changes,
        ThreadPoolExecutor() as threads,
    ):
        began = time.monotonic()
        waiting = threads.submit(changes.wait, PATIENCE)
        (made,) = theirs.append([Note("alice", "t", "collab", "a")])
        waiting.result(PATIENCE)
        assert time.monotonic() - began < PATIENCE
        assert ours.last_seq() == made.row.seq


def test_a_lock_is_held_by_one_opening_of_a_file_at_a_time(platform: Platform, tmp_path: Path) -> None:
    with (
        open(tmp_path / "lock", "w") as ours,
        open(tmp_path / "lock") as theirs,
        ThreadPoolExecutor() as pool,
    ):
        platform.lock(ours.fileno())
        assert not platform.try_lock(theirs.fileno())
        waiting = pool.submit(platform.lock, theirs.fileno())
        platform.unlock(ours.fileno())
        waiting.result(PATIENCE)
        assert not platform.try_lock(ours.fileno())
        platform.lock_shared(theirs.fileno())
        platform.lock_shared(ours.fileno())
        assert not platform.try_lock(ours.fileno())
        platform.unlock(theirs.fileno())
        assert platform.try_lock(ours.fileno())


def test_what_a_file_held_is_given_back_when_it_is_replaced(platform: Platform, tmp_path: Path) -> None:
    scratch = tmp_path / ".watchroom" / "tmp"
    with closing(Folder(str(tmp_path), str(scratch), platform)) as folder:
        assert folder.write(("a", "b.md"), b"first") is None
        with open(tmp_path / "a/b.md", "rb") as reader:
            replaced = [folder.write(("a", "b.md"), text) for text in (b"second", b"third", b"fourth")]
            assert reader.read() == b"first"
        assert replaced == [b"first", b"second", b"third"]
        assert (tmp_path / "a/b.md").read_bytes() == b"fourth"
    assert list(scratch.iterdir()) == []


def test_a_process_is_known_by_when_it_began_whatever_the_time_zone(
    platform: Platform, child: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    began = platform.process_start(child.pid)
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert platform.process_start(child.pid) == began > 0
    finally:
        monkeypatch.undo()
        time.tzset()
    assert platform.process_start(0) == 0
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert platform.process_start(child.pid) == 0, "it only waits to be collected"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says that a process is ending")
def test_a_process_whose_pipes_are_closed_by_its_end_is_gone() -> None:
    """Whoever reads the end of its output may look at once, before the process can be collected."""
    for _ in range(20):
        reads, writes = os.pipe()
        with subprocess.Popen(["sleep", "1000"], pass_fds=(writes,)) as child:
            os.close(writes)
            child.kill()
            assert os.read(reads, 1) == b""
            assert LinuxPlatform().process_start(child.pid) == 0
        os.close(reads)


def test_a_signal_goes_to_the_process_that_began_then_and_to_no_other(
    platform: Platform, child: subprocess.Popen[bytes]
) -> None:
    began = platform.process_start(child.pid)
    assert not platform.send_signal(child.pid, began + 1, signal.SIGTERM)
    assert platform.wait_ended(child.pid, began + 1, 0)
    assert not platform.wait_ended(child.pid, began, 0)
    assert platform.send_signal(child.pid, began, signal.SIGTERM)
    assert platform.wait_ended(child.pid, began, PATIENCE)
    assert not platform.send_signal(child.pid, began, signal.SIGTERM)
    assert child.wait() == -signal.SIGTERM


def test_a_process_counts_as_running_while_the_system_does_not_answer(
    platform: Platform, child: subprocess.Popen[bytes]
) -> None:
    began, boot = platform.process_start(child.pid), platform.boot_id()
    with no_free_descriptors():
        assert platform.find_start(child.pid) is None
        assert platform.is_running(child.pid, began)
        assert not platform.is_running(child.pid, 0)
        assert not platform.wait_ended(child.pid, began, 0)
        assert not platform.send_signal(child.pid, began, signal.SIGTERM)
        assert not type(platform)().has_restarted(boot)
        for ask in (platform.process, platform.parent, lambda _: [*platform.processes()]):
            with pytest.raises(OSError, match="Too many open files"):
                ask(child.pid)
    assert child.poll() is None
    assert platform.is_running(child.pid, began)
    child.kill()
    child.wait()
    with no_free_descriptors():
        assert not platform.is_running(child.pid, began)


@pytest.mark.parametrize("program", ["exec sleep 1000", "echo overloaded >&2; exit 1", "exit 2"])
def test_a_process_counts_as_running_while_ps_fails(
    child: subprocess.Popen[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    platform = Platform()
    began = platform.process_start(child.pid)
    fail_ps(tmp_path, monkeypatch, program)
    assert platform.find_start(child.pid, seconds=0.2) is None
    if "sleep" not in program:
        assert platform.is_running(child.pid, began)
        assert not platform.send_signal(child.pid, began, signal.SIGTERM)
        assert platform.boot_id() == ""
    child.kill()
    child.wait()
    assert not platform.is_running(child.pid, began)


HIDDEN: Final = """
import sys
from watchroom.platform.linux import LinuxPlatform
platform, (running, ended) = LinuxPlatform(), map(int, sys.argv[1:])
print(*((platform.find_start(pid), platform.is_running(pid, 1.0)) for pid in (running, ended)))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a /proc that hides processes")
def test_a_process_that_proc_hides_counts_as_running(child: subprocess.Popen[bytes]) -> None:
    if not namespace_command():
        pytest.skip("bubblewrap, which takes /proc away, does not work here")
    with subprocess.Popen(["true"]) as ended:
        pass
    command = [*NO_PROC, sys.executable, "-c", HIDDEN, str(child.pid), str(ended.pid)]
    said = subprocess.check_output(command, text=True)
    assert said == "(None, True) (0.0, False)\n"


@pytest.mark.parametrize("pid", [-1, 0, 1 << 31, 10**400])
def test_an_impossible_process_id_is_not_running(platform: Platform, pid: int) -> None:
    assert platform.find_start(pid) == 0
    assert not platform.is_running(pid, 1.0)


def test_processes_are_listed_with_their_parents_and_arguments(
    platform: Platform, child: subprocess.Popen[bytes]
) -> None:
    found = {each.pid: each for each in platform.processes()}
    assert found[child.pid].parent == os.getpid()
    assert found[child.pid].arguments[:2] == ("sleep", "1000")
    assert found[os.getpid()].arguments[0]


def test_what_shows_whose_a_process_is_is_told_as_far_as_the_system_says(platform: Platform) -> None:
    before = platform.process_clock()
    with subprocess.Popen(
        [sys.executable, "-c", "print(flush=True); input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
        env={"MARK": "a=b"},
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        found = {each.pid: each for each in platform.processes()}[child.pid]
        said = (
            *(found.group, found.session, found.started, found.owner),
            *(platform.environment(child.pid), child.pid in platform.children(os.getpid())),
        )
        if isinstance(platform, LinuxPlatform):
            started = platform.process_start(child.pid)
            assert said == (child.pid, child.pid, started, os.getuid(), {"MARK": "a=b"}, True)
            assert before - 1 <= started <= platform.process_clock()
            assert platform.process_scope(child.pid) == platform.process_scope(os.getpid())
            assert platform.process_scope(child.pid).namespace.startswith("pid:[")
        else:
            assert said == (0, 0, 0.0, -1, None, False)
            assert (before, platform.process_scope(child.pid)) == (0.0, ("", ""))
        child.communicate(b"\n")
    # Of one that is gone there is nothing.
    assert platform.environment(child.pid) is None
    assert platform.children(child.pid) == []
    assert platform.process_scope(child.pid) == ("", "")


def test_a_run_of_the_machine_has_one_name(platform: Platform) -> None:
    assert platform.boot_id() == type(platform)().boot_id() != ""


@pytest.fixture
def folder(tmp_path: Path, platform: Platform) -> Iterator[Folder]:
    with closing(Folder(str(tmp_path / "root"), str(tmp_path / "root/scratch"), platform)) as opened:
        yield opened


def test_what_is_removed_is_seen_when_nobody_can_write_to_it_any_more(folder: Folder) -> None:
    folder.write(("a.md",), b"one")
    seen: list[bytes | None] = []

    def look(removed: bytes | None) -> None:
        seen.append(removed)
        # Whoever saves the file in this moment makes a new one.
        folder.write(("a.md",), b"two", new=True)

    folder.remove(("a.md",), look=look)
    assert (seen, folder.read(("a.md",))) == ([b"one"], b"two")
    assert os.listdir(folder.scratch) == []


@pytest.mark.parametrize("newer", [None, b"two"])
def test_what_nobody_could_be_told_of_stays(folder: Folder, newer: bytes | None) -> None:
    folder.write(("a.md",), b"one")

    def look(removed: bytes | None) -> None:
        if newer is not None:
            folder.write(("a.md",), newer, new=True)
        raise JournalError(reason="gone")

    with pytest.raises(JournalError):
        folder.remove(("a.md",), look=look)
    assert folder.read(("a.md",)) == (newer or b"one")
    left = [Path(folder.scratch, each).read_bytes() for each in os.listdir(folder.scratch)]
    assert left == ([b"one"] if newer else [])


def test_a_symlink_is_removed_and_a_folder_is_not(folder: Folder) -> None:
    os.symlink("nowhere", os.path.join(folder.root, "link"))
    os.mkdir(os.path.join(folder.root, "b"))
    seen: list[bytes | None] = []
    folder.remove(("link",), look=seen.append)
    assert seen == [None]
    with pytest.raises(IsADirectoryError):
        folder.remove(("b",), look=seen.append)
    assert sorted(os.listdir(folder.root)) == ["b", "scratch"]


def test_a_closed_folder_is_not_mistaken_for_one_that_was_opened_later(
    folder: Folder, platform: Platform, tmp_path: Path
) -> None:
    folder.close()
    with closing(Folder(str(tmp_path / "other"), str(tmp_path / "other/scratch"), platform)) as other:
        other.write(("a.md",), b"other")
        for use in (folder.read, folder.stamp, folder.remove):
            with pytest.raises(OSError, match="Bad file descriptor"):
                use(("a.md",))
        assert other.read(("a.md",)) == b"other"


def test_a_clone_has_the_whole_content_or_none(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(b"content" * 10_000)
    with source.open("rb") as original, target.open("wb") as copy:
        is_cloned = detect_platform().clone_file(original.fileno(), copy.fileno())
    assert target.read_bytes() == (source.read_bytes() if is_cloned else b"")
    with source.open("rb") as original, target.open("wb") as copy:
        assert not Platform().clone_file(original.fileno(), copy.fileno())
