"""Stores all files of a working tree in git, committed or not, and compares them. The index and the branch do
not change."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from typing import Final

from watchroom.features.races.rows import ChangeCounts
from watchroom.features.trees.git import GitTree
from watchroom.features.trees.git_process import run_git

_SECONDS: Final = 600.0
"""Timeout for git, which reads all files that have changed."""
_INDEX: Final = "index"
_COMPARE: Final = ("core.checkStat=default", "core.trustctime=true")
"""Git settings with which a file that has changed is always read."""
_FLAGS: Final = (("--no-assume-unchanged", str.islower), ("--no-skip-worktree", lambda tag: tag in "Ss"))
"""Options of ``git update-index``, each with a test of the tag of a file that needs it."""


def write_content(tree: GitTree) -> str:
    """Store all files of ``tree`` that git does not ignore. Return the id of the git tree. Raise `GitError`,
    OSError."""
    with _scratch_index(tree) as variables:
        return _write(tree, variables)


def measure(tree: GitTree, start: str) -> ChangeCounts:
    """Count the changes in ``tree`` since the commit ``start``. Nothing is stored. Raise `GitError`,
    OSError."""
    with _scratch_index(tree) as variables:
        place = os.path.join(os.path.dirname(variables["GIT_INDEX_FILE"]), "objects")
        os.mkdir(place)
        objects = {
            "GIT_OBJECT_DIRECTORY": place,
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": os.path.join(tree.common, "objects"),
        }
        content = _write(tree, {**variables, **objects})
        return compare(tree, start, content, objects)


def compare(
    tree: GitTree, start: str, content: str, variables: Mapping[str, str] | None = None
) -> ChangeCounts:
    """Count the changes from the commit ``start`` to ``content``, a commit or a git tree. Raise
    `GitError`."""
    words = ("diff-tree", "-r", "--numstat", "--no-renames", "-z", start, content)
    printed = _run(tree, *words, variables=variables)
    files = added = removed = 0
    for record in printed.split(b"\0"):
        if record:
            more, fewer, _ = record.split(b"\t", 2)
            files += 1
            # A binary file has no lines.
            added += int(more) if more.isdigit() else 0
            removed += int(fewer) if fewer.isdigit() else 0
    return ChangeCounts(files, added, removed)


@contextlib.contextmanager
def _scratch_index(tree: GitTree) -> Iterator[dict[str, str]]:
    """Yield the environment variables that make git use a copy of the tree's index."""
    with tempfile.TemporaryDirectory(prefix="watchroom-") as scratch:
        index = os.path.join(scratch, _INDEX)
        with contextlib.suppress(FileNotFoundError):
            # With its times: git tells by them which files it has to read.
            shutil.copy2(os.path.join(tree.git, _INDEX), index)
        yield {"GIT_INDEX_FILE": index}


def _write(tree: GitTree, variables: Mapping[str, str]) -> str:
    _clear_flags(tree, variables)
    _run(tree, "add", "--all", variables=variables)
    return _run(tree, "write-tree", variables=variables).decode("ascii").strip()


def _clear_flags(tree: GitTree, variables: Mapping[str, str]) -> None:
    """Make git read all files. An agent could hide its changes with flags in the index.

    Files outside of a sparse checkout keep their flag.
    """
    records = [
        os.fsdecode(each) for each in _run(tree, "ls-files", "-v", "-z", variables=variables).split(b"\0")
    ]
    flagged = [(record[0], record[2:]) for record in records if record and record[0] != "H"]
    sparse = _run(
        tree, "config", "--type=bool", "--default=false", "core.sparseCheckout", variables=variables
    )
    if sparse.strip() == b"true":
        flagged = [each for each in flagged if os.path.lexists(os.path.join(tree.folder, each[1]))]
    for option, needs in _FLAGS:
        paths = [path for tag, path in flagged if needs(tag)]
        if paths:
            given = os.fsencode("\0".join(paths))
            _run(tree, "update-index", option, "-z", "--stdin", given=given, variables=variables)


def _run(
    tree: GitTree, *arguments: str, variables: Mapping[str, str] | None = None, given: bytes = b""
) -> bytes:
    own = {"GIT_DIR": tree.git, "GIT_WORK_TREE": tree.folder, "GIT_LFS_SKIP_SMUDGE": "0"}
    done = run_git(
        arguments,
        folder=tree.folder,
        variables={**own, **(variables or {})},
        settings=_COMPARE,
        given=given,
        timeout=_SECONDS,
    )
    return done.output
