"""What all benchmarks share: rounds that take turns, ratios within one run, and the table at the end."""

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
"""Does one piece of work, the n-th."""
Sample = Callable[[int], float]
"""Does the n-th piece of work, and returns what it took: seconds, or bytes."""
Rounds = dict[str, list[list[float]]]
"""For each contender, for each round, what each piece of its work took."""


@dataclass(frozen=True, slots=True)
class Measure:
    """One line of the table. Without a goal it is only told."""

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
    """The measures as a Markdown table."""
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
    """Let the contenders take turns, ``burst`` pieces of work at a time, each round in another order, so that
    what one leaves for the kernel to write falls on each of the others alike. ``between`` is done before
    each turn, and not timed."""
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
    """As `interleaved`, where each contender says by itself what a piece of its work took."""
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
    """How many seconds each piece of ``work`` takes."""

    def sample(n: int) -> float:
        start = time.perf_counter()
        work(n)
        return time.perf_counter() - start

    return sample


def ratio(above: list[list[float]], below: list[list[float]]) -> float:
    """How many times longer the one takes than the other: the median of the rounds' own ratios."""
    return median(median(one) / median(other) for one, other in zip(above, below, strict=True))


def middle(rounds: list[list[float]]) -> float:
    """The median of all pieces of work."""
    return median(seconds for each in rounds for seconds in each)


def percentile(values: list[float], percent: float) -> float:
    """The smallest value that ``percent`` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -(-len(ordered) * int(percent) // 100) - 1))]


def kilobyte(n: int) -> str:
    """Text of 1,024 bytes, another for each ``n``."""
    line = f"{n:010d} a line of notes that an agent might have written, number {n * 7919 % 100_003}\n"
    return (line * (1024 // len(line) + 1))[:1023] + "\n"


def keep_bytecode(folder: str) -> None:
    """Let the processes that are started keep bytecode, in ``folder``, whatever this shell says: what is
    installed has its own, and not only what is compared with it may have some."""
    os.environ["PYTHONPYCACHEPREFIX"] = os.path.join(folder, "bytecode")
    os.environ["PYTHONDONTWRITEBYTECODE"] = ""


@contextmanager
def scratch() -> Iterator[str]:
    """A folder on the disk where temporary files are, gone afterwards, in a part of the disk of its own.

    Without a journal, ext4 looks at every file that was deleted nearby in the last minutes before it makes
    a new one: what one contender deletes, or an earlier run, must not slow the next (40 times, as seen).
    Folders in one that is marked +T are spread by a hash of their names.
    """
    spread = tempfile.mkdtemp(prefix="watchroom-benchmark-")
    try:
        with suppress(OSError):
            subprocess.run(["chattr", "+T", spread], check=False, capture_output=True)
        yield tempfile.mkdtemp(dir=spread)
    finally:
        shutil.rmtree(spread, ignore_errors=True)
