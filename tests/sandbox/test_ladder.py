"""Which fences are found, and what is said of those that are not."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
from pathlib import Path

import pytest
from sandbox.machine import Held, groups_left
from watchroom.sandbox.errors import CommandNotStarted
from watchroom.sandbox.fences import Fence
from watchroom.sandbox.groups import Groups
from watchroom.sandbox.ladder import Ladder
from watchroom.sandbox.running import run


def bubblewrap(tmp_path: Path, script: str) -> None:
    path = tmp_path / "bwrap"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_without_bubblewrap_its_rung_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    rung = Ladder.probed().rungs[0]
    assert (rung.name, rung.installed, rung.works, rung.fence) == ("bubblewrap", False, False, None)


@pytest.mark.parametrize(
    "script", ["echo 'bwrap: No permissions to create a namespace' >&2; exit 1", "exit 3", "kill -9 $$"]
)
def test_one_that_does_not_work_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    bubblewrap(tmp_path, script)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    rung = Ladder.probed().rungs[0]
    assert (rung.installed, rung.works, rung.fence) == (True, False, None)
    assert rung.why
    if "permissions" in script:
        assert "No permissions to create a namespace" in rung.why


def test_an_older_one_is_given_only_what_it_knows(
    bubblewrapped: Fence, tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as that of Ubuntu 22.04, which lacks three of our options."""
    real = shutil.which("bwrap")
    newer = "--disable-userns|--bind-fd|--ro-bind-fd|--size"
    bubblewrap(
        tmp_path,
        f"case $1 in --help) {real} --help | grep -vE -e '{newer}'; exit;; esac\n"
        f'for each; do case $each in {newer}) echo "bwrap: Unknown option $each" >&2; exit 1;; esac; done\n'
        f'exec {real} "$@"',
    )
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    older = Ladder.probed().rungs[0].fence
    assert older
    (folder / ".git").mkdir()
    finished = run("ls /proc/self/fd; echo x > file; echo x > .git/config", str(folder), fence=older)
    assert finished.stdout.split() == ["0", "1", "2", "3"]
    assert (folder / "file").read_text() == "x\n"
    assert not (folder / ".git" / "config").exists()


def test_a_fence_that_is_gone_meanwhile_says_so(
    bubblewrapped: Fence, tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = shutil.which("bwrap")
    bubblewrap(tmp_path, f'exec {real} "$@"')
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    gone = Ladder.probed().best
    assert gone
    (tmp_path / "bwrap").unlink()
    with pytest.raises(CommandNotStarted):
        run("true", str(folder), fence=gone)


def test_as_root_nothing_runs_where_nothing_bounds_processes(ladder: Ladder) -> None:
    """A fork bomb of root's is faster than whoever counts."""
    ungrouped = Ladder.probed(Groups())
    assert not ungrouped.bounded_as_one
    for rung, bounded in zip(ungrouped.rungs, ladder.rungs, strict=True):
        assert rung.works == (bounded.works and os.getuid() != 0)
        assert not (bounded.works and os.getuid() == 0) or "control groups" in rung.why


def test_what_a_killed_program_left_running_is_ended(ladder: Ladder) -> None:
    if not ladder.bounded_as_one:
        pytest.skip("no control groups can be made here: what needs them is not tested")
    with subprocess.Popen(["true"]) as gone:
        gone.wait()
    left = [Path(place.path) / f"watchroom-{gone.pid}-0" for place in Groups.found().places]
    with subprocess.Popen(["sleep", "600"]) as process:
        for folder in left:
            folder.mkdir()
            (folder / "cgroup.procs").write_text(str(process.pid))
        assert Groups.found().places
        assert process.wait(30) == -9
    assert [folder for folder in left if folder.exists()] == []


def test_without_a_file_to_open_nothing_starts_and_nothing_leaks(fence: Fence, folder: Path) -> None:
    """Whatever is the first that cannot be opened."""
    before = Held.now()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.dup(0)
    os.close(lowest)
    outcomes = []
    # What others hold may lie among the numbers that are free: up to so many are tried.
    for most in range(lowest + 1, lowest + 1_000):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        try:
            outcomes.append(run("echo done", str(folder), fence=fence).stdout)
        except CommandNotStarted:
            outcomes.append("not started")
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        if outcomes[-10:] == ["done\n"] * 10:
            break
    assert set(outcomes) == {"not started", "done\n"}
    assert not Held.now().since(before)
    assert groups_left() == []
