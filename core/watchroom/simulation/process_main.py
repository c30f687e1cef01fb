"""One agent of a simulated team, in a process of its own.

Run as: ``python -m watchroom.simulation.process_main ROOT SCENARIO AGENT SEED SPEED TEAM…``. It reports
what it does on its standard output, a line of JSON for each thing that is counted, and ends when its
standard input does.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import astuple
from threading import Thread

from watchroom.simulation.follower import JournalFollower
from watchroom.simulation.player import Player, Stage
from watchroom.simulation.runner import play
from watchroom.simulation.scenario_file import load
from watchroom.simulation.statistics import CallRecord, Statistics
from watchroom.workspace import Workspace


class Reports(Statistics):
    """Reports what is counted instead of counting it."""

    def count_call(self, call: CallRecord) -> None:
        """Report a ``call``."""
        _report({"call": astuple(call)})

    def count_abandoned(self) -> None:
        """Report a conflict that was left open."""
        _report({"abandoned": True})

    def count_session(self, tokens: int) -> None:
        """Report the end of a session that used so many ``tokens``."""
        _report({"tokens": tokens})

    def add_error(self, error: str) -> None:
        """Report what brought the agent to an unexpected end, ``error``."""
        _report({"error": error})


async def work(root: str, scenario: str, agent: str, seed: str, speed: str, *team: str) -> None:
    """Let ``agent`` of the ``team`` (ids) play its part of the ``scenario`` file in the workspace at
    ``root``, with that ``seed`` and ``speed``, until standard input ends. Raises `WatchroomError` where
    either cannot be opened."""
    loop, over = asyncio.get_running_loop(), asyncio.Event()

    def wait_for_end() -> None:
        # Not through the buffer of `sys.stdin`: Python could not end while somebody waits in it.
        while os.read(sys.stdin.fileno(), 1):
            pass
        loop.call_soon_threadsafe(over.set)

    Thread(target=wait_for_end, daemon=True).start()
    with Workspace.open(root, create=False, scan=False) as workspace:
        agents = workspace.config.agents
        stage = Stage(
            workspace=workspace,
            scenario=load(scenario),
            team=[agents[each] for each in team],
            seed=int(seed),
            speed=float(speed),
            statistics=Reports(),
            follower=JournalFollower(workspace),
            over=over,
        )
        await play(stage, [Player(stage, agents[agent])])


def _report(report: Mapping[str, object]) -> None:
    sys.stdout.write(json.dumps(report) + "\n")
    sys.stdout.flush()


def main(arguments: Sequence[str]) -> None:
    """Run the program with its command line ``arguments``."""
    asyncio.run(work(*arguments))


if __name__ == "__main__":
    main(sys.argv[1:])
