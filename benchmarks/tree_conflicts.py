"""The cost of predicted conflicts between five trees in a repository of 10,000 files."""

from __future__ import annotations

import os
import resource
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Final

import psutil
from measure import Measure, percentile, scratch
from watchroom import Workspace
from watchroom.features.trees.rows import PREDICT

_FILES: Final = 10_000
_TREES: Final = 5
_CHANGED: Final = 50
_WRITES: Final = 40
_FIRST_CONFLICT: Final = 60
_FIRST_SINGLE: Final = 120
"""The folders from which the written files are taken, so that each is written for the first time."""
_SETTLE_SECONDS: Final = 0.8
_TIMEOUT: Final = 10.0
_MAX_SECONDS: Final = 1.0
_MAX_CPU: Final = 5.0


def measure() -> list[Measure]:
    """Measure how soon a conflict is in a row, and the CPU time of a write with and without predictions."""
    with scratch() as place:
        trees = _make_trees(Path(place))
        root = trees[0] / ".git" / "watchroom"
        with Workspace.open(root, agents=["alice"]) as workspace:
            # What `keep` starts, except predictions.
            workspace.file_watcher.subscribe()
            workspace.background.start()
            workspace.trees.keep()
            _change_all(trees)
            workspace.trees.refresh_all()
            single, conflicting = _clock_cpu(trees, 0)
        with Workspace.open(root) as workspace:
            workspace.keep()
            workspace.trees.refresh_all()
            _wait_until_compared(workspace)
            single_all, conflicting_all = _clock_cpu(trees, 1)
            seconds = [_clock_conflict(workspace, trees, number) for number in range(_WRITES)]
    return [
        Measure("a conflict of two trees is in a row after its write, median", median(seconds) * 1e3, "ms"),
        Measure("… 95 of 100 writes", percentile(seconds, 95) * 1e3, "ms", _MAX_SECONDS * 1e3),
        *_compare("a write of a file that no other tree changed", single, single_all),
        *_compare("a write that conflicts with another tree", conflicting, conflicting_all),
    ]


def _compare(name: str, without: Sequence[float], added: Sequence[float]) -> Iterator[Measure]:
    remark = f"{median(added) * 1e3:.1f} ms with predictions, {median(without) * 1e3:.1f} ms without"
    yield Measure(
        f"CPU time of predictions after {name}",
        (median(added) - median(without)) * 1e3,
        "ms",
        _MAX_CPU,
        remark=remark,
    )
    difference = percentile([*added], 95) - percentile([*without], 95)
    yield Measure("… 95 of 100 writes", difference * 1e3, "ms")


def _make_trees(place: Path) -> list[Path]:
    main = place / "project"
    for number in range(_FILES):
        path = _file(main, number // 50, number % 50)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"file {number}, line {line}\n" for line in range(20)))
    _git(main, "init", "--quiet", "--initial-branch=main")
    _git(main, "add", "--all")
    _git(main, "commit", "--quiet", "--message=start")
    trees = [main]
    for number in range(1, _TREES):
        trees.append(place / f"tree{number}")
        _git(main, "worktree", "add", "--quiet", "-b", f"tree{number}", str(trees[-1]))
        _edit(_file(trees[-1], 199, number), 0, "committed")
        _git(trees[-1], "commit", "--quiet", "--all", "--message=own")
    return trees


def _file(tree: Path, folder: int, number: int) -> Path:
    return tree / f"d{folder}" / f"f{number}.txt"


def _git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=Pat", "-c", "user.email=pat@example.org")
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True)


def _edit(path: Path, line: int, text: str) -> None:
    lines = path.read_text().splitlines(keepends=True)
    lines[line] = f"{text}\n"
    path.write_text("".join(lines))


def _change_all(trees: Sequence[Path]) -> None:
    """Change 50 files in each tree, half of which all trees change."""
    for number, tree in enumerate(trees):
        for changed in range(_CHANGED):
            folder = 0 if changed % 2 else number + 1
            _edit(_file(tree, folder, changed), 3, f"by tree {number}")


def _wait_until_compared(workspace: Workspace) -> None:
    for _ in range(_TREES):
        workspace.background.flush()
    time.sleep(_SETTLE_SECONDS)


def _clock_cpu(trees: Sequence[Path], turn: int) -> tuple[list[float], list[float]]:
    """Return the CPU times of writes without a conflict, and of writes that cause one. ``turn``: selects
    files that were not written yet."""
    single = [_cpu_of(_file(trees[1], _FIRST_SINGLE + turn, number)) for number in range(_WRITES)]
    for number in range(_WRITES):
        _edit(_file(trees[2], _FIRST_CONFLICT + turn, number), 5, "by the other")
    time.sleep(2 * _SETTLE_SECONDS)
    conflicting = [_cpu_of(_file(trees[1], _FIRST_CONFLICT + turn, number)) for number in range(_WRITES)]
    return single, conflicting


def _cpu_of(path: Path) -> float:
    """Return the seconds of CPU time that this process and its children use after a write of ``path``."""
    # Finding the running children takes longer than the work that is measured.
    running = _cpu_of_children()
    before = _own_cpu()
    _edit(path, 5, "x")
    time.sleep(_SETTLE_SECONDS)
    used = _own_cpu() - before
    return used + _cpu_of_children() - running


def _own_cpu() -> float:
    """Return the seconds of CPU time of this process and of its ended children."""
    found = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in found)


def _cpu_of_children() -> float:
    """Return the seconds of CPU time of the running children. The other sources count in hundredths."""
    total = 0.0
    for each in psutil.Process().children(recursive=True):
        with suppress(OSError):
            total += int(Path(f"/proc/{each.pid}/schedstat").read_text().split()[0]) / 1e9
    return total


def _clock_conflict(workspace: Workspace, trees: Sequence[Path], number: int) -> float:
    """Return the seconds from a write until the row about its conflict."""
    folder = _FIRST_CONFLICT + 10
    _edit(_file(trees[3], folder, number), 5, "by the other")
    time.sleep(_SETTLE_SECONDS)
    last = workspace.journal.last_seq()
    start = time.perf_counter()
    _edit(_file(trees[1], folder, number), 5, "x")
    while not any(row.tool == PREDICT for row in workspace.journal.rows(last)):
        if time.perf_counter() - start > _TIMEOUT:
            raise TimeoutError(os.fspath(_file(trees[1], folder, number)))
        time.sleep(0.005)
    return time.perf_counter() - start
