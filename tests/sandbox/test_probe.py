"""Which backends are found, and the reasons for those that are not."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
from pathlib import Path

import pytest
from sandbox.processes import Held, groups_left
from watchroom.errors import CommandNotStarted
from watchroom.platform.sandbox.backend import SandboxBackend
from watchroom.platform.sandbox.limits import CgroupFactory
from watchroom.platform.sandbox.probe import SandboxProbe
from watchroom.platform.sandbox.runner import run_command


def fake_bwrap(tmp_path: Path, script: str) -> None:
    path = tmp_path / "bwrap"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_without_bubblewrap_the_probe_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    result = SandboxProbe.run().results[0]
    assert (result.name, result.installed, result.works, result.backend) == ("bubblewrap", False, False, None)


@pytest.mark.parametrize(
    "script", ["echo 'bwrap: No permissions to create a namespace' >&2; exit 1", "exit 3", "kill -9 $$"]
)
def test_one_that_does_not_work_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    fake_bwrap(tmp_path, script)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    result = SandboxProbe.run().results[0]
    assert (result.installed, result.works, result.backend) == (True, False, None)
    assert result.reason
    if "permissions" in script:
        assert "No permissions to create a namespace" in result.reason


def test_an_older_one_is_given_only_what_it_knows(
    bubblewrap: SandboxBackend, tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bubblewrap of Ubuntu 22.04 lacks three options, for example."""
    real = shutil.which("bwrap")
    newer = "--disable-userns|--bind-fd|--ro-bind-fd|--size"
    fake_bwrap(
        tmp_path,
        f"case $1 in --help) {real} --help | grep -vE -e '{newer}'; exit;; esac\n"
        f'for each; do case $each in {newer}) echo "bwrap: Unknown option $each" >&2; exit 1;; esac; done\n'
        f'exec {real} "$@"',
    )
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    older = SandboxProbe.run().results[0].backend
    assert older
    (folder / ".git").mkdir()
    finished = run_command(
        "ls /proc/self/fd; echo x > file; echo x > .git/config", str(folder), backend=older
    )
    assert finished.stdout.split() == ["0", "1", "2", "3"]
    assert (folder / "file").read_text() == "x\n"
    assert not (folder / ".git" / "config").exists()


def test_a_sandbox_that_is_gone_meanwhile_says_so(
    bubblewrap: SandboxBackend, tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = shutil.which("bwrap")
    fake_bwrap(tmp_path, f'exec {real} "$@"')
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    gone = SandboxProbe.run().best
    assert gone
    (tmp_path / "bwrap").unlink()
    with pytest.raises(CommandNotStarted):
        run_command("true", str(folder), backend=gone)


def test_as_root_nothing_runs_where_nothing_bounds_processes(probe: SandboxProbe) -> None:
    """A fork bomb of root is faster than the check that counts processes."""
    ungrouped = SandboxProbe.run(CgroupFactory())
    assert not ungrouped.limits_processes_together
    for result, bounded in zip(ungrouped.results, probe.results, strict=True):
        assert result.works == (bounded.works and os.getuid() != 0)
        assert not (bounded.works and os.getuid() == 0) or "control groups" in result.reason


def test_what_a_killed_program_left_running_is_ended(probe: SandboxProbe) -> None:
    if not probe.limits_processes_together:
        pytest.skip("no control groups can be made here: what needs them is not tested")
    with subprocess.Popen(["true"]) as gone:
        gone.wait()
    left = [Path(place.path) / f"watchroom-{gone.pid}-0" for place in CgroupFactory.detect().parents]
    with subprocess.Popen(["sleep", "600"]) as process:
        for folder in left:
            folder.mkdir()
            (folder / "cgroup.procs").write_text(str(process.pid))
        assert CgroupFactory.detect().parents
        assert process.wait(30) == -9
    assert [folder for folder in left if folder.exists()] == []


def test_without_a_file_to_open_nothing_starts_and_nothing_leaks(
    backend: SandboxBackend, folder: Path
) -> None:
    """Each descriptor in turn is the first that cannot be opened."""
    before = Held.now()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.dup(0)
    os.close(lowest)
    outcomes = []
    # Numbers between the free ones can be in use, so more are tried.
    for most in range(lowest + 1, lowest + 1_000):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        try:
            outcomes.append(run_command("echo done", str(folder), backend=backend).stdout)
        except CommandNotStarted:
            outcomes.append("not started")
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        if outcomes[-10:] == ["done\n"] * 10:
            break
    assert set(outcomes) == {"not started", "done\n"}
    assert not Held.now().since(before)
    assert groups_left() == []
