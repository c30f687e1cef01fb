"""What it costs to run a command in a sandbox: ``python benchmarks/sandboxing.py``."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable

from measure import Measure, interleaved, middle, ratio, scratch, table
from watchroom.sandbox.backend import SandboxBackend
from watchroom.sandbox.probe import SandboxProbe
from watchroom.sandbox.runner import run_command

_ROUNDS = 9
_BURST = 15


def measure() -> list[Measure]:
    probe = SandboxProbe.run()
    backends = {result.name: result.backend for result in probe.results if result.backend}
    if not backends:
        return [Measure("a sandboxed true: no sandbox on this machine", 0)]
    with scratch() as folder:
        real = os.path.realpath(folder)

        def plain(_: int) -> None:
            subprocess.run(
                ["/bin/sh", "-c", "true"], cwd=real, stdin=subprocess.DEVNULL, capture_output=True, check=True
            )

        def sandboxed(backend: SandboxBackend) -> Callable[[int], None]:
            def running(_: int) -> None:
                run_command("true", real, backend=backend)

            return running

        ways = {"plain": plain} | {name: sandboxed(backend) for name, backend in backends.items()}
        seconds = interleaved(ways, _ROUNDS, _BURST)
    milliseconds = {name: middle(rounds) * 1000 for name, rounds in seconds.items()}
    bounded = "" if probe.limits_processes_together else ", no control groups"
    return [
        Measure(
            f"a sandboxed true ÷ a plain one, {name}",
            ratio(seconds[name], seconds["plain"]),
            "×",
            8 if name == probe.results[0].name else None,
            remark=f"{milliseconds[name]:.1f} ms ÷ {milliseconds['plain']:.1f} ms{bounded}",
        )
        for name in backends
    ]


if __name__ == "__main__":
    print(table(measure()))
