"""A team at work, as fast as it is told: the other process while the dashboard is measured.

    python benchmarks/load.py DIR AGENTS ROWS_A_SECOND SECONDS

Half of the rows are readings. Each save makes a file whose name is a marker; at the end the markers are
printed as JSON, each with the moment (monotonic clock) at which its call had returned.
"""

from __future__ import annotations

import itertools
import json
import sys
import time
from threading import Thread

from measure import kilobyte
from watchroom import Toolbox, Workspace

_THREADS = 8
"""Enough for the commits to be shared when the disk is slow."""


def marker(n: int) -> str:
    """A file name that is found again among a terminal's bytes."""
    return f"m{n:07d}z"


def save(tools: Toolbox, n: int) -> float:
    """Save the n-th marked file; returns the moment when it was done."""
    arguments = {"filename": f"{marker(n)}.md", "content": kilobyte(n)}
    if not tools.dispatch_tool_call("save_to_my_workspace", arguments)["success"]:
        raise RuntimeError("a save failed")
    return time.monotonic()


def run(root: str, agents: int, rate: float, seconds: float) -> list[tuple[str, float]]:
    """The markers that were saved, in the order in which their calls returned."""
    saved: list[tuple[str, float]] = []
    numbers = itertools.count()
    with Workspace.open(root, scan=False) as workspace:
        boxes = [workspace.tools(agent) for agent in sorted(workspace.config.agents)[:agents]]
        boxes[0].dispatch_tool_call(
            "collab_write", {"filepath": "plan.md", "content": "…", "message": "plan"}
        )
        start = time.monotonic()

        def work(mine: list[Toolbox]) -> None:
            pace = 2 * _THREADS / rate
            for turn in range(int(seconds / pace)):
                time.sleep(max(0.0, start + turn * pace - time.monotonic()))
                tools = mine[turn % len(mine)]
                tools.dispatch_tool_call("collab_read", {"filepath": "plan.md"})
                n = next(numbers)
                saved.append((marker(n), save(tools, n)))

        threads = [Thread(target=work, args=(boxes[part::_THREADS],)) for part in range(_THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return sorted(saved, key=lambda each: each[1])


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4]))))
