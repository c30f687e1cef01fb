"""CPU time of a shared write beside its commit alone, and the functions that it runs: ``python
benchmarks/commits.py [ROUNDS]``."""

from __future__ import annotations

import os
import sys
import time
from statistics import median
from types import CodeType, FrameType
from typing import Final

from measure import Measure, scratch, table
from watchroom import Workspace
from watchroom.model import Write

_CORE: Final = os.path.join("core", "watchroom")
_BURST = 2000
"""Consecutive commits per round."""
_GOAL_MS = 0.3
"""Max CPU milliseconds per commit outside the calling thread."""


_MAX_FUNCTIONS: Final = 80
"""Max functions of the core that one shared write runs on the caller's thread."""


def count_functions() -> int:
    """Return the number of the core's functions that one write to an existing shared file runs on its
    thread."""
    found: set[CodeType] = set()

    def record(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and _CORE in frame.f_code.co_filename:
            found.add(frame.f_code)

    with scratch() as folder, Workspace.open(folder, agents=["alice"]) as workspace:
        alice = workspace.tools("alice")
        for number in range(4):
            if number == 3:
                sys.setprofile(record)
            alice.dispatch_tool_call(
                "collab_write", {"filepath": "a.md", "content": str(number), "message": "m"}
            )
        sys.setprofile(None)
    return len(found)


def measure(rounds: int = 2) -> list[Measure]:
    """Measure the CPU time per write of the whole process and of the journal's append alone, in turns."""
    text = "A line of notes.\n" * 60
    appends: list[float] = []
    writes: list[float] = []
    behind: list[float] = []
    with scratch() as folder:
        for turn in range(rounds):
            with Workspace.open(os.path.join(folder, f"append-{turn}"), agents=["alice"]) as workspace:
                journal = workspace.journal
                begun = time.process_time()
                for number in range(_BURST):
                    content = f"{text}{number}\n"
                    journal.append([Write("alice", "collab_write", "collab", "a.md", content, expected=-1)])
                appends.append((time.process_time() - begun) / _BURST * 1000)
            with Workspace.open(os.path.join(folder, f"write-{turn}"), agents=["alice"]) as workspace:
                alice = workspace.tools("alice")
                begun, begun_here = time.process_time(), time.thread_time()
                for number in range(_BURST):
                    given = {"filepath": "a.md", "content": f"{text}{number}\n", "message": "m"}
                    alice.dispatch_tool_call("collab_write", {**given, "expected_version": -1})
                here = time.thread_time() - begun_here
                # The files written after the commits are part of their cost.
                workspace.flush()
                all_threads = time.process_time() - begun
                writes.append(all_threads / _BURST * 1000)
                behind.append((all_threads - here) / _BURST * 1000)
    ratio = median(write / append for write, append in zip(writes, appends, strict=True))
    return [
        Measure("a commit alone, CPU", median(appends), "ms"),
        Measure("a shared write, CPU", median(writes), "ms"),
        Measure("a shared write ÷ its commit, CPU", ratio, "×"),
        Measure("what follows a commit, CPU", median(behind), "ms", _GOAL_MS),
        Measure("a shared write, functions on its thread", count_functions(), "", _MAX_FUNCTIONS),
    ]


if __name__ == "__main__":
    print(table(measure(*(int(each) for each in sys.argv[1:]))))
