"""Breaks the core at places drawn at random, one at a time, and counts how many of these changes the tests
notice: ``python -m benchmarks mutation [--places N] [--seed N] [--package NAME …] [--map FOLDER]``.

The operators are cosmic-ray's. First, all tests of `TESTS` run once under coverage, so that each change is
tried with the tests that run its line alone, the quickest first, until one fails. The files here are never
changed: copies are.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from reliability.mutating.coverage_map import CoverageMap
from reliability.mutating.places import PACKAGES, Mutant, draw
from reliability.mutating.plugins import SECONDS
from reliability.mutating.trials import Order, Outcome, TestRunner, environment

ROOT: Final = Path(__file__).parents[2]
CORE: Final = "core/watchroom"
TESTS: Final = (
    "crdt",
    "editing",
    "history",
    "hostile",
    "journal",
    "laws",
    "merge",
    "people",
    "policy",
    "projections",
    "queries",
    "realtime",
    "requirements",
    "reverts",
    "rules",
    "runtime",
    "serving",
    "toolbox",
    "transparency",
    "zones",
)
PROCESSES: Final = 2
LONGEST: Final = 60.0
"""Seconds that the tests of one change took together, at most: those after them are not tried."""
_MOST_FILES: Final = 8
"""Of other tests, whose coverage is not known, whole files are tried: those that import the module."""
_HANG: Final = 300
_A_FILE: Final = 60.0
"""Seconds that a file of tests may be expected to take."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a mutant ended.

    ``result``: ``killed`` by a test, ``import`` (nothing could be imported), ``time`` (a test took too long),
    ``survived``, or ``untested`` (no test runs its line); ``tests`` of ``all`` that run it were tried.
    """

    mutant: Mutant
    result: str
    tests: int = 0
    all: int = 0
    killer: str = ""


def main(arguments: list[str]) -> int:
    """Try all drawn places, and print a table and what survived; the result is 1 where anything did."""
    parser = argparse.ArgumentParser(prog="benchmarks mutation", description=__doc__)
    parser.add_argument("--places", type=int, default=100, help="how many are broken (default: 100)")
    parser.add_argument("--seed", type=int, default=1, help="decides which (default: 1)")
    parser.add_argument("--package", action="append", choices=PACKAGES, help="only this one; may be repeated")
    parser.add_argument("--map", type=Path, help="keeps coverage there, and takes it while no file differs")
    given = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    os.nice(19 - os.nice(0))
    packages = tuple(given.package or PACKAGES)
    mutants = draw(ROOT / CORE, packages, given.places, given.seed)
    with tempfile.TemporaryDirectory(prefix="watchroom-mutation-") as scratch:
        first = Path(scratch, "tree")
        shutil.copytree(ROOT, first, ignore=shutil.ignore_patterns(".*", "build", "dist"), symlinks=True)
        coverage = map_coverage(first, given.map or Path(scratch))
        # Copied with what the tests left behind: the modules, compiled.
        trees = [first, *(_twin(first, n) for n in range(1, PROCESSES))]
        with runners(trees) as free:
            verdicts = try_all(mutants, coverage, free)
            verdicts = try_again(verdicts, coverage, free)
    print(f"seed {given.seed}, {len(coverage.seconds):,} tests")
    print(table(verdicts, packages))
    for verdict in verdicts:
        if verdict.result != "killed":
            source = (ROOT / CORE / verdict.mutant.module).read_text()
            print("", describe(verdict), verdict.mutant.diff(source), sep="\n")
    return int(any(each.result in ("survived", "untested") for each in verdicts))


def map_coverage(tree: Path, folder: Path) -> CoverageMap:
    """Run all tests of `TESTS` in that tree under coverage, unless ``folder`` has that of the same files."""
    folder = folder / _digest(tree)
    data, seconds = folder / "coverage", folder / "seconds.json"
    if not seconds.exists():
        folder.mkdir(parents=True, exist_ok=True)
        settings = folder / "coveragerc"
        settings.write_text(f"[run]\ndata_file = {data}\nrelative_files = true\n")
        command = [sys.executable, "-m", "pytest", "-n", str(PROCESSES), "-p", "no:cacheprovider"]
        command += ["-p", "reliability.mutating.plugins", f"--cov-config={settings}", "--cov-context=test"]
        command += ["--cov-report=", *(f"--cov={CORE}/{each}" for each in PACKAGES)]
        command += [f"tests/{each}" for each in TESTS]
        # A test that fails kills nothing: only those that passed are asked.
        subprocess.run(command, cwd=tree, env=environment(tree) | {SECONDS: str(seconds)}, stdout=sys.stderr)
    return CoverageMap(ROOT / CORE, data, seconds)


@contextmanager
def runners(trees: list[Path]) -> Iterator[queue.Queue[TestRunner]]:
    """A runner for each tree, to be taken and put back."""
    free: queue.Queue[TestRunner] = queue.Queue()
    with ExitStack() as stack:
        for tree in trees:
            free.put(stack.enter_context(TestRunner(tree)))
        yield free


def try_all(mutants: list[Mutant], coverage: CoverageMap, free: queue.Queue[TestRunner]) -> list[Verdict]:
    """Try each, as many at a time as there are runners."""

    def attempt(mutant: Mutant) -> Verdict:
        runner = free.get()
        try:
            return try_mutant(mutant, coverage.tests(mutant), coverage, runner)
        finally:
            free.put(runner)

    verdicts = {}
    with ThreadPoolExecutor(free.qsize()) as pool:
        try:
            for done in as_completed([pool.submit(attempt, each) for each in mutants]):
                verdict = done.result()
                verdicts[verdict.mutant] = verdict
                print(f"{len(verdicts)}/{len(mutants)} {describe(verdict)}", file=sys.stderr, flush=True)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return [verdicts[each] for each in mutants]


def try_mutant(mutant: Mutant, tests: list[str], coverage: CoverageMap, runner: TestRunner) -> Verdict:
    """Break that place in the runner's tree, run the tests, and mend it."""
    tried = list(_within(tests, coverage))
    batches = [tried[:12], tried[12:72], tried[72:], coverage.elsewhere(mutant)[:_MOST_FILES]]
    if not any(batches):
        return Verdict(mutant, "untested")
    result, killer = "survived", ""
    module = runner.tree / CORE / mutant.module
    with runner.replaced(module, mutant.apply(module.read_text())):
        for batch in filter(None, batches):
            outcome = _run(batch, coverage, runner)
            if outcome.result != "passed":
                result = "killed" if outcome.result == "failed" else outcome.result
                killer = next(iter(outcome.failed), "")
                break
    return Verdict(mutant, result, len(tried), len(tests), killer)


def _run(tests: list[str], coverage: CoverageMap, runner: TestRunner) -> Outcome:
    """Run them until one fails, and fails by itself, too: on a busy machine some wait too long."""
    while True:
        outcome = runner.run(_order(tests, coverage))
        if outcome.result != "failed" or runner.run(_order(outcome.failed, coverage)).result != "passed":
            return outcome
        tests = tests[tests.index(outcome.failed[0]) + 1 :] if outcome.failed[0] in tests else []
        if not tests:
            return Outcome("passed", [])


def try_again(verdicts: list[Verdict], coverage: CoverageMap, free: queue.Queue[TestRunner]) -> list[Verdict]:
    """A test that fails where nothing is broken, too, has killed nothing: others are tried in its place."""
    killers = sorted({each.killer for each in verdicts if each.killer})
    if not killers:
        return verdicts
    runner = free.get()
    fickle = set(runner.run(_order(killers, coverage, first=False)).failed)
    print(f"{len(killers)} tests killed; of these fail unbroken: {sorted(fickle)}", file=sys.stderr)
    tried = []
    for each in verdicts:
        if each.killer in fickle:
            others = [test for test in coverage.tests(each.mutant) if test not in fickle]
            tried.append(try_mutant(each.mutant, others, coverage, runner))
        else:
            tried.append(each)
    free.put(runner)
    return tried


def table(verdicts: list[Verdict], packages: tuple[str, ...]) -> str:
    """The counts of each package, as Markdown."""
    lines = ["| | places | killed by a test | nothing imports | too long | survived | untested | killed |"]
    lines.append("|---|---:|---:|---:|---:|---:|---:|---:|")
    for name in (*packages, "all"):
        results = Counter(each.result for each in verdicts if name in (each.mutant.package, "all"))
        counts = [results[each] for each in ("killed", "import", "time", "survived", "untested")]
        share = sum(counts[:3]) / max(1, sum(counts))
        lines.append(f"| {name} | {sum(counts)} | {' | '.join(map(str, counts))} | {share:.0%} |")
    return "\n".join(lines)


def describe(verdict: Verdict) -> str:
    mutant = verdict.mutant
    place = f"{mutant.module}:{mutant.position[0]} {mutant.operator.removeprefix('core/')}"
    return f"{verdict.result} {place}, {verdict.tests} tests of {verdict.all} {verdict.killer}"


def _within(tests: list[str], coverage: CoverageMap) -> Iterator[str]:
    """The first of them, as long as they take no longer than `LONGEST`; the very first in any case."""
    left = LONGEST
    for n, test in enumerate(tests):
        left -= coverage.seconds[test]
        if n and left < 0:
            return
        yield test


def _order(tests: list[str], coverage: CoverageMap, *, first: bool = True) -> Order:
    usual = sum(coverage.seconds.get(test, _A_FILE) for test in tests)
    return Order(tests, cpu=int(30 + 3 * usual), wall=int(900 + 20 * usual), hang=_HANG, first=first)


def _twin(tree: Path, number: int) -> Path:
    return Path(shutil.copytree(tree, f"{tree}{number}", symlinks=True))


def _digest(tree: Path) -> str:
    """Of all that coverage follows from."""
    digest = hashlib.sha256()
    for path in sorted(
        each for part in ("core", "whiteboards", "tests") for each in (tree / part).rglob("*.py")
    ):
        digest.update(f"{path.relative_to(tree)}\0{path.read_text()}\0".encode())
    return digest.hexdigest()[:16]
