"""What changed between two moments: ``python benchmarks/compare.py [ROWS]``.

For ranges in the midst of a long journal, beside what else says the same: the heads of both moments, and the
histories of the paths that differ.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from contextlib import closing
from random import Random
from statistics import median
from threading import Event

from measure import Measure, scratch, table
from watchroom import Workspace
from watchroom.journal import ChangedPath, Journal, SqliteJournal
from watchroom.model import Draft, Note, Write
from watchroom.projections import keep_missing
from watchroom.queries.comparison import COMPARED
from watchroom.queries.report import read_report

_BATCH = 2_000
_TURNS = 5
_GOALS = {50_000: 23.0, 500_000: 113.0}
"""Ranges, and in how many milliseconds of an idle machine a prototype answered for each."""
_AGENTS = ("alice", "bob", "carol", "dana")
_PATHS = 900


def measure(rows: int = 600_000) -> list[Measure]:
    """With ``rows`` rows, a tenth of them versions of `_PATHS` paths, short ones."""
    with scratch() as folder:
        choose = Random(1)
        with Workspace.open(folder, agents=_AGENTS) as workspace:
            for first in range(0, rows, _BATCH):
                drafts = [_draft(choose, n) for n in range(first, first + _BATCH)]
                workspace.journal.append(drafts)
        with closing(SqliteJournal(os.path.join(folder, ".watchroom", "journal.db"))) as journal:
            keep_missing(journal, Event())
            last = journal.last_seq()
            measures = [
                each for size, goal in _GOALS.items() if size <= rows for each in _range(journal, size, goal)
            ]
            seconds = _timed(lambda: read_report(journal, last - 50_000, last))
            return [*measures, Measure("a report of the newest 50,000 rows", seconds, "s")]


def _draft(choose: Random, number: int) -> Draft:
    agent, path = choose.choice(_AGENTS), f"part{choose.randrange(_PATHS)}.md"
    if number % 10 == 0:
        return Write(agent, "collab_write", "collab", path, f"{number}\n")
    return Note(agent, "collab_read", "collab", path, durable=False)


def _range(journal: Journal, size: int, goal: float) -> list[Measure]:
    after = (journal.last_seq() - size) // 2
    until = after + size
    changed = journal.changed_paths(after, until, zones=COMPARED)
    assert changed == _by_histories(journal, after, until)
    versions = sum(each.versions for each in changed)
    own = _timed(lambda: journal.changed_paths(after, until, zones=COMPARED)) * 1000
    other = _timed(lambda: _by_histories(journal, after, until)) * 1000
    remark = f"{versions:,} versions of {len(changed):,} paths"
    return [
        Measure(f"what changed in {size:,} rows", own, "ms", goal, remark=remark),
        Measure("the same from two moments' heads and histories", other, "ms"),
    ]


def _by_histories(journal: Journal, after: int, until: int) -> list[ChangedPath]:
    """What `Journal.changed_paths` gives, from other questions."""
    found = []
    for zone in sorted(COMPARED):
        before = {head.path: head.version or 0 for head in journal.heads(zone, as_of=after)}
        for head in journal.heads(zone, as_of=until):
            first, last = before.get(head.path, 0) + 1, head.version or 0
            if first <= last:
                rows = journal.history(zone, head.path, after_version=first - 1, limit=last - first + 1)
                counts: dict[str, int] = {}
                for row in rows:
                    counts[row.actor] = counts.get(row.actor, 0) + 1
                found.append(ChangedPath(zone, head.path, first, last, head.seq, tuple(counts.items())))
    return found


def _timed(work: Callable[[], object]) -> float:
    """The median of some turns, in seconds."""
    turns = []
    for _ in range(_TURNS):
        begin = time.perf_counter()
        work()
        turns.append(time.perf_counter() - begin)
    return median(turns)


if __name__ == "__main__":
    print(table(measure(*map(int, sys.argv[1:]))))
