"""What it costs to run a command behind the fence: ``python benchmarks/sandboxing.py``."""

from __future__ import annotations

import os
import subprocess

from measure import Measure, interleaved, middle, ratio, scratch, table
from watchroom.sandbox.ladder import Ladder
from watchroom.sandbox.running import run

_ROUNDS = 9
_BURST = 15


def measure() -> list[Measure]:
    ladder = Ladder.probed()
    fence = ladder.best
    if fence is None:
        return [Measure("a sandboxed true: no sandbox on this machine", 0)]
    with scratch() as folder:
        real = os.path.realpath(folder)

        def plain(_: int) -> None:
            subprocess.run(
                ["/bin/sh", "-c", "true"], cwd=real, stdin=subprocess.DEVNULL, capture_output=True, check=True
            )

        def sandboxed(_: int) -> None:
            run("true", real, fence=fence)

        seconds = interleaved({"plain": plain, "sandboxed": sandboxed}, _ROUNDS, _BURST)
    milliseconds = {name: middle(rounds) * 1000 for name, rounds in seconds.items()}
    remark = f"{milliseconds['sandboxed']:.1f} ms ÷ {milliseconds['plain']:.1f} ms, {fence.name}"
    bounded = "" if ladder.bounded_as_one else ", no control groups"
    times = ratio(seconds["sandboxed"], seconds["plain"])
    return [Measure("a sandboxed true ÷ a plain one", times, "×", 8, remark=remark + bounded)]


if __name__ == "__main__":
    print(table(measure()))
