"""What the tests of git share: git as somebody else runs it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
_ENVIRONMENT = {
    **os.environ,
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    **{
        f"GIT_{who}_{what}": f"dana@{what}.example"
        for who in ("AUTHOR", "COMMITTER")
        for what in ("NAME", "EMAIL")
    },
}


def git(repository: Path, *arguments: str) -> str:
    """What git prints of ``repository``, bare or not."""
    return git_bytes(repository, *arguments).decode()


def git_bytes(repository: Path, *arguments: str) -> bytes:
    done = subprocess.run(
        ["git", "-C", str(repository), *arguments], capture_output=True, check=False, env=_ENVIRONMENT
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def check(repository: Path) -> None:
    """git finds nothing wrong."""
    assert git(repository, "fsck", "--strict", "--no-dangling") == ""


def refs(repository: Path) -> str:
    return git(repository, "for-each-ref", "--format=%(refname) %(objectname)")


def files_at(repository: Path, commit: str = "main") -> dict[str, str]:
    """The files of a commit."""
    names = git_bytes(repository, "ls-tree", "-r", "-z", "--name-only", commit).decode().split("\0")
    return {name: git(repository, "cat-file", "blob", f"{commit}:{name}") for name in names if name}
