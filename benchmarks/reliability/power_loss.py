"""Agents work on a disk that is recorded block by block. Then the power fails at points of the recording:
``python -m benchmarks power-loss [--rounds N] [--filesystem ext4|xfs|btrfs] [--seed N]``.

Linux only, as root: it mounts disk images, each in its own mount namespace.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from measure import scratch
from progress import ProgressBar

from reliability.block_replay.namespace import FILE_SYSTEMS, FileSystem
from reliability.block_replay.session import Recording, examine, record
from reliability.block_replay.write_log import Replay, positions_before_flushes

_LOSSES_A_RECORDING: Final = 10
_SECONDS: Final = 8.0
"""Seconds of work in each recording."""


@dataclass(slots=True)
class Report:
    """The result for one file system.

    - ``acknowledged``: answers before the power losses, summed.
    - ``kept``, ``lost``, ``torn``: the writes after the last flush.
    """

    rounds: int = 0
    acknowledged: int = 0
    kept: int = 0
    lost: int = 0
    torn: int = 0
    repaired: int = 0
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.rounds} power losses: {self.acknowledged:,} answers before them;"
            f" writes since the last flush: {self.kept:,} kept, {self.lost:,} lost, {self.torn:,} torn;"
            f" {self.repaired:,} files that differed until repair; {len(self.problems)} problems"
        )


def lose_power(
    folder: Path, file_system: FileSystem, rounds: int, seed: int, progress: ProgressBar
) -> Report:
    """Record work and lose power ``rounds`` times.

    - ``folder``: the folder for disks and recordings, with some hundred megabytes of free space.
    - ``file_system``: the disk's file system.
    - ``rounds``: the number of power losses.
    - ``seed``: the seed of the first recording. The next ones count up.
    - ``progress``: shows the progress.

    Return the result. Each problem names its seed and the position in the recording.
    """
    report, began = Report(), time.monotonic()
    while report.rounds < rounds:
        place = folder / f"{file_system}-{seed}"
        place.mkdir()
        recording = record(place, file_system, _SECONDS, seed)
        chance = random.Random(seed)
        moments = min(_LOSSES_A_RECORDING, rounds - report.rounds)
        positions = sorted(_moments(recording, moments, chance))
        replay = Replay(recording.image, recording.log)
        for position in positions:
            _lose(recording, replay, position, chance, seed, report)
            taken = time.monotonic() - began
            left = taken / report.rounds * (rounds - report.rounds)
            text = f"{file_system}, {report.rounds} power losses, {len(report.problems)} problems"
            progress.show(report.rounds / rounds, left, text)
        progress.clear()
        print(f"{file_system}, seed {seed}: {report}", file=sys.stderr, flush=True)
        shutil.rmtree(place)
        seed += 1
    return report


def _moments(recording: Recording, count: int, chance: random.Random) -> Iterator[int]:
    """Yield ``count`` positions. Every other one is just before a flush."""
    dangerous = positions_before_flushes(recording.log, recording.begin)
    for number in range(count):
        if number % 2 and dangerous:
            yield chance.choice(dangerous)
        else:
            yield chance.randint(recording.begin, recording.end)


def _lose(
    recording: Recording, replay: Replay, position: int, chance: random.Random, seed: int, report: Report
) -> None:
    """Lose power once, and add the findings to ``report``."""
    replay.advance(position)
    disk = recording.image.with_name("after")
    subprocess.run(["cp", "--sparse=always", recording.image, disk], check=True)
    cut = replay.cut(disk, chance)
    report.rounds += 1
    report.kept += cut.kept
    report.lost += cut.lost
    report.torn += cut.torn
    try:
        found = examine(recording, disk, position, chance.getrandbits(32))
    except RuntimeError as error:
        report.problems.append(f"{recording.file_system}, seed {seed}, position {position}: {error}")
        return
    report.acknowledged += found.acknowledged
    report.repaired += found.repaired
    report.problems += [
        f"{recording.file_system}, seed {seed}, position {position}: {each}" for each in found.problems
    ]


def main(arguments: list[str]) -> int:
    """Lose power on each file system in turn, and print the findings. Return 1 if there are any."""
    parser = argparse.ArgumentParser(prog="benchmarks power-loss", description=__doc__)
    parser.add_argument("--rounds", type=int, default=100, help="on each file system (default: 100)")
    parser.add_argument("--filesystem", choices=FILE_SYSTEMS, help="only this one")
    parser.add_argument("--seed", type=int, default=1, help="of the first recording")
    given = parser.parse_args(arguments)
    if os.name != "posix" or os.geteuid():
        parser.error("only root can mount a disk")
    chosen: tuple[FileSystem, ...] = (given.filesystem,) if given.filesystem else FILE_SYSTEMS
    reports: dict[FileSystem, Report] = {}
    for file_system in chosen:
        if shutil.which(f"mkfs.{file_system}") is None:
            print(f"{file_system}: there is no mkfs.{file_system}", file=sys.stderr)
            continue
        with scratch() as folder:
            reports[file_system] = lose_power(
                Path(folder), file_system, given.rounds, given.seed, ProgressBar()
            )
    for name, report in reports.items():
        print(f"{name}: {report}")
        print("".join(f"  {each}\n" for each in report.problems), end="")
    return int(any(report.problems for report in reports.values()))
