"""Shared by all benchmarks: alternating rounds, ratios within one run, and the result table."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from statistics import median
from typing import Literal

Work = Callable[[int], None]
"""Does the n-th piece of work."""
Sample = Callable[[int], float]
"""Does the n-th piece of work, and returns its cost in seconds or bytes."""
Rounds = dict[str, list[list[float]]]
"""For each contender, for each round, the cost of each piece of work."""


@dataclass(frozen=True, slots=True)
class Measure:
    """One line of the table. A goal is optional."""

    name: str
    value: float
    unit: str = ""
    goal: float | None = None
    sense: Literal["≤", "≥", "="] = "≤"
    remark: str = ""

    @property
    def met(self) -> bool | None:
        if self.goal is None:
            return None
        if self.sense == "=":
            return abs(self.value - self.goal) < 1e-9
        return self.value <= self.goal if self.sense == "≤" else self.value >= self.goal


def table(measures: list[Measure]) -> str:
    """Return the measures as a Markdown table."""
    verdicts = {True: "yes", False: "**no**", None: ""}
    lines = ["| | measured | goal | met | |", "|---|---:|---:|---|---|"]
    for each in measures:
        goal = "" if each.goal is None else f"{each.sense} {_number(each.goal)}{_unit(each.unit)}"
        lines.append(
            f"| {each.name} | {_number(each.value)}{_unit(each.unit)} | {goal} | {verdicts[each.met]}"
            f" | {each.remark} |"
        )
    return "\n".join(lines)


def _number(value: float) -> str:
    if value == int(value) and abs(value) < 1e6:
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _unit(unit: str) -> str:
    return unit if unit in ("", "×") else f" {unit}"


def interleaved(
    contenders: Mapping[str, Work],
    rounds: int,
    burst: int,
    *,
    between: Callable[[], None] | None = None,
    first: int = 0,
) -> Rounds:
    """Run the contenders in turns, and return the seconds of each piece of work.

    - ``rounds``: the number of turns of each contender.
    - ``burst``: pieces of work per turn.
    - ``between``: called before each turn, not timed.
    - ``first``: the number of the first piece of work.

    The order changes in each round, so that pending disk writes of one contender slow down all others alike.
    """
    samples = {name: clocked(work) for name, work in contenders.items()}
    return sampled(samples, rounds, burst, between=between, first=first)


def sampled(
    contenders: Mapping[str, Sample],
    rounds: int,
    burst: int,
    *,
    between: Callable[[], None] | None = None,
    first: int = 0,
) -> Rounds:
    """Run the contenders in turns as `interleaved`, with costs that they return themselves."""
    taken: Rounds = {name: [] for name in contenders}
    names = list(contenders)
    for turn in range(rounds):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            if between:
                between()
            begin = first + turn * burst
            taken[name].append([contenders[name](n) for n in range(begin, begin + burst)])
    return taken


def clocked(work: Work) -> Sample:
    """Return a sample that times each piece of ``work`` in seconds."""

    def sample(n: int) -> float:
        start = time.perf_counter()
        work(n)
        return time.perf_counter() - start

    return sample


def ratio(above: list[list[float]], below: list[list[float]]) -> float:
    """Return the median of the rounds' ratios ``above`` ÷ ``below``."""
    return median(median(one) / median(other) for one, other in zip(above, below, strict=True))


def middle(rounds: list[list[float]]) -> float:
    """Return the median of all pieces of work."""
    return median(seconds for each in rounds for seconds in each)


def percentile(values: list[float], percent: float) -> float:
    """Return the smallest value that ``percent`` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -(-len(ordered) * int(percent) // 100) - 1))]


def kilobyte(n: int) -> str:
    """Return a text of 1,024 bytes, different for each ``n``."""
    line = f"{n:010d} a line of notes that an agent might have written, number {n * 7919 % 100_003}\n"
    return (line * (1024 // len(line) + 1))[:1023] + "\n"


def keep_bytecode(folder: str) -> None:
    """Let child processes keep bytecode in ``folder``, whatever this shell's settings. Installed programs
    have bytecode, so the comparison would be unfair without it."""
    os.environ["PYTHONPYCACHEPREFIX"] = os.path.join(folder, "bytecode")
    os.environ["PYTHONDONTWRITEBYTECODE"] = ""


@contextmanager
def scratch() -> Iterator[str]:
    """Yield a temporary folder, in its own part of the disk. It is removed at the end.

    Without a journal, ext4 checks every recently deleted file nearby before it creates a new one. Files
    deleted by one contender, or an earlier run, must not slow down the next (by a factor of 40, as measured).
    Folders below one marked +T are spread by a hash of their names.
    """
    spread = tempfile.mkdtemp(prefix="watchroom-benchmark-")
    try:
        with suppress(OSError):
            subprocess.run(["chattr", "+T", spread], check=False, capture_output=True)
        yield tempfile.mkdtemp(dir=spread)
    finally:
        shutil.rmtree(spread, ignore_errors=True)
