"""Planning and doing a revert: ``python benchmarks/reverting.py [VERSIONS] [PATHS]``.

Two agents write in turn on the same paths, each its own half of every file and now and then the other's: half
of all versions are reverted.
"""

from __future__ import annotations

import random
import sys
import time

from measure import Measure, scratch, table
from watchroom import Workspace
from watchroom.model import Draft, Write
from watchroom.rules.reverts import RevertSelection

_BATCH = 2_000
_LINES = 20
_GOAL = 3.5
"""Seconds for 41,000 versions of 808 contested paths, by the prototype that the design was measured with."""


def measure(versions: int = 41_000, paths: int = 808) -> list[Measure]:
    """With so many ``versions`` of so many ``paths``."""
    with scratch() as folder, Workspace.open(folder, agents=["alice", "bob"]) as workspace:
        _fill(workspace, versions, paths)
        selection = RevertSelection(("alice",))
        begin = time.perf_counter()
        plan = workspace.reverts.plan(selection)
        planned = time.perf_counter() - begin
        begin = time.perf_counter()
        record = workspace.reverts.apply("human:ann", selection, pause=False).record
        done = time.perf_counter() - begin
        conflicts = len(plan.of_kind("conflict"))
        name = f"{versions:,} versions of {len(plan.paths):,} paths"
        return [
            Measure(f"planning a revert, {name}", planned, "s", _GOAL, remark=f"{conflicts} conflict"),
            Measure(f"a revert, {name}", done, "s", remark=f"{len(record.written)} written"),
        ]


def _fill(workspace: Workspace, versions: int, paths: int) -> None:
    chance = random.Random(1)
    texts = [[f"line {n}\n" for n in range(_LINES)] for _ in range(paths)]
    drafts: list[Draft] = []
    for number in range(versions):
        at = number % paths
        is_alice = (number // paths) % 2 == 0
        own = range(_LINES // 2) if is_alice else range(_LINES // 2, _LINES)
        line = chance.randrange(_LINES) if chance.random() < 0.1 else chance.choice(own)
        texts[at][line] = f"{number}\n"
        actor = "alice" if is_alice else "bob"
        drafts.append(Write(actor, "collab_write", "collab", f"file{at}.md", "".join(texts[at])))
        if len(drafts) == _BATCH or number == versions - 1:
            workspace.journal.append(drafts)
            drafts.clear()


if __name__ == "__main__":
    print(table(measure(*map(int, sys.argv[1:3]))))
