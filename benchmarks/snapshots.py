"""Folding a long journal from its first row and from a snapshot: ``python benchmarks/snapshots.py [ROWS]``.

Each in a fresh process: until the model is usable, and the memory that the process has then. And jumps to any
of its rows, as the time line makes them: until the model of that row is there, and what the processor takes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import closing
from threading import Event

from big_workspace import Team
from measure import Measure, scratch, table
from watchroom import Workspace
from watchroom.journal import SqliteJournal
from watchroom.journal.snapshots import SNAPSHOT_ROWS
from watchroom.projections import keep_missing

_BATCH = 2_000
_FOLD = """
import json, sys, time
import psutil
from watchroom.journal import SqliteJournal
from watchroom.journal.snapshots import SNAPSHOT_ROWS
from watchroom.projections import Fold, open_fold
journal = SqliteJournal(sys.argv[1])
begin = time.perf_counter()
fold = open_fold(journal) if sys.argv[2] == "snapshot" else Fold(journal.content, journal.row)
while rows := journal.rows(fold.seq, limit=5000):
    fold.apply(rows)
fold.model()
seconds = time.perf_counter() - begin
print(json.dumps([seconds, psutil.Process().memory_info().rss / 2**20]))
"""

_JUMP = """
import json, random, sys, time
from watchroom.journal import SqliteJournal
from watchroom.journal.snapshots import SNAPSHOT_ROWS
from watchroom.projections import read_model
journal = SqliteJournal(sys.argv[1])
chance, last, taken, worked = random.Random(1), journal.last_seq(), [], []
for _ in range(200):
    until = chance.randrange(1, last + 1)
    begin, begin_work = time.perf_counter(), time.thread_time()
    read_model(journal, until)
    taken.append(time.perf_counter() - begin)
    worked.append(time.thread_time() - begin_work)
print(json.dumps([sorted(taken), sorted(worked)]))
"""


def measure(rows: int = 1_000_000) -> list[Measure]:
    """With ``rows`` rows: from the first row, and half-way between two snapshots."""
    with scratch() as folder:
        path = os.path.join(folder, ".watchroom", "journal.db")
        team = Team(5, 1)
        with Workspace.open(folder, agents=team.agents) as workspace:
            for first in range(0, rows, _BATCH):
                workspace.journal.append([team.draft(n) for n in range(first, first + _BATCH)])
        with closing(SqliteJournal(path)) as journal:
            keep_missing(journal, Event())
            journal.append([team.draft(n) for n in range(rows, rows + SNAPSHOT_ROWS // 2)])
        measures = []
        for begin, goal in (("row 1", None), ("snapshot", 0.5)):
            done = subprocess.run(
                [sys.executable, "-c", _FOLD, path, begin], capture_output=True, check=True, text=True
            )
            seconds, memory = json.loads(done.stdout)
            name = f"folding {rows:,} rows from {'a snapshot' if goal else begin}"
            measures.append(Measure(name, seconds, "s", goal, remark=f"{memory:.0f} MB"))
        return [*measures, measure_jumps(path, rows)]


def measure_jumps(path: str, rows: int) -> Measure:
    """Jumps in the journal at ``path``, which has ``rows`` rows and their snapshots: the 95th percentile."""
    done = subprocess.run([sys.executable, "-c", _JUMP, path], capture_output=True, check=True, text=True)
    taken, worked = ([each * 1000 for each in times] for times in json.loads(done.stdout))
    remark = f"median {taken[100]:.0f}, worst {taken[-1]:.0f}; of the processor p95 {worked[190]:.0f} ms"
    return Measure(f"a jump among {rows:,} rows, p95", taken[190], "ms", 60.0, remark=remark)


if __name__ == "__main__":
    print(table(measure(*map(int, sys.argv[1:]))))
