"""One agent of a simulated team, in a process of its own.

Run as: ``python -m watchroom.simulation.elsewhere ROOT AGENT SEED SPEED [--people] --team AGENT …``. It tells
what it does on its standard output, a line of JSON for each thing that is counted, and ends when its standard
input does.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from threading import Thread
from typing import Final

from watchroom import Workspace
from watchroom.model import Json
from watchroom.simulation.player import Player, Stage
from watchroom.simulation.runner import play
from watchroom.simulation.steps import Call, Result, text_in
from watchroom.simulation.tally import Tally

_TOLD: Final = ("success", "is_conflict", "error")


class Report(Tally):
    """Tells what is counted instead of counting it."""

    def called(self, call: Call, result: Result) -> None:
        counted: dict[str, Json] = {name: result[name] for name in _TOLD if name in result}
        operation = text_in(call.arguments, "operation")
        _tell({"tool": call.tool, "attempt": call.attempt, "operation": operation, "result": counted})

    def gave_up(self) -> None:
        _tell({})

    def ended_session(self, tokens: int) -> None:
        _tell({"tokens": tokens})

    def failed(self, error: str) -> None:
        _tell({"error": error})


def main() -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("root")
    parser.add_argument("agent")
    parser.add_argument("seed", type=int)
    parser.add_argument("speed", type=float)
    parser.add_argument("--people", action="store_true")
    parser.add_argument("--team", nargs="+", required=True)
    asyncio.run(_work(parser.parse_args()))


async def _work(given: Namespace) -> None:
    loop, over = asyncio.get_running_loop(), asyncio.Event()

    def wait_for_the_end() -> None:
        # Not through the buffer of `sys.stdin`: Python could not end while somebody waits in it.
        while os.read(sys.stdin.fileno(), 1):
            pass
        loop.call_soon_threadsafe(over.set)

    Thread(target=wait_for_the_end, daemon=True).start()
    with Workspace.open(given.root, create=False, scan=False) as workspace:
        agents = workspace.config.agents
        stage = Stage(
            workspace=workspace,
            team=[agents[agent] for agent in given.team],
            seed=given.seed,
            speed=given.speed,
            tally=Report(),
            over=over,
            people_help=given.people,
            turns=None,
        )
        await play(stage, [Player(stage, agents[given.agent], workspace.tools(given.agent))])


def _tell(told: Mapping[str, Json]) -> None:
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
