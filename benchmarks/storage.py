"""The cost of a versioned commit beside lower bounds, and with many versions: ``python storage.py``."""

from __future__ import annotations

import os
import time
from contextlib import ExitStack

from contenders import CONTENDERS
from measure import Measure, Rounds, Work, interleaved, kilobyte, middle, percentile, ratio, scratch, table
from watchroom import Workspace
from watchroom.kernel.call_context import CallContext

_WARM = 400
"""Commits before the first that counts. SQLite's WAL grows until its first checkpoint, and is then reused."""
_OURS = ("collab.write", "collab_write tool", "private save")
_BARE = {
    "bare row": "SQLite inserts a row into our schema, synced",
    "bare row and file": "the same, and the file is read and replaced",
}
"""Remarks in the table, by contender."""
_FLOORS = ("append + fdatasync", "write + fsync + rename")
_PAUSE = 0.3
"""Longer than the delay of the files written after commits."""


def commits(rounds: int = 15, burst: int = 20) -> list[Measure]:
    """Measure one commit of 1 KB by each contender, in turns."""
    with ExitStack() as stack:
        works: dict[str, Work] = {}
        for name, contender in CONTENDERS.items():
            works[name] = stack.enter_context(contender(stack.enter_context(scratch())))
            for n in range(_WARM if name in (*_OURS, *_BARE) else burst):
                works[name](n)
        seconds = interleaved(works, rounds, burst, first=_WARM)
        some = {name: works[name] for name in (*_OURS, *_FLOORS)}
        old = interleaved(some, rounds // 3, burst, between=os.sync, first=_WARM + rounds * burst)
    measures = _against(seconds)
    for name, taken in seconds.items():
        every = [each for one in taken for each in one]
        remark = f"p99 {percentile(every, 99) * 1e3:.2f} ms"
        if name in old:
            remark += f"; {middle(old[name]) * 1e3:.2f} ms where the kernel had written the old file to disk"
        measures.append(Measure(f"{name}, 1 KB", middle(taken) * 1e3, "ms", remark=remark))
    return measures


def _against(seconds: Rounds) -> list[Measure]:
    ours = seconds["collab.write"]
    tool = seconds["collab_write tool"]
    floor, replace = (seconds[name] for name in _FLOORS)
    measures = [
        Measure("commit ÷ (append + fdatasync)", ratio(ours, floor), "×", 2.6),
        Measure("commit through the toolbox ÷ (append + fdatasync)", ratio(tool, floor), "×", 3.0),
        Measure("commit ÷ (write + fsync + rename)", ratio(ours, replace), "×", 1.3),
        Measure("commit through the toolbox ÷ (write + fsync + rename)", ratio(tool, replace), "×", 1.3),
    ]
    measures += [
        Measure(f"{name} ÷ (append + fdatasync)", ratio(seconds[name], floor), "×", remark=remark)
        for name, remark in _BARE.items()
    ]
    return measures


def versions(
    points: tuple[int, ...] = (10, 1_000, 10_000), rounds: int = 6, burst: int = 20
) -> list[Measure]:
    """Measure a commit to a file with few versions, and to files with many."""
    with scratch() as folder, Workspace.open(folder, agents=["alice"]) as workspace:
        few, *many = points
        count = rounds * burst

        def write(path: str, expected: int) -> None:
            workspace.collab.write(CallContext("alice", "collab_write"), path, kilobyte(expected), expected)

        def to_one_file(point: int) -> Work:
            """Return commits to one file around version ``point``."""
            start = point - count // 2
            for version in range(start):
                write(f"{point}.md", version)
            return lambda n: write(f"{point}.md", start + n)

        def to_files_of(version: int) -> Work:
            """Return commits to different files, each at ``version``."""
            for n in range(count):
                for each in range(version):
                    write(f"{version}/{n}.md", each)
            return lambda n: write(f"{version}/{n}.md", version)

        works = {str(few): to_files_of(few), **{str(point): to_one_file(point) for point in many}}
        seconds = interleaved(works, rounds, burst, between=lambda: time.sleep(_PAUSE))
    return [
        Measure(
            f"commit at {point:,} versions ÷ at {few:,}",
            ratio(seconds[str(point)], seconds[str(few)]),
            "×",
            1.3,
            remark=f"{middle(seconds[str(point)]) * 1e3:.3f} ms, {middle(seconds[str(few)]) * 1e3:.3f} ms",
        )
        for point in many
    ]


def reads(count: int = 2_000) -> list[Measure]:
    """Measure ``collab_read`` of 1 KB through the toolbox. Its row is a note, which no sync waits for."""
    with scratch() as folder, Workspace.open(folder, agents=["alice"]) as workspace:
        tools = workspace.tools("alice")
        for n in range(20):
            arguments = {"filepath": f"{n}.md", "content": kilobyte(n), "message": "work"}
            tools.dispatch_tool_call("collab_write", arguments)

        def read(n: int) -> None:
            if not tools.dispatch_tool_call("collab_read", {"filepath": f"{n % 20}.md"})["success"]:
                raise RuntimeError("a reading failed")

        seconds = interleaved({"read": read}, rounds=10, burst=count // 10)["read"]
    every = [each for one in seconds for each in one]
    remark = f"p99 {percentile(every, 99) * 1e3:.2f} ms"
    return [Measure("collab_read through the toolbox, 1 KB", middle(seconds) * 1e3, "ms", remark=remark)]


def measure() -> list[Measure]:
    return [*commits(), *versions(), *reads()]


if __name__ == "__main__":
    print(table(measure()))
