"""Which fences are found, and what is said of those that are not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from watchroom.sandbox.errors import CommandNotStarted
from watchroom.sandbox.fences import Fence
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
    fence: Fence, tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
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
    fence: Fence, tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = shutil.which("bwrap")
    bubblewrap(tmp_path, f'exec {real} "$@"')
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    gone = Ladder.probed().best
    assert gone
    (tmp_path / "bwrap").unlink()
    with pytest.raises(CommandNotStarted):
        run("true", str(folder), fence=gone)
