"""Runs a command in a copy of a tree with a given content: a linked working tree, kept for the next try."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from threading import Event
from typing import Final, NamedTuple

from watchroom.errors import GitError
from watchroom.features.trees.git import GitTree
from watchroom.features.trees.git_process import run_git
from watchroom.platform.sandbox.contained import run_contained

TRIAL_FILE: Final = "watchroom-trial"
"""The file in a copy's git folder that marks it as a copy for tries."""
LINKED: Final = ("node_modules", ".venv", "venv")
"""The ignored folders that are linked into the copy in which a command is tried."""
_MAX_SLOTS: Final = 8
"""Maximum number of simultaneous tries of a tree."""
_GIT_SECONDS: Final = 600.0
_TAIL_BYTES: Final = 64 * 1024
_TRIALS: Final = "trials"
"""The folder in the cache that has the copies of all repositories."""


class TrialOutcome(NamedTuple):
    """The result of a command. None of its processes is left.

    - ``status``: its exit code, the negative number of the signal that ended it, or None after the timeout
      and if it was stopped.
    - ``output``: the last 64 KiB of its output.
    - ``folder``: the copy of the tree.
    - ``seconds``: its run time.
    """

    status: int | None
    output: str
    folder: str
    seconds: float


def is_trial(tree: GitTree) -> bool:
    """Return whether ``tree`` is a copy for tries. Nobody works in such a copy."""
    if os.path.exists(os.path.join(tree.git, TRIAL_FILE)):
        return True
    # The file is missing while git makes the copy, and after a process was killed meanwhile.
    *_, above, repository, _, slot = ("", "", "", *os.path.realpath(tree.folder).split(os.sep))
    return above == _TRIALS and repository == _name_repository(tree) and slot.isdecimal()


def trials_folder(tree: GitTree, cache: str = "") -> str:
    """Return the folder of the copies of ``tree``. ``cache``: default the user's cache folder."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    above = cache or os.path.join(home, "watchroom")
    return os.path.join(above, _TRIALS, _name_repository(tree), tree.tree_id())


def _name_repository(tree: GitTree) -> str:
    return hashlib.sha256(os.fsencode(os.path.realpath(tree.common))).hexdigest()[:16]


def run_trial(
    tree: GitTree,
    content: str,
    command: Sequence[str],
    *,
    claim: Callable[[int], AbstractContextManager[bool]],
    linked: Iterable[str] = (),
    timeout: float,
    cache: str = "",
    stopping: Event | None = None,
) -> TrialOutcome:
    """Run ``command`` in a copy of ``tree`` with ``content``, the id of a git tree. See
    `watchroom.features.trees.commits.AgentCommits.try_agent`.

    - ``claim``: called with the number of a copy; returns a claim that keeps other tries from using it.
    - ``stopping``: ends the command when set.

    Raise `GitError` if no copy is free.
    """
    folder = trials_folder(tree, cache)
    for slot in range(_MAX_SLOTS):
        with claim(slot) as is_mine:
            if is_mine:
                place = os.path.join(folder, str(slot))
                _prepare(tree, place, content)
                _link(tree, place, linked)
                return _run(place, command, timeout, stopping)
    raise GitError(reason=f"{_MAX_SLOTS} tries of this tree are running")


def remove_trials(tree: GitTree, cache: str = "") -> None:
    """Remove all copies of ``tree``. Raise `GitError`."""
    folder = trials_folder(tree, cache)
    if os.path.isdir(folder):
        shutil.rmtree(folder)
        _git(tree, "worktree", "prune")


def _prepare(tree: GitTree, place: str, content: str) -> None:
    """Make the copy at ``place``, with ``content``. Files that git ignores are kept from the last try."""
    copy = GitTree.find(place) if os.path.isdir(place) else None
    if copy is None or copy.folder != os.path.realpath(place) or copy.common != tree.common:
        if os.path.lexists(place):
            shutil.rmtree(place)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        _git(tree, "worktree", "prune")
        head = commit_content(tree, content)
        _git(tree, "worktree", "add", "--quiet", "--force", "--detach", "--no-checkout", place, head)
        copy = GitTree.find(place)
        if copy is None:
            raise GitError(reason=f"git worktree add {place}")
    with open(os.path.join(copy.git, TRIAL_FILE), "wb"):
        pass
    with contextlib.suppress(FileNotFoundError):
        # A killed try left this lock behind: nobody else uses this copy.
        os.unlink(os.path.join(copy.git, "index.lock"))
    _clear_flags(copy)
    # HEAD is a commit with the content, because commands such as `git describe` look at it.
    _git(copy, "update-ref", "--no-deref", "HEAD", commit_content(tree, content))
    _git(copy, "read-tree", "--reset", "-u", content)
    _git(copy, "clean", "-ffdq")


def _clear_flags(copy: GitTree) -> None:
    """Make git write all files of ``copy``. An earlier command can have flagged files that git skips."""
    listed = _git(copy, "ls-files", "-v", "-z").split(b"\0")
    skipped = b"\0".join(each[2:] for each in listed if each[:1] in (b"S", b"s"))
    if skipped:
        _git(copy, "update-index", "--no-skip-worktree", "-z", "--stdin", given=skipped)


def commit_content(tree: GitTree, content: str, message: str = "try") -> str:
    """Return the id of a new commit with ``content`` on top of HEAD. No branch refers to it."""
    head = tree.read_state().head
    identity = {
        f"GIT_{role}_{name}": value
        for role in ("AUTHOR", "COMMITTER")
        for name, value in (("NAME", "Watchroom"), ("EMAIL", "watchroom@watchroom.invalid"))
    }
    parents = ("-p", head) if head else ()
    done = run_git(
        ("commit-tree", content, *parents, "-m", message),
        folder=tree.folder,
        variables={"GIT_DIR": tree.git, "GIT_WORK_TREE": tree.folder, **identity},
    )
    return done.output.decode("ascii", "replace").strip()


def _link(tree: GitTree, place: str, linked: Iterable[str]) -> None:
    """Link the folders ``linked`` of ``tree`` that git ignores into the copy at ``place``."""
    names = [each.strip("/") for each in linked]
    there = [each for each in names if each and os.path.lexists(os.path.join(tree.folder, each))]
    ignored = tree.ignored_among([f"{each}/x" for each in there]) if there else frozenset()
    for name in there:
        target = os.path.join(place, name)
        is_inside = os.path.realpath(os.path.dirname(target)).startswith(os.path.realpath(place))
        if f"{name}/x" in ignored and is_inside and not os.path.lexists(target):
            os.makedirs(os.path.dirname(target), exist_ok=True)
            os.symlink(os.path.join(tree.folder, name), target)


def _run(place: str, command: Sequence[str], timeout: float, stopping: Event | None) -> TrialOutcome:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    done = run_contained(
        command,
        place,
        environment=environment,
        timeout=timeout,
        max_tail=_TAIL_BYTES,
        stopping=stopping,
    )
    return TrialOutcome(done.status, done.tail.decode("utf-8", "replace"), place, done.seconds)


def _git(tree: GitTree, *arguments: str, given: bytes = b"") -> bytes:
    done = run_git(
        arguments,
        folder=tree.folder,
        variables={"GIT_DIR": tree.git, "GIT_WORK_TREE": tree.folder},
        # A copy has all files.
        settings=("core.sparseCheckout=false",),
        given=given,
        timeout=_GIT_SECONDS,
    )
    return done.output
