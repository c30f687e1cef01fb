"""Repositories for tests, written by real git without anybody's settings."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Final

ENVIRONMENT: Final = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "Pat",
    "GIT_AUTHOR_EMAIL": "pat@example.org",
    "GIT_COMMITTER_NAME": "Pat",
    "GIT_COMMITTER_EMAIL": "pat@example.org",
}


def git_bytes(folder: Path, *arguments: str, given: bytes = b"", **variables: str) -> bytes:
    """Return what git prints."""
    done = subprocess.run(
        ["git", "-c", "core.safecrlf=false", *arguments],
        cwd=folder,
        input=given,
        capture_output=True,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), **ENVIRONMENT, **variables},
        check=False,
    )
    assert done.returncode == 0, (arguments, done.stderr)
    return done.stdout


def git(folder: Path, *arguments: str, given: bytes = b"", **variables: str) -> str:
    """Return the text that git prints, without its last line feed."""
    return os.fsdecode(git_bytes(folder, *arguments, given=given, **variables)).rstrip("\n")


def make_repository(folder: Path, files: dict[str, bytes] | None = None, **settings: str) -> Path:
    """Make a repository with a commit of ``files``. ``settings``: of the section ``core``."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "--quiet", "--initial-branch=main")
    for name, value in settings.items():
        git(folder, "config", f"core.{name}", value)
    for path, data in (files or {}).items():
        write(folder, path, data)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "--message=start")
    return folder


def write(folder: Path, path: str, data: bytes, *, executable: bool = False) -> None:
    target = folder / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)
    target.chmod(0o755 if executable else 0o644)
