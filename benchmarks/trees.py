"""The cost of recording, and of predicted conflicts, in a repository of 10,000 files: ``python trees.py``."""

from __future__ import annotations

import os
import resource
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import tree_conflicts
from measure import Measure, middle, percentile, scratch, table
from watchroom import Workspace
from watchroom.features.trees.recorder import TreeRecorder
from watchroom.features.trees.service import Holder
from watchroom.features.trees.uses import FileWrite, ToolEffects, ToolUse
from watchroom.features.trees.write_rules import PassageEdit

_FILES: Final = 10_000
_CHANGED: Final = 50
_ROUNDS: Final = 20
_PAUSE_SECONDS: Final = 0.1
_KINDS_OF_CHANGES: Final = (
    ("changed for the first time", "f{}.py"),
    ("changed again", "f{}.py"),
    ("made", "new{}.py"),
)
"""What happened to the files of a barrier, and their names. Git's text becomes a version too before the first
change of a file."""
_REST_SECONDS: Final = 5.0


def measure() -> list[Measure]:
    """Measure one repository, and then five trees of another."""
    return [*_measure_recording(), *tree_conflicts.measure()]


def _measure_recording() -> list[Measure]:
    with scratch() as place:
        folder = Path(place) / "project"
        _make_repository(folder)
        start = time.perf_counter()
        with Workspace.open(folder / ".git" / "watchroom", agents=["alice"]) as workspace:
            workspace.keep()
            (tree,) = workspace.trees.all()
            workspace.trees.refresh(tree)
            started = time.perf_counter() - start
            return [
                Measure("start, until the first barrier", started * 1e3, "ms", 1000),
                _at_rest(),
                *_barriers(workspace, tree, folder),
                _edits(workspace, folder),
                _checkout(workspace, tree, folder),
            ]


def _make_repository(folder: Path) -> None:
    for number in range(_FILES):
        path = folder / f"d{number // 100}" / f"f{number % 100}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# file {number}\n" * 20)
    _git(folder, "init", "--quiet")
    _commit(folder)
    _git(folder, "checkout", "--quiet", "-b", "other")
    for number in range(_FILES):
        (folder / f"d{number // 100}" / f"f{number % 100}.py").write_text(f"# other {number}\n" * 20)
    _commit(folder)
    _git(folder, "checkout", "--quiet", "-")


def _git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=Pat", "-c", "user.email=pat@example.org")
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True)


def _commit(folder: Path) -> None:
    _git(folder, "add", "--all")
    _git(folder, "commit", "--quiet", "--message=work")


def _at_rest() -> Measure:
    """Measure the CPU time of this process while nothing happens."""
    before = _cpu()
    time.sleep(_REST_SECONDS)
    return Measure("CPU at rest", (_cpu() - before) / _REST_SECONDS * 100, "%", 0.5)


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _barriers(workspace: Workspace, tree: TreeRecorder, folder: Path) -> Iterator[Measure]:
    def clocked() -> float:
        start = time.perf_counter()
        workspace.trees.refresh(tree)
        return time.perf_counter() - start

    yield Measure("barrier, nothing changed", middle([[clocked() for _ in range(200)]]) * 1e3, "ms", 1)
    for what, name in _KINDS_OF_CHANGES:
        taken = []
        for count in range(_ROUNDS):
            # Subscribers still read the rows of the barrier before.
            time.sleep(_PAUSE_SECONDS)
            for number in range(_CHANGED):
                path = folder / f"d{number}" / name.format(count)
                path.write_text(f"{what} {number}\n" * 20)
            taken.append(clocked())
        first = f"the first of all: {taken[0] * 1e3:.3g} ms"
        said = f"barrier after {_CHANGED} files were {what}"
        yield Measure(f"{said}, median of {_ROUNDS}", middle([taken]) * 1e3, "ms", 10, remark=first)
        yield Measure("… 95 of 100", percentile(taken, 95) * 1e3, "ms")
    subprocess.run(["git", "add", "--all"], cwd=folder, check=True)
    yield Measure("barrier after git add --all", clocked() * 1e3, "ms")


def _edits(workspace: Workspace, folder: Path) -> Measure:
    """Measure the checks before and after an edit."""
    taken: list[float] = []
    calls = workspace.tree_calls
    for number in range(100):
        path = folder / "d99" / f"f{number}.py"
        old, new = f"# file {9900 + number}\n", f"# edit {number}\n"
        holder = Holder("alice", "session", f"call-{number}")
        use = ToolUse("write", (FileWrite(os.fspath(path), PassageEdit(old, new, replaces_all=True)),))
        before = path.read_text()
        with _clock(taken):
            calls.begin(holder, use, os.fspath(folder))
        path.write_text(before.replace(old, new))
        with _clock(taken):
            calls.end(holder, use, ToolEffects(original=before))
    both = [one + other for one, other in zip(taken[::2], taken[1::2], strict=True)]
    return Measure("checks before and after an edit", middle([both]) * 1e3, "ms", 25)


def _checkout(workspace: Workspace, tree: TreeRecorder, folder: Path) -> Measure:
    """Return how long the barrier takes after git has checked out a branch on which all files differ."""
    _commit(folder)
    workspace.trees.refresh(tree)
    _git(folder, "checkout", "--quiet", "other")
    start = time.perf_counter()
    workspace.trees.refresh(tree)
    taken = time.perf_counter() - start
    return Measure(f"barrier after a checkout of {_FILES:,} changed files", taken * 1e3, "ms", 2000)


@contextmanager
def _clock(taken: list[float]) -> Iterator[None]:
    start = time.perf_counter()
    yield
    taken.append(time.perf_counter() - start)


if __name__ == "__main__":
    print(table(measure()))
