"""A team works for a long time beside an open dashboard, to see whether memory grows or the screen falls
behind.

``python -m benchmarks soak [--minutes 30] [--agents 200] [--speed 0.2] [--rows 1000000]``. The simulated
agents are those of ``watchroom demo --headless``. Once they have stopped, a journal with ``--rows`` rows is
opened (0: none).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from statistics import median
from typing import Final

import psutil
from big_workspace import build
from dashboard import marker, save, screen_delays
from measure import Measure, percentile, scratch, table
from progress import ProgressBar
from timed_terminal import NotSeen, Terminal
from watchroom import Toolbox, Workspace
from watchroom.kernel.checkout.layout import CONTROL
from watchroom.kernel.checkout.location import is_workspace

_CLI: Final = (sys.executable, "-m", "watchroom_cli.main")
_DASHBOARD: Final = "dashboard"
_TEAM: Final = "agents"
_OBSERVER: Final = "observer"
"""The agent whose saves are timed until they are on the screen."""
_STARTING: Final = 300.0
"""Timeout for the start of the agents and the dashboard."""
_ACTIVITY: Final = "outcome"
_FIRST_SCREEN: Final = "Needs you"
"""A text of the first screen only."""
_PATIENCE: Final = 60.0
_PAUSE: Final = 0.5
"""Seconds between two timed saves."""
_MAX_GROWTH: Final = 1.05
_MAX_SLOWDOWN: Final = 1.1
_MOMENTS: Final = (1 / 6, 1 / 2, 1.0)
"""The parts of the time after which memory is reported: minutes 5, 15 and 30 of 30."""


@dataclass(frozen=True, slots=True)
class ProcessSample:
    """The resources of one process. ``memory`` is its own in bytes, which its end would free."""

    memory: int
    descriptors: int
    threads: int


@dataclass(frozen=True, slots=True)
class Sample:
    """One sample: all processes by name, the journal's rows, its bytes on disk, and the machine's load."""

    minute: int
    processes: dict[str, ProcessSample]
    rows: int
    journal_bytes: int
    load: float

    def __str__(self) -> str:
        memory = ", ".join(
            f"{name} {each.memory / 1e6:.1f} MB {each.descriptors} fds {each.threads} threads"
            for name, each in self.processes.items()
        )
        size = f"{self.rows:,} rows, {self.journal_bytes / 1e6:.1f} MB"
        return f"minute {self.minute}: {memory}; {size}; load {self.load:.1f}"


@dataclass(slots=True)
class Observations:
    """The observations. ``first`` and ``last``: the delays from commit to screen in the first and last
    minute, in seconds."""

    samples: list[Sample] = field(default_factory=list)
    first: list[float] = field(default_factory=list)
    last: list[float] = field(default_factory=list)


def soak(root: str, minutes: int, agents: int, speed: float) -> Observations:
    """Let the agents work, and sample each minute.

    - ``root``: the new workspace.
    - ``minutes``: the duration.
    - ``agents``: the number of simulated agents.
    - ``speed``: divides their pauses.

    Raises RuntimeError if a process ended, with the end of its log, and `NotSeen` if a save was not on the
    screen in time.
    """
    seen, progress = Observations(), ProgressBar()
    with (
        _team(root, minutes, agents, speed) as team,
        Terminal([*_CLI, "open", root]) as terminal,
        Workspace.open(root, [_OBSERVER], scan=False) as workspace,
    ):
        terminal.wait_for_text(_FIRST_SCREEN, timeout=_STARTING)
        pids, toolbox = {_TEAM: team, _DASHBOARD: terminal.pid}, workspace.tools(_OBSERVER)
        began = time.monotonic()
        for minute in range(minutes + 1):
            for pid in pids.values():
                _check_runs(pid, Path(f"{root}.log"))
            seen.samples.append(_sample(minute, pids, workspace))
            progress.clear()
            print(seen.samples[-1], file=sys.stderr, flush=True)
            _look_around(terminal)
            end = began + 60 * (minute + 1)
            if minute == 0:
                seen.first = _time_saves(terminal, toolbox, 0, end)
            elif minute == minutes - 1:
                seen.last = _time_saves(terminal, toolbox, 1_000_000, end)
            while minute < minutes and (now := time.monotonic()) < end:
                done = (now - began) / (60 * minutes)
                progress.show(done, began + 60 * minutes - now, f"{seen.samples[-1].rows:,} rows")
                time.sleep(_PAUSE)
        progress.clear()
    return seen


def _look_around(terminal: Terminal) -> None:
    """Go to the activity screen and back, as a person does now and then."""
    for key, text in (("8", _ACTIVITY), ("1", _FIRST_SCREEN)):
        since = terminal.mark()
        terminal.send(key)
        terminal.wait_for_bytes(text.encode(), since=since, timeout=_PATIENCE)


def _time_saves(terminal: Terminal, toolbox: Toolbox, first: int, until: float) -> list[float]:
    """Return the seconds from the commit of each save until the screen showed it, or a later one.

    - ``first``: the number of the first marker.
    - ``until``: the end on the monotonic clock.

    Raises `NotSeen`.
    """
    since, numbers = terminal.mark(), count(first)
    saved: list[tuple[str, float]] = []
    while time.monotonic() < until:
        number = next(numbers)
        saved.append((marker(number), save(toolbox, number)))
        time.sleep(_PAUSE)
    wanted = len(saved)
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            return screen_delays(terminal, since, saved)[:wanted]
        except NotSeen:
            # Markers that scrolled away unseen are covered by a later one.
            if time.monotonic() > deadline:
                raise
        number = next(numbers)
        name, at = marker(number), save(toolbox, number)
        terminal.settle(_PAUSE, _PAUSE)
        if name.encode() in terminal.raw(since):
            saved.append((name, at))


@contextmanager
def _team(root: str, minutes: int, agents: int, speed: float) -> Iterator[int]:
    """Run the simulated agents within the context. Yield their process id once the workspace exists."""
    command = [*_CLI, "demo", root, "--headless", "--agents", str(agents), "--speed", str(speed)]
    command += ["--for", str(60 * minutes + _STARTING)]
    log = Path(f"{root}.log")
    with log.open("wb") as output, subprocess.Popen(command, stdout=output, stderr=output) as process:
        try:
            deadline = time.monotonic() + _STARTING
            while not is_workspace(root):
                _check_runs(process.pid, log)
                if time.monotonic() > deadline:
                    raise RuntimeError("the agents do not begin")
                time.sleep(_PAUSE)
            yield process.pid
        finally:
            # Killed without waiting, because its journal is not read again.
            process.kill()


def _check_runs(pid: int, log: Path) -> None:
    """Raise RuntimeError with the end of ``log`` if that process has ended."""
    if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
        raise RuntimeError(f"process {pid} has ended: {log.read_text(errors='replace')[-2000:]}")


def _processes(name: str, pid: int) -> Iterator[tuple[str, psutil.Process]]:
    """Yield the process with that id, and its lasting children, each with its name."""
    parent = psutil.Process(pid)
    yield name, parent
    for child in parent.children():
        with suppress(psutil.NoSuchProcess):
            module = next((each for each in child.cmdline() if each.startswith("watchroom")), "")
            if module:
                yield f"{name}: {module.rpartition('.')[2]}", child


def _sample(minute: int, pids: dict[str, int], workspace: Workspace) -> Sample:
    """Return a sample of the present state."""
    processes = {}
    for root_name, pid in pids.items():
        for name, process in _processes(root_name, pid):
            with suppress(psutil.NoSuchProcess):
                processes[name] = ProcessSample(
                    process.memory_full_info().uss, process.num_fds(), process.num_threads()
                )
    control = Path(workspace.root, CONTROL)
    size = sum(each.stat().st_size for each in control.glob("journal.db*"))
    return Sample(minute, processes, workspace.journal.last_seq(), size, os.getloadavg()[0])


def _measures(seen: Observations) -> list[Measure]:
    """Return the table. A process counts from the first moment at which it exists."""
    last = seen.samples[-1]
    moments = [min(seen.samples, key=lambda each: abs(each.minute - part * last.minute)) for part in _MOMENTS]
    labels = ", ".join(f"{each.minute:.0f}" for each in moments)
    measures = []
    for name in last.processes:
        there = [each.processes[name] for each in moments if name in each.processes]
        measures.append(
            Measure(
                f"{name}: memory in minute {last.minute:.0f} ÷ in minute {moments[0].minute:.0f}",
                there[-1].memory / there[0].memory,
                "×",
                _MAX_GROWTH,
                remark=f"{', '.join(f'{each.memory / 1e6:.1f}' for each in there)} MB in minutes {labels};"
                f" descriptors {', '.join(str(each.descriptors) for each in there)};"
                f" threads {', '.join(str(each.threads) for each in there)}",
            )
        )
    first, end = percentile(seen.first, 95), percentile(seen.last, 95)
    loads = [each.load for each in seen.samples]
    return [
        *measures,
        Measure(
            "commit → screen, p95, last minute ÷ first",
            end / first,
            "×",
            _MAX_SLOWDOWN,
            remark=f"{end * 1e3:.0f} ms, {first * 1e3:.0f} ms; medians {median(seen.last) * 1e3:.0f} ms,"
            f" {median(seen.first) * 1e3:.0f} ms",
        ),
        Measure(
            "journal on the disk",
            last.journal_bytes / 1e6,
            "MB",
            remark=f"{last.rows:,} rows, {last.journal_bytes / max(1, last.rows):,.0f} bytes a row",
        ),
        Measure("load of the machine, median", median(loads), remark=f"{min(loads):.1f} to {max(loads):.1f}"),
    ]


def _open_many_rows(rows: int) -> list[Measure]:
    """Measure the dashboard over a journal of ``rows`` rows, beside one of a thousand."""
    with scratch() as folder:
        painted = {}
        for count_of_rows in (1000, rows):
            root = os.path.join(folder, str(count_of_rows))
            began = time.monotonic()
            build(root, count_of_rows)
            built = time.monotonic() - began
            # The first opening creates the snapshot from which later ones start.
            for _ in range(3):
                with Terminal([*_CLI, "open", root]) as terminal:
                    shown = terminal.wait_for_text(_FIRST_SCREEN, timeout=_STARTING) - terminal.started
                    terminal.settle(1.0, _STARTING)
                    painted[count_of_rows] = shown, terminal.usage().rss, built
    (few, few_bytes, _), (many, many_bytes, built) = painted[1000], painted[rows]
    return [
        Measure(
            f"first screen over {rows:,} rows ÷ over 1,000",
            many / few,
            "×",
            remark=f"{many * 1e3:.0f} ms, {few * 1e3:.0f} ms; made in {built:.0f} s",
        ),
        Measure(
            f"memory over {rows:,} rows ÷ over 1,000",
            many_bytes / few_bytes,
            "×",
            remark=f"{many_bytes / 1e6:.0f} MB, {few_bytes / 1e6:.0f} MB, resident, all processes",
        ),
    ]


def main(arguments: list[str]) -> int:
    """Run the soak, and print the table. Return 1 if a goal was missed."""
    parser = argparse.ArgumentParser(prog="benchmarks soak", description=__doc__)
    parser.add_argument("--minutes", type=int, default=30, help="of work, 2 at least (default: 30)")
    parser.add_argument("--agents", type=int, default=200, help="simulated ones (default: 200)")
    parser.add_argument("--speed", type=float, default=0.2, help="divides their pauses (default: 0.2)")
    parser.add_argument("--rows", type=int, default=1_000_000, help="opened at the end (default: 1000000)")
    given = parser.parse_args(arguments)
    if given.minutes < 2:
        parser.error("the first minute and the last one are two")
    with scratch() as folder:
        # A new folder, because a remembered screen would change the first one.
        os.environ["XDG_CONFIG_HOME"] = os.path.join(folder, "config")
        seen = soak(os.path.join(folder, "team"), given.minutes, given.agents, given.speed)
        measures = _measures(seen)
        print(table(measures), flush=True)
        if given.rows:
            measures += _open_many_rows(given.rows)
            print(table(measures[-2:]))
    return int(any(each.met is False for each in measures))
