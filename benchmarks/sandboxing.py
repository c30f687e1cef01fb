"""What it costs to run a command behind the fence: ``python benchmarks/sandboxing.py``."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable

from measure import Measure, interleaved, middle, ratio, scratch, table
from watchroom.sandbox.fences import Fence
from watchroom.sandbox.ladder import Ladder
from watchroom.sandbox.running import run

_ROUNDS = 9
_BURST = 15


def measure() -> list[Measure]:
    ladder = Ladder.probed()
    fences = {rung.name: rung.fence for rung in ladder.rungs if rung.fence}
    if not fences:
        return [Measure("a sandboxed true: no sandbox on this machine", 0)]
    with scratch() as folder:
        real = os.path.realpath(folder)

        def plain(_: int) -> None:
            subprocess.run(
                ["/bin/sh", "-c", "true"], cwd=real, stdin=subprocess.DEVNULL, capture_output=True, check=True
            )

        def sandboxed(fence: Fence) -> Callable[[int], None]:
            def running(_: int) -> None:
                run("true", real, fence=fence)

            return running

        ways = {"plain": plain} | {name: sandboxed(fence) for name, fence in fences.items()}
        seconds = interleaved(ways, _ROUNDS, _BURST)
    milliseconds = {name: middle(rounds) * 1000 for name, rounds in seconds.items()}
    bounded = "" if ladder.bounded_as_one else ", no control groups"
    return [
        Measure(
            f"a sandboxed true ÷ a plain one, {name}",
            ratio(seconds[name], seconds["plain"]),
            "×",
            8 if name == ladder.rungs[0].name else None,
            remark=f"{milliseconds[name]:.1f} ms ÷ {milliseconds['plain']:.1f} ms{bounded}",
        )
        for name in fences
    ]


if __name__ == "__main__":
    print(table(measure()))
