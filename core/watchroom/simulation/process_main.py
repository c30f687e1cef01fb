"""One agent of a simulated team, in a process of its own.

Run as: ``python -m watchroom.simulation.process_main ROOT SCENARIO AGENT SEED SPEED TEAM…``. It ends when its
standard input does; what went wrong it says on standard error.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence

from watchroom.runtime.threads import run_in_thread
from watchroom.simulation.player import Player, Stage
from watchroom.simulation.runner import play
from watchroom.simulation.scenario_file import load
from watchroom.workspace import Workspace


async def work(root: str, scenario: str, agent: str, seed: str, speed: str, *team: str) -> list[str]:
    """Let ``agent`` of the ``team`` (ids) play its part of the ``scenario`` file in the workspace at
    ``root``, with that ``seed`` and ``speed``, until standard input ends. Returns what brought it to an
    unexpected end. Raises `WatchroomError` where either cannot be opened."""
    with Workspace.open(root, create=False, scan=False) as workspace:
        agents = workspace.config.agents
        stage = Stage(workspace, load(scenario), [agents[each] for each in team], int(seed), float(speed))
        await play(stage, run_in_thread(_wait_for_end), [Player(stage, agents[agent])])
    return stage.errors


def _wait_for_end() -> None:
    # Not through the buffer of `sys.stdin`: Python could not end while somebody waits in it.
    while os.read(sys.stdin.fileno(), 1):
        pass


def main(arguments: Sequence[str]) -> None:
    """Run the program with its command line ``arguments``."""
    sys.exit("\n".join(asyncio.run(work(*arguments))) or None)


if __name__ == "__main__":
    main(sys.argv[1:])
