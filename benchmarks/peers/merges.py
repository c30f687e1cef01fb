"""Three-way merges of a short and a long file, by programs and by a library."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from measure import clocked, scratch
from merging import LONG, SHORT, make_texts
from watchroom.algorithms.merge import merge, text_with_markers

from peers.comparison import Contender, Group, Row, RunContext
from peers.peer import Library, SystemProgram

_DIFF3: Final = SystemProgram("diff3", "diff3", "diffutils")
_GIT: Final = SystemProgram("git merge-file", "git", "git")
_MERGE3: Final = Library("merge3", "merge3")
_ROUNDS: Final = 11
_PROCESS: Final = "starts a process and reads three files"
_PYTHON: Final = (
    "libgit2 finds the lines that differ, but Python splits the texts into regions and joins them"
)
_NAMES: Final = ("base", "current", "incoming")


def _measure(context: RunContext) -> list[Row]:
    rows: list[Row] = []
    for size, burst in ((SHORT, 10), (LONG, 1)):
        with scratch() as folder:
            texts = dict(zip(_NAMES, make_texts(size), strict=True))
            for name, text in texts.items():
                Path(folder, name).write_text(text, "utf-8")
            base, current, incoming = (os.path.join(folder, name) for name in _NAMES)

            def ours(n: int, texts: dict[str, str] = texts) -> None:
                _merge_ours(**texts)

            diff3 = ["diff3", "-m", current, base, incoming]
            git = ["git", "merge-file", "-p", current, base, incoming]
            contenders = [
                Contender(_DIFF3, clocked(partial(_run, diff3)), remark=_PROCESS, behind=_PYTHON),
                Contender(_GIT, clocked(partial(_run, git)), remark=_PROCESS, behind=_PYTHON),
                Contender(_MERGE3, clocked(_merge3(**texts)), remark="in Python, in this process"),
            ]
            rows += context.compare(
                f"{size.name}, {size.regions} regions",
                clocked(ours),
                [each for each in contenders if context.has(each.peer)],
                rounds=_ROUNDS,
                burst=burst,
                warm=1,
            )
    return rows


def _merge_ours(base: str, current: str, incoming: str) -> None:
    text_with_markers(merge(base, current, incoming))


def _merge3(base: str, current: str, incoming: str) -> Callable[[int], None]:
    def work(n: int) -> None:
        from merge3 import Merge3

        found = Merge3(base.splitlines(True), current.splitlines(True), incoming.splitlines(True))
        "".join(found.merge_lines(start_marker="<<<<<<<", mid_marker="=======", end_marker=">>>>>>>"))

    return work


def _run(command: list[str], n: int) -> None:
    done = subprocess.run(command, capture_output=True, check=False)
    # The status tells that there are conflicts: 1 for diff3, their number for git, at most 127.
    if not 0 < done.returncode <= 127 or not done.stdout:
        raise RuntimeError(done.stderr.decode() or f"{command[0]} ended with {done.returncode}")


GROUP: Final = Group(
    "merges",
    "Three-way merges",
    "From three texts to the merged one, with markers around what conflicts (three regions of five).",
    (_DIFF3, _GIT, _MERGE3),
    _measure,
)
