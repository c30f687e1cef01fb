"""The workspace's lock: for its owner alone, not for ever, and in nobody's way once a row is kept."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from calls import ok, refused
from watchroom import Toolbox, Workspace


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


def test_a_lock_that_is_not_let_go_is_told_of_with_its_holder(
    root: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All who wait are refused at once, and the same writers go on as soon as the lock is free."""
    monkeypatch.setattr("watchroom.process_lock.ProcessLock.acquire.__defaults__", (0.3,))
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
        assert str(os.getpid()) in result["message"]
    assert workspace.journal.head("private", "alice/notes.md") is None
    ok(workspace.tools("alice"), "save_to_my_workspace", filename="notes.md", content="x")
    ok(workspace.tools("bob"), "save_to_my_workspace", filename="notes.md", content="x")
    assert workspace.verify() == []


def test_an_error_when_the_lock_is_let_go_takes_nothing_back(
    workspace: Workspace, alice: Toolbox, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    flock, faults = fcntl.flock, iter((True,))

    def failing(fd: int, operation: int) -> None:
        if operation == fcntl.LOCK_UN and next(faults, False):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        flock(fd, operation)

    monkeypatch.setattr(fcntl, "flock", failing)
    assert ok(alice, "collab_write", filepath="plan.md", content="x", message="m")["version"] == 1
    assert "could not be unlocked" in caplog.text
    # Another opening of the workspace is another holder of the lock: it is free.
    with Workspace.open(workspace.root) as other:
        assert (
            ok(other.tools("bob"), "collab_write", filepath="b.md", content="x", message="m")["version"] == 1
        )
    assert ok(alice, "collab_write", filepath="plan.md", content="y", message="m")["version"] == 2
