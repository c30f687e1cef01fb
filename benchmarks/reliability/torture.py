"""Agents work while their processes are killed and stopped, disk calls fail, clocks step, and files are
edited externally. After each round an external oracle reports losses: ``python -m benchmarks torture
[--minutes N | --rounds N] [--seed N] [--journal sqlite|postgresql]``.

Linux only. Disk faults are injected with strace if it is installed, as the first line of output says.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final, Literal

import psutil
from journals import has_server, server_addresses
from measure import scratch
from progress import ProgressBar
from timed_terminal import Terminal
from watchroom import Workspace
from watchroom.features.tasks.rows import END, UNRECORDED
from watchroom.history.verify import Problem
from watchroom.kernel.journal.edits import edits

from reliability.torturing.clock import SteppedClock
from reliability.torturing.companions import ATTACHED, AttachedAgent, Society
from reliability.torturing.oracle import Oracle
from reliability.torturing.workers import AGENTS, create_document, create_task, open_draft, telling

Backend = Literal["sqlite", "postgresql"]
KINDS_OF_SLOTS: Final = ("write", "write", "write", "write", "edit", "edit", "draft", "command")
KILLS_A_ROUND: Final = 25
_DASHBOARDS: Final = 2
_SHARED_FILES: Final = "collaborative/current"
_PATIENCE: Final = 300.0
_BEGINNING: Final = 10.0
"""Timeout for a worker to open the workspace."""
_LETTING_GO: Final = 5.0
"""Timeout for strace to detach from a worker."""
_FAULTS: Final = (
    "fdatasync,fsync:error=EIO",
    "pwrite64:error=ENOSPC",
    "openat:error=ENOSPC",
    "renameat2,renameat,rename:error=EIO",
)
_CLOCK_STEPS: Final = (0, 3600, -7200, 86_400)


@dataclass(slots=True)
class Report:
    """The work that was done, and the problems found."""

    rounds: int = 0
    done: Counter[str] = field(default_factory=Counter)
    acknowledged: int = 0
    refused: int = 0
    uncertain: int = 0
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        done = ", ".join(f"{count:,} {what}" for what, count in sorted(self.done.items()))
        return (
            f"{self.rounds} rounds: {done}; {self.acknowledged:,} acknowledged, {self.refused:,} refused,"
            f" of which {self.uncertain:,} as uncertain; {len(self.problems)} problems"
        )


class Tormentor:
    """Starts workers, one per slot, and disturbs them.

    - ``orders``: the input of the program that forks workers.
    - ``answers``: its output, with the ids of forked workers.
    - ``chance``: makes all random choices.
    - ``report``: counts the disturbances.
    - ``told``: the folder of the workers' reports.
    - ``first``: the generation of its first worker.
    """

    def __init__(
        self,
        orders: IO[str],
        answers: IO[str],
        chance: random.Random,
        report: Report,
        told: Path,
        first: int,
    ) -> None:
        self._orders = orders
        self._answers = answers
        self._told = told
        self._chance = chance
        self._report = report
        self._generation = first
        self._working: dict[int, psutil.Process] = {}
        self._numbers: dict[int, int] = {}

    def start(self, slot: int) -> None:
        """Fork a worker for the slot, with a new number."""
        number = self._generation * len(KINDS_OF_SLOTS) + slot
        self._generation += 1
        self._orders.write(f"{KINDS_OF_SLOTS[slot]} {number}\n")
        self._orders.flush()
        told, process = self._answers.readline().split()
        if int(told) != number:
            raise RuntimeError(f"asked for worker {number}, and got {told}")
        self._working[slot] = psutil.Process(int(process))
        self._numbers[slot] = number

    def wait_for_work(self, slot: int) -> None:
        """Wait a while for the slot's worker to start its first call, while others work."""
        told, deadline = self._told / str(self._numbers[slot]), time.monotonic() + _BEGINNING
        while not (told.exists() and told.stat().st_size) and time.monotonic() < deadline:
            time.sleep(0.01)

    def kill(self, slot: int) -> None:
        """Kill the slot's worker, and wait for its end."""
        process = self._working.pop(slot)
        if not process.is_running():
            # A worker gives up if its disk refuses to open the workspace.
            self._report.done["workers that gave up"] += 1
            return
        process.send_signal(signal.SIGKILL)
        process.wait(_PATIENCE)
        self._report.done["kills"] += 1

    def stop_awhile(self, slot: int) -> None:
        """Suspend the slot's worker while others work, as a closed laptop."""
        process = self._working[slot]
        if not process.is_running():
            return
        process.send_signal(signal.SIGSTOP)
        time.sleep(self._chance.uniform(0.05, 0.4))
        process.send_signal(signal.SIGCONT)
        self._report.done["stops"] += 1

    def refuse_calls(self, slot: int) -> None:
        """Let some of the slot's system calls fail, for a short time."""
        fault = (
            f"{self._chance.choice(_FAULTS)}:when={self._chance.randint(1, 9)}+{self._chance.randint(2, 9)}"
        )
        calls = fault.split(":")[0]
        command = ["strace", "-f", "-p", str(self._working[slot].pid), "-o", os.devnull]
        command += ["-e", f"trace={calls}", "-e", f"inject={fault}"]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as strace:
            time.sleep(self._chance.uniform(0.2, 0.5))
            strace.terminate()
            try:
                strace.wait(_LETTING_GO)
            except subprocess.TimeoutExpired:
                # strace waits for a thread that waits for its vfork, which strace itself has stopped.
                strace.kill()
        self._report.done["faults of the disk"] += 1

    def kill_all(self) -> None:
        """End a round: kill all workers in random order."""
        slots = list(self._working)
        self._chance.shuffle(slots)
        for slot in slots:
            self.kill(slot)


@dataclass(frozen=True, slots=True)
class Budget:
    """The limits of a run.

    - ``until``: the end on the monotonic clock. After it, only the kills that end a round are made.
    - ``rounds``: max rounds.
    - ``kills``: max kills of workers per round.
    """

    until: float
    rounds: int = 10_000
    kills: int = KILLS_A_ROUND
    began: float = field(default_factory=time.monotonic)

    def show(self, progress: ProgressBar, rounds: int, kills: int, all_kills: int) -> None:
        """Show the progress after complete ``rounds``, and ``kills`` in the current one."""
        now = time.monotonic()
        share, left = (rounds + kills / self.kills) / self.rounds, self.until - now
        if share > 0:
            left = min(left, (now - self.began) / share * (1 - share))
        text = f"round {rounds + 1}, {all_kills:,} kills"
        progress.show(1 - left / (now - self.began + left), left, text)


def torture(
    address: str,
    checkout: str | None,
    folder: Path,
    *,
    budget: Budget,
    seed: int,
    dashboards: int = _DASHBOARDS,
    faults: bool = True,
) -> Report:
    """Work and disturb, round by round.

    - ``address``: the workspace's folder, or its address on a server.
    - ``checkout``: the folder of its files, for a server.
    - ``folder``: the folder of the workers' reports, outside the workspace.
    - ``budget``: the limits of the run.
    - ``seed``: the seed of the first round. The next ones count up.
    - ``dashboards``: the number of open dashboards, which must survive.
    - ``faults``: let system calls fail, which needs strace.

    Return the report. Each problem names its round's seed.
    """
    told, task = folder / "told", folder / "task"
    told.mkdir()
    oracle, report = Oracle(told, task), Report()
    with Workspace.open(address, [*AGENTS, ATTACHED], checkout=checkout) as workspace:
        create_document(workspace)
        create_task(workspace, str(task))
        for agent in AGENTS:
            open_draft(workspace.tools(agent))
    clock = folder / "clock"
    scene = _Scene(address, checkout, told, SteppedClock(clock), oracle, report, faults, budget)
    with ExitStack() as stack:
        shown = [stack.enter_context(_dashboard(checkout or address, folder)) for _ in range(dashboards)]
        orders, answers = stack.enter_context(_forking(address, checkout, told, clock))
        for number in range(seed, seed + budget.rounds):
            if time.monotonic() > budget.until:
                break
            first = (number - seed) * 10 * budget.kills
            tormentor = Tormentor(orders, answers, random.Random(number), report, told, first)
            with scene.companions(number):
                scene.run_round(tormentor, random.Random(number))
            found = scene.examine()
            found += [f"dashboard {n} ended" for n, each in enumerate(shown) if not _lives(each)]
            report.rounds += 1
            report.acknowledged, report.refused = oracle.acknowledged, oracle.refused
            report.uncertain = oracle.uncertain
            report.problems += [f"seed {number}: {each}" for each in found]
            scene.progress.clear()
            print(f"seed {number}: {report}", *found, sep="\n  ", file=sys.stderr, flush=True)
    return report


@dataclass(frozen=True, slots=True)
class _Scene:
    """A workspace under torture."""

    address: str
    checkout: str | None
    told: Path
    clock: SteppedClock
    oracle: Oracle
    report: Report
    faults: bool
    budget: Budget
    progress: ProgressBar = field(default_factory=ProgressBar)

    @property
    def root(self) -> str:
        """The folder of the files, which stores the address of a server."""
        return self.checkout or self.address

    @contextmanager
    def companions(self, number: int) -> Iterator[None]:
        """Run a society and an attached agent within the context. Both are killed at the end."""
        society = Society(self.root, number)
        # Forked workers have lower numbers.
        attached = AttachedAgent(self.root, 10**8 + number, telling(str(self.told), 10**8 + number))
        try:
            yield
        finally:
            self.report.done["kills"] += society.kill() + attached.kill()

    def run_round(self, tormentor: Tormentor, chance: random.Random) -> None:
        """Disturb workers until the budget's kills or time are used up."""
        done, budget = self.report.done, self.budget
        try:
            for slot in range(len(KINDS_OF_SLOTS)):
                tormentor.start(slot)
            edited: set[str] = set()
            begun = done["kills"]
            most = budget.kills - len(KINDS_OF_SLOTS)
            while (kills := done["kills"] - begun) < most and time.monotonic() < budget.until:
                budget.show(self.progress, self.report.rounds, kills, done["kills"])
                time.sleep(chance.uniform(0.02, 0.2))
                slot, what = chance.randrange(len(KINDS_OF_SLOTS)), chance.random()
                if what < 0.6:
                    # The others are killed while they open the workspace.
                    if chance.random() < 0.8:
                        tormentor.wait_for_work(slot)
                    tormentor.kill(slot)
                    tormentor.start(slot)
                elif what < 0.75:
                    tormentor.stop_awhile(slot)
                elif what < 0.85 and self.faults:
                    tormentor.refuse_calls(slot)
                elif what < 0.92:
                    self.clock.step(chance.choice(_CLOCK_STEPS))
                    done["steps of the clock"] += 1
                else:
                    _edit_by_hand(Path(self.root), edited, self.oracle, self.report)
        finally:
            tormentor.kill_all()

    def examine(self) -> list[str]:
        """Return the problems that the oracle and ``verify`` find after opening the workspace again."""
        with Workspace.open(self.address, checkout=self.checkout) as workspace:
            workspace.scan()
            found = [*self.oracle.problems(workspace)]
            for each in workspace.verify():
                if _is_told(workspace, each):
                    self.report.done["files that the disk refused, as rows say"] += 1
                elif _waits(workspace, each):
                    self.report.done["edits by hand that wait to be settled"] += 1
                else:
                    found.append(f"verify: {each}")
            return [*found, *(f"after repair: {each}" for each in workspace.repair())]


def _is_told(workspace: Workspace, problem: Problem) -> bool:
    """Return whether a row reports that the disk refused that path's file, or reading a command's changes."""
    journal = workspace.journal
    lately = journal.refused(problem.zone, problem.path, limit=1000)
    if any(row.error == "not_laid_out" for row in lately):
        return True
    head = journal.head(problem.zone, problem.path) if problem.zone == "file" else None
    return head is not None and any(
        row.tool == END and UNRECORDED in row.detail for row in journal.rows(head.seq, limit=10_000)
    )


def _waits(workspace: Workspace, problem: Problem) -> bool:
    """Return whether the file at that path is an external edit that has a row and waits for a person."""
    if problem.kind != "file" or problem.zone != "collab":
        return False
    file = Path(workspace.root, _SHARED_FILES, problem.path)
    known = next(edits(workspace.journal, "collab", problem.path), None)
    return (
        known is not None
        and known.outcome == "conflict"
        and known.sha256 == hashlib.sha256(file.read_bytes()).hexdigest()
    )


def _edit_by_hand(files: Path, edited: set[str], oracle: Oracle, report: Report) -> None:
    """Replace a file as an editor does. Each file is edited once per round, so that no edit is replaced
    before it is recorded."""
    name = f"{len(edited)}.md"
    place = files / _SHARED_FILES / "plans" / name
    if name in edited or not place.parent.is_dir() or len(edited) == 5:
        return
    edited.add(name)
    report.done["edits by hand"] += 1
    token = f"<{10**9}.{report.done['edits by hand']}>"
    draft = files.parent / f"{files.name}-draft"
    draft.write_text(f"{token} by hand\n")
    draft.replace(place)
    oracle.edited_by_hand.add(token)


@contextmanager
def _forking(
    address: str, checkout: str | None, told: Path, clock: Path
) -> Iterator[tuple[IO[str], IO[str]]]:
    """Run the program that forks workers, with the wall clock of ``clock``."""
    module = "reliability.torturing.workers"
    command = [
        sys.executable,
        "-m",
        module,
        address,
        str(told),
        str(clock),
        *([checkout] if checkout else []),
    ]
    with (
        (told.parent / "workers.log").open("w") as log,
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            cwd=Path(__file__).parents[1],
        ) as process,
    ):
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("the program has no pipes")
        yield process.stdin, process.stdout
        process.stdin.close()


@contextmanager
def _dashboard(root: str, folder: Path) -> Iterator[Terminal]:
    command = [sys.executable, "-m", "watchroom_cli.main", "open", root]
    # A new folder, because a remembered screen would change the first one.
    with Terminal(command, env={"XDG_CONFIG_HOME": str(folder / "config")}) as terminal:
        terminal.wait_for_text("Activity", timeout=_PATIENCE)
        yield terminal


def _lives(terminal: Terminal) -> bool:
    return psutil.pid_exists(terminal.pid) and psutil.Process(terminal.pid).status() != psutil.STATUS_ZOMBIE


def main(arguments: list[str]) -> int:
    """Torture each journal in turn, and print the findings. Return 1 if there are any."""
    parser = argparse.ArgumentParser(prog="benchmarks torture", description=__doc__)
    parser.add_argument(
        "--minutes", type=float, default=5.0, help="of all (default: 5); what a round has begun is examined"
    )
    parser.add_argument("--rounds", type=int, default=10_000, help="at most, on each journal")
    parser.add_argument("--seed", type=int, default=1, help="of the first round")
    parser.add_argument("--journal", choices=["sqlite", "postgresql"], help="only this one")
    parser.add_argument("--no-faults", action="store_true", help="no system call is made to fail")
    given = parser.parse_args(arguments)
    # So that child processes are ended too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    print(f"strace: {bool(shutil.which('strace'))}", file=sys.stderr)
    backends: list[Backend] = [given.journal] if given.journal else ["sqlite"]
    if not given.journal and has_server():
        backends.append("postgresql")
    reports = {}
    for backend in backends:
        until = time.monotonic() + 60 * given.minutes / len(backends)
        budget = Budget(until, given.rounds)
        with scratch() as folder, ExitStack() as stack:
            team = os.path.join(folder, "team")
            address = team
            if backend == "postgresql":
                address = stack.enter_context(server_addresses())("torture")
            reports[backend] = torture(
                address,
                team if backend == "postgresql" else None,
                Path(folder),
                budget=budget,
                seed=given.seed,
                faults=not given.no_faults and shutil.which("strace") is not None,
            )
    for name, report in reports.items():
        print(f"{name}: {report}")
        print("".join(f"  {each}\n" for each in report.problems), end="")
    return int(any(report.problems for report in reports.values()))
