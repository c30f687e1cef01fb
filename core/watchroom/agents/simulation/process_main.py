"""One agent of a simulated team, in a separate process.

Run as ``python -m watchroom.agents.simulation.process_main ROOT SCENARIO AGENT SEED SPEED TEAM…``. It ends
when its standard input ends, and prints problems to standard error.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence

from watchroom.agents.simulation.player import Player, Stage
from watchroom.agents.simulation.runner import play
from watchroom.agents.simulation.scenario_file import load
from watchroom.features.policy.shown_commands import quote_command
from watchroom.features.sessions.runtime.threads import run_in_thread
from watchroom.platform.child_process import wait_for_input_end
from watchroom.workspace import Workspace


async def work(root: str, scenario: str, agent: str, seed: str, speed: str, *team: str) -> list[str]:
    """Play one agent of a scenario until standard input ends. Return the errors that ended it.

    - ``root``: the workspace.
    - ``scenario``: the path of the scenario file.
    - ``agent``, ``team``: ids.
    - ``seed``, ``speed``: see `Simulation`.

    Raise `WatchroomError` if the workspace or the scenario cannot be opened.
    """
    with Workspace.open(root, create=False, scan=False) as workspace:
        # The parent runs the task, so that its agent cannot be resumed alone.
        workspace.journal.presence.hold(resume=quote_command(["watchroom", "demo", root]))
        agents = workspace.config.agents
        stage = Stage(workspace, load(scenario), [agents[each] for each in team], int(seed), float(speed))
        await play(stage, run_in_thread(wait_for_input_end), [Player(stage, agents[agent])])
    return stage.errors


def main(arguments: Sequence[str]) -> None:
    """Run the program with the command line ``arguments``."""
    sys.exit("\n".join(asyncio.run(work(*arguments))) or None)


if __name__ == "__main__":
    main(sys.argv[1:])
