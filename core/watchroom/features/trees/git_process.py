"""Runs git in a working tree, with the person's own settings, and with timeouts.

The person's filters apply, because files are compared as git checks them out. Hooks and other programs that
the repository's settings name are never run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from watchroom.errors import GitError, GitMissing
from watchroom.features.tasks.ignored_files import SAFE_SETTINGS
from watchroom.platform.child_process import ChildResult, run_child

SECONDS: Final = 60.0
"""The default timeout of a call."""
MAX_OUTPUT: Final = 256 * 1024 * 1024
"""Maximum output of git in bytes."""
_MAX_REASON: Final = 500
_PERSONAL: Final = (
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
    "GIT_COMMITTER_NAME",
    "GIT_COMMITTER_EMAIL",
)
"""Git's environment variables for personal settings. Its other variables name another repository or run
programs."""
SettingsStamps: TypeAlias = tuple[tuple[int, int] | None, ...]
"""The time of the last change and the inode of each file with settings, None for a missing file."""


def run_git(
    arguments: Sequence[str],
    *,
    folder: str,
    variables: Mapping[str, str] | None = None,
    settings: Sequence[str] = (),
    given: bytes = b"",
    timeout: float = SECONDS,
    accepted: Sequence[int] | None = (0,),
    on_errors: Callable[[bytes], object] | None = None,
) -> ChildResult:
    """Run git. Return its exit code and output.

    - ``arguments``: its command line.
    - ``folder``: its working directory.
    - ``variables``: additional environment variables, such as ``GIT_DIR``.
    - ``settings``: additional settings, such as ``core.sparseCheckout=false``.
    - ``given``: its standard input.
    - ``timeout``: seconds, default 60.
    - ``accepted``: the expected exit codes, default 0; None accepts all.
    - ``on_errors``: called with each part of standard error as soon as git prints it.

    Raise `GitMissing`, and `GitError` if git ends with another exit code, exceeds the timeout, or prints
    more than 256 MiB.
    """
    try:
        done = run_child(
            git_command(arguments, settings),
            given=given,
            timeout=timeout,
            max_output=MAX_OUTPUT,
            folder=folder,
            environment=git_environment(variables or {}),
            on_errors=on_errors,
        )
    except TimeoutError as error:
        raise GitError(reason=f"git {arguments[0]}: {timeout:.0f} s") from error
    except OSError as error:
        if isinstance(error, FileNotFoundError) and error.filename == "git":
            raise GitMissing from error
        raise GitError(reason=f"git {arguments[0]}: {error.strerror or '?'}") from error
    if accepted is not None and done.status not in accepted:
        raise GitError(reason=reason_of(done))
    return done


def is_timeout(error: GitError) -> bool:
    """Return whether `run_git` has raised ``error`` because git exceeded the timeout."""
    return isinstance(error.__cause__, TimeoutError)


def git_command(arguments: Sequence[str], settings: Sequence[str] = ()) -> list[str]:
    """Return the command that runs git with ``arguments``. ``settings``: see `run_git`."""
    options = [part for setting in (*SAFE_SETTINGS, *settings) for part in ("-c", setting)]
    return ["git", "--no-pager", *options, *arguments]


def reason_of(done: ChildResult) -> str:
    """Return the error output of git as one line."""
    printed = done.errors.decode("utf-8", "replace")
    text = " ".join("".join(each if each.isprintable() else " " for each in printed).split())
    return text[:_MAX_REASON] or f"exit code {done.status}"


def git_environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the environment in which git runs, with ``variables`` added."""
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name in _PERSONAL
    }
    return {
        **inherited,
        "LC_ALL": "C",
        # Large files are not needed here: the LFS pointer has their size and checksum.
        "GIT_LFS_SKIP_SMUDGE": "1",
        "GIT_LITERAL_PATHSPECS": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        **variables,
    }


def stamp_settings(folder: str, git: str, common: str, kind: str, own: str) -> SettingsStamps:
    """Return the stamps of the files with settings that apply to a whole working tree. A git process that
    keeps running must be restarted if they change.

    - ``folder``, ``git``, ``common``: the tree's folder, its git folder, and the git folder of all trees.
    - ``kind``: ``attributes`` or ``ignore``. The tree's root has a file ``.gitattributes`` or ``.gitignore``.
    - ``own``: the name of such a file in git's folder ``info``.
    """
    personal = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    files = (
        os.path.join(common, "config"),
        os.path.join(git, "config.worktree"),
        os.path.join(common, "info", own),
        os.path.join(folder, f".git{kind}"),
        os.path.join(personal, "git", "config"),
        os.path.join(personal, "git", kind),
        os.environ.get("GIT_CONFIG_GLOBAL") or os.path.expanduser("~/.gitconfig"),
    )
    return tuple(map(_stamp, files))


def _stamp(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino
