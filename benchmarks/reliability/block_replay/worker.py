"""A process that works in a workspace on a recorded disk, and reports the time of each answer.

``python -m reliability.block_replay.worker ROOT FOLDER LOG NUMBER KIND`` writes its reports to the file
NUMBER in FOLDER, as `reliability.torturing.workers` does. Each contains the current length of LOG, so that
the acknowledged work before a power loss is known.
"""

from __future__ import annotations

import os
import sys

from watchroom import Workspace

from reliability.torturing.workers import AGENTS, Told, Worker, telling


def main(root: str, folder: str, log: str, number: int, kind: str) -> None:
    """Work until the process is killed."""
    tell = telling(folder, number)

    def tell_when(told: Told) -> None:
        tell(Told(**told, moment=os.stat(log).st_size))

    workspace = Workspace.open(root, scan=False)
    Worker(workspace.tools(AGENTS[number % len(AGENTS)]), number, tell_when).run(kind)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5])
