"""Fuzz each parser and dispatcher, and print the failures: ``python -m benchmarks fuzz [--minutes N |
--inputs N] [--target NAME] [--seed N] [--keep DIR]``.

Every target has its own oracle. For all of them, an input that takes more than half a second of CPU, or grows
the process by 256 MB, is a finding. ``--replay FILE`` runs a kept input.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from measure import scratch
from progress import ProgressBar

from reliability.fuzzing.engine import Result, Target, fuzz


def main(arguments: list[str]) -> int:
    """Fuzz each target in turn, and print the findings. Return 1 if there are any."""
    # Imported here, because a target may import optional packages.
    from reliability.fuzzing.targets import TARGETS

    parser = argparse.ArgumentParser(prog="benchmarks fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0, help="of each target (default: 1)")
    parser.add_argument("--inputs", type=int, help="of each target, in place of minutes")
    parser.add_argument(
        "--target", action="append", choices=list(TARGETS), help="only this one; may be repeated"
    )
    parser.add_argument("--seed", type=int, default=1, help="decides every input (default: 1)")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="the folder for findings and slowest inputs")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="run this input alone, of one --target")
    given = parser.parse_args(arguments)
    if given.keep:
        given.keep.mkdir(parents=True, exist_ok=True)
    names = given.target or list(TARGETS)
    print(f"seed {given.seed}", file=sys.stderr)
    results, progress = [], ProgressBar()
    with scratch() as folder:
        for name in names:
            opened: Callable[[], Target] = partial(TARGETS[name], Path(folder))
            if given.replay:
                with opened() as target:
                    print(target.run(given.replay.read_bytes()), *target.check(), sep="\n")
                return 0
            seed, seconds = f"{given.seed}/{name}", 1e9 if given.inputs else 60 * given.minutes
            results.append(
                fuzz(opened, seed, seconds=seconds, inputs=given.inputs, keep=given.keep, progress=progress)
            )
    print(table(results))
    for result in results:
        for signature, said in result.findings.items():
            print(f"\n{result.name}: {signature}\n{said}")
    return int(any(result.findings for result in results))


def table(results: list[Result]) -> str:
    """Return the results as a Markdown table."""
    lines = [
        "| target | inputs | a second | a second of CPU | kinds of answers | slowest | grown by | findings |"
    ]
    lines.append("|---|---:|---:|---:|---:|---:|---:|---:|")
    for each in results:
        seconds, size, _ = each.slowest[0] if each.slowest else (0.0, 0, b"")
        slowest = f"{1000 * seconds:,.0f} ms ({size:,} bytes)"
        lines.append(
            f"| {each.name} | {each.inputs:,} | {each.rate:,.0f} | {each.rate_of_cpu:,.0f} | {each.kinds:,}"
            f" | {slowest} | {each.grown / 2**20:,.0f} MB | {len(each.findings)} |"
        )
    return "\n".join(lines)
