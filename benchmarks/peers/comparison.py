"""The cost of a task for a peer and for Watchroom, in turns within one run."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final, Literal

from measure import Sample, sampled
from rich.progress import Progress

from peers.peer import Peer

OURS: Final = "Watchroom"
_MEASURE_ERRORS: Final = (OSError, RuntimeError, subprocess.SubprocessError)
Unit = Literal["s", "bytes"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """One task, done by a peer and by Watchroom.

    - ``task``: the task.
    - ``peer``, ``version``: the peer.
    - ``theirs``, ``ours``: the medians of the peer and of Watchroom.
    - ``unit``: the unit of both.
    - ``ratios``: theirs ÷ ours for each round. Above 1, the peer costs more.
    - ``remark``: the differences between the tasks.
    - ``behind``: why Watchroom costs more, if it does.
    """

    task: str
    peer: str
    version: str
    theirs: float
    ours: float
    unit: Unit
    ratios: tuple[float, ...]
    remark: str = ""
    behind: str = ""

    @property
    def ratio(self) -> float:
        return median(self.ratios)

    @property
    def is_behind(self) -> bool:
        return self.ratio < 1


@dataclass(frozen=True, slots=True)
class Unmeasured:
    """A peer without a figure, and the reason."""

    peer: str
    reason: str


Row = Comparison | Unmeasured


@dataclass(frozen=True, slots=True)
class Contender:
    """A peer at a task.

    - ``sample``: does the task, and returns its cost.
    - ``label``: the name in the table, default: the peer's.
    - ``remark``, ``behind``: see `Comparison`.
    """

    peer: Peer
    sample: Sample
    label: str = ""
    remark: str = ""
    behind: str = ""

    @property
    def name(self) -> str:
        return self.label or self.peer.name


@dataclass(frozen=True, slots=True)
class RunContext:
    """The context of a run.

    - ``folder``: the folder of the peers' environments.
    - ``versions``: the versions of the installed peers, by name.
    - ``progress``: shows the progress of the run.
    """

    folder: Path
    versions: Mapping[str, str]
    progress: Progress

    def has(self, peer: Peer) -> bool:
        """Return whether ``peer`` is installed."""
        return peer.name in self.versions

    def compare(
        self,
        task: str,
        ours: Sample,
        contenders: Sequence[Contender],
        *,
        rounds: int,
        burst: int = 1,
        warm: int = 0,
        unit: Unit = "s",
    ) -> list[Row]:
        """Measure Watchroom and the ``contenders`` in turns.

        - ``task``: the task.
        - ``ours``: does it with Watchroom, and returns its cost.
        - ``contenders``: the installed peers.
        - ``rounds``: turns of each.
        - ``burst``: pieces of work per turn.
        - ``warm``: pieces of work before the first that counts.
        - ``unit``: the unit of the samples.

        Return a comparison for each contender, or the reason of its failure.
        """
        attempts = {each.name: _Attempt(each.sample) for each in contenders}
        samples: dict[str, Sample] = {OURS: ours, **attempts}
        for n in range(warm):
            for sample in samples.values():
                sample(n)
        taken = sampled(
            samples, rounds, burst, first=warm, between=self.count_turns(task, rounds * len(samples))
        )
        return [
            Unmeasured(each.name, f"it failed: {failure}")
            if (failure := attempts[each.name].failure)
            else self.row(task, each, taken[OURS], taken[each.name], unit)
            for each in contenders
        ]

    def row(
        self,
        task: str,
        contender: Contender,
        ours: Sequence[Sequence[float]],
        theirs: Sequence[Sequence[float]],
        unit: Unit,
    ) -> Comparison:
        """Return the costs of both in each round as a comparison."""
        ratios = [median(them) / median(us) for them, us in zip(theirs, ours, strict=True)]
        return Comparison(
            task,
            contender.name,
            self.versions[contender.peer.name],
            median(value for each in theirs for value in each),
            median(value for each in ours for value in each),
            unit,
            tuple(ratios),
            contender.remark,
            contender.behind,
        )

    def count_turns(self, task: str, turns: int) -> Callable[[], None]:
        """Show a bar for ``task``. Return a callback that advances it by one of ``turns``."""
        bar = self.progress.add_task(task, total=turns)
        return lambda: self.progress.advance(bar)


class _Attempt:
    """A sample that stops at its first failure, so that a broken peer does not end the others' run."""

    def __init__(self, sample: Sample) -> None:
        self._sample = sample
        self.failure = ""

    def __call__(self, n: int) -> float:
        if self.failure:
            return float("nan")
        try:
            return self._sample(n)
        except _MEASURE_ERRORS as error:
            lines = str(error).strip().splitlines()
            self.failure = lines[0] if lines else type(error).__name__
            return float("nan")


@dataclass(frozen=True, slots=True)
class Group:
    """Peers at the same tasks.

    - ``name``: the name on the command line.
    - ``title``: the heading of the table.
    - ``introduction``: the description of the tasks.
    - ``peers``: all peers.
    - ``measure``: measures the installed ones.
    """

    name: str
    title: str
    introduction: str
    peers: tuple[Peer, ...]
    measure: Callable[[RunContext], list[Row]]
