"""What a peer takes for a task and what Watchroom takes, in turns within one run."""

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

    Attributes:
        task: what both did.
        peer: who else did it.
        version: the version of it.
        theirs: the peer's median.
        ours: Watchroom's median.
        unit: that of both.
        ratios: theirs ÷ ours, for each round; above 1, the peer takes more.
        remark: what they do that is not the same.
        behind: why Watchroom takes more, where it does.
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
    """A peer that has no figure, and why."""

    peer: str
    reason: str


Row = Comparison | Unmeasured


@dataclass(frozen=True, slots=True)
class Contender:
    """A peer at a task.

    Attributes:
        peer: the peer.
        sample: does it, and returns what it took.
        label: what it is called in the table, if not as the peer.
        remark: as in `Comparison`.
        behind: as in `Comparison`.
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
    """What a group needs to know of the run.

    Attributes:
        folder: where the environments of the peers are.
        versions: those of the peers that are installed, by name.
        progress: shows how far the run is.
    """

    folder: Path
    versions: Mapping[str, str]
    progress: Progress

    def has(self, peer: Peer) -> bool:
        """Whether ``peer`` is installed."""
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
        """Let Watchroom and the ``contenders`` take turns.

        Args:
            task: what they do.
            ours: does it, and returns what it took.
            contenders: those who are installed.
            rounds: how many turns each gets.
            burst: pieces of work in a turn.
            warm: pieces of work before the first that counts.
            unit: that of the samples.

        Returns:
            A comparison for each contender; for one that failed, why.
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
        """What both took in each round as a comparison."""
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
        """Show a bar for ``task``; what is returned moves it by one of its ``turns``."""
        bar = self.progress.add_task(task, total=turns)
        return lambda: self.progress.advance(bar)


class _Attempt:
    """A sample until it fails: a peer that breaks must not end the run of the others."""

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

    Attributes:
        name: the name, for the command line.
        title: the heading of its table.
        introduction: what the tasks are.
        peers: all of them.
        measure: measures those that are installed.
    """

    name: str
    title: str
    introduction: str
    peers: tuple[Peer, ...]
    measure: Callable[[RunContext], list[Row]]
