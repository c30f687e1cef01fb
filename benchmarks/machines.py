"""The delay of a commit on another machine's screen, and opening a long journal, on a server beside SQLite,
in one run: ``python benchmarks/machines.py [ROWS]``.

The server runs on this machine, so its figures contain no network latency.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from itertools import islice
from statistics import median
from typing import Final

from big_workspace import Team
from journals import FILE, SERVER, has_server, server_addresses
from measure import Measure, kilobyte, percentile, scratch, table
from watchroom import Workspace
from watchroom.features.overview.snapshots import keep_snapshot, open_fold
from watchroom.kernel.journal import Journal, open_journal
from watchroom.kernel.journal.side_stores import SNAPSHOT_ROWS
from watchroom.model import Write

_COMMITS: Final = 120
_BATCH: Final = 2_000
_OPENINGS: Final = 5
_SCREEN: Final = """
import sys, time
from watchroom.kernel.journal import open_journal
from watchroom_tui.services.feed import Feed

def show(model, share):
    print(model.seq, time.monotonic(), flush=True)

feed = Feed(open_journal(sys.argv[1]), show)
feed.start()
sys.stdin.read()
feed.stop()
"""
_OPEN: Final = """
import sys, time
from watchroom.kernel.journal import open_journal
from watchroom.features.overview import open_fold
begin = time.perf_counter()
journal = open_journal(sys.argv[1])
fold = open_fold(journal)
while rows := journal.rows(fold.seq, limit=5000):
    fold.apply(rows)
fold.model()
print(time.perf_counter() - begin)
journal.close()
"""


def measure(rows: int = 1_000_000) -> list[Measure]:
    """Measure the delay from a commit to another process's screen, and opening at ``rows`` rows. Empty
    without a server's program."""
    if not has_server():
        return []
    with scratch() as folder, server_addresses() as address:
        places = {SERVER: address("machines"), FILE: os.path.join(folder, "team", ".watchroom", "journal.db")}
        with Workspace.open(os.path.join(folder, "team"), ["alice"]):
            pass
        return [*_shown(places), *_opened(places, rows)]


def _shown(places: Mapping[str, str]) -> Iterator[Measure]:
    """Measure the time from the end of an append to the model that a dashboard in another process gets."""
    lags = {}
    for name, where in places.items():
        with closing(open_journal(where)) as journal:
            lags[name] = _lags(journal, where)
    for name, lag in lags.items():
        remark = f"p50 {percentile(lag, 50):.2g} ms, most {max(lag):.3g} ms; without drawing it"
        what = f"commit → another machine's screen, {name}, p95"
        yield Measure(what, percentile(lag, 95), "ms", None, "≤", remark)
    ratio = percentile(lags[SERVER], 95) / max(percentile(lags[FILE], 95), 0.1)
    remark = "less than 0.1 ms counts as that"
    yield Measure(f"the same, p95, {SERVER} ÷ {FILE}", ratio, "×", None, "≤", remark)


def _lags(journal: Journal, where: str) -> list[float]:
    """Return the delays of commits at irregular times, in milliseconds."""
    chance, committed = random.Random(1), {}
    command = [sys.executable, "-c", _SCREEN, where]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as screen:
        assert screen.stdin is not None
        assert screen.stdout is not None
        screen.stdout.readline()
        # A listener on a server is ready once it has received its own message.
        time.sleep(1.5)
        for n in range(_COMMITS):
            ((row, _),) = journal.append([Write("alice", "t", "collab", f"shown/{n % 7}", kilobyte(n))])
            committed[row.seq] = time.monotonic()
            time.sleep(0.1 + chance.random() * 0.15)
        time.sleep(1.0)
        screen.stdin.close()
        shown = [(int(seq), float(at)) for seq, at in map(str.split, screen.stdout)]
    return [
        max(0.0, next(at for seen, at in shown if seen >= seq) - at_commit) * 1e3
        for seq, at_commit in committed.items()
    ]


def _opened(places: Mapping[str, str], rows: int) -> Iterator[Measure]:
    """Measure opening each journal in turn, in fresh processes, half-way between two snapshots."""
    for where in places.values():
        with closing(open_journal(where)) as journal:
            _fill(journal, rows)
    seconds: dict[str, list[float]] = {name: [] for name in places}
    for _ in range(_OPENINGS):
        for name, where in places.items():
            done = subprocess.run(
                [sys.executable, "-c", _OPEN, where], capture_output=True, check=True, text=True
            )
            seconds[name].append(json.loads(done.stdout))
    for name, times in seconds.items():
        what = f"opening a journal of {rows:,} rows, {name}"
        yield Measure(what, median(times), "s", 0.5, "≤", f"most {max(times):.2g} s; without imports")
    ratio = median(seconds[SERVER]) / median(seconds[FILE])
    yield Measure(f"the same, {SERVER} ÷ {FILE}, time", ratio, "×")


def _fill(journal: Journal, rows: int) -> None:
    """Append ``rows`` rows, keep a snapshot, and append half the rows until the next one."""
    team = Team(5, 1)
    drafts = map(team.draft, range(rows + SNAPSHOT_ROWS // 2))
    for _ in range(rows // _BATCH):
        journal.append(list(islice(drafts, _BATCH)))
    fold = open_fold(journal)
    while found := journal.rows(fold.seq, limit=5000):
        fold.apply(found)
    keep_snapshot(journal, fold)
    journal.append(list(drafts))


if __name__ == "__main__":
    print(table(measure(*map(int, sys.argv[1:]))))
