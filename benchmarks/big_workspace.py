"""Build a workspace with many rows quickly: ``python benchmarks/big_workspace.py DIR [ROWS [AGENTS]]``.

The rows are written directly into the journal, thousands per commit. The next opening writes the files, as
after a crash. So the tree is the same as if every row had been a tool call.
"""

from __future__ import annotations

import os
import random
import sys
import time

from watchroom import Workspace
from watchroom.model import Draft, Note, Write

_BATCH = 2_000
_PRIVATE_FILES, _COLLAB_FILES = 60, 150
"""Number of files per agent, and of collaborative files."""


class Team:
    """Makes up the actions of agents from a seed: half of them reads, a third saves."""

    def __init__(self, agents: int, seed: int) -> None:
        self.agents = [f"agent{n:03d}" for n in range(agents)]
        self._random = random.Random(seed)
        self._collab = [f"chapter{n // 10:02d}/section{n:03d}.md" for n in range(_COLLAB_FILES)]
        self._versions = dict.fromkeys(self._collab, 0)

    def draft(self, n: int) -> Draft:
        """Return the n-th draft."""
        agent = self._random.choice(self.agents)
        kind = self._random.random()
        if kind < 0.50:
            return self._reading(agent)
        if kind < 0.83:
            path = f"{agent}/notes{self._random.randrange(_PRIVATE_FILES):02d}.md"
            return Write(agent, "save_to_my_workspace", "private", path, self._text(n), "saved")
        if kind < 0.87:
            return self._handoff(agent, n)
        if kind < 0.89:
            return Note(
                agent, "save_to_my_workspace", "private", "../x", "denied", "invalid_path", durable=False
            )
        return self._version(agent, n)

    def _reading(self, agent: str) -> Note:
        path = self._random.choice(self._collab)
        return Note(agent, "collab_read", "collab", path, base=self._versions[path], durable=False)

    def _handoff(self, agent: str, n: int) -> Draft:
        others = [other for other in self.agents if other != agent] or [agent]
        path = f"{agent}_to_{self._random.choice(others)}/part{self._random.randrange(10)}.md"
        return Write(agent, "handoff_file", "handoff", path, self._text(n), "for you")

    def _version(self, agent: str, n: int) -> Draft:
        """Return a write of the next version, or sometimes of a stale one, which becomes a conflict."""
        path = self._random.choice(self._collab)
        expected = self._versions[path]
        if expected > 1 and self._random.random() < 0.05:
            return Write(agent, "collab_write", "collab", path, self._text(n), "late", expected - 1)
        self._versions[path] += 1
        return Write(
            agent, "collab_write", "collab", path, self._text(n), f"version {expected + 1}", expected
        )

    def _text(self, n: int) -> str:
        return f"# Row {n}\n" + "What was found, in a line of text.\n" * self._random.randrange(4, 40)


def build(root: str, rows: int = 100_000, agents: int = 5, seed: int = 1) -> None:
    """Build a workspace with at least ``rows`` rows at ``root``."""
    team = Team(agents, seed)
    with Workspace.open(root, agents=team.agents) as workspace:
        missing = rows - workspace.journal.last_seq()
        for first in range(0, missing, _BATCH):
            batch = [team.draft(n) for n in range(first, min(first + _BATCH, missing))]
            workspace.journal.append(batch)
    Workspace.open(root).close()


def main() -> None:
    root, *numbers = sys.argv[1:]
    start = time.perf_counter()
    build(os.path.abspath(root), *map(int, numbers))
    print(f"built in {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main()
