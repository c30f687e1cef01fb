"""Exporting a long journal as a git repository: ``python benchmarks/git_exporting.py [VERSIONS]``.

Five agents write versions of 900 paths of some kilobytes, a line of them each time: all at once, then a tenth
more.
"""

from __future__ import annotations

import os
import random
import sys
import time
from contextlib import closing
from typing import Final

from measure import Measure, scratch, table
from watchroom.git import export_history
from watchroom.journal import SqliteJournal
from watchroom.model import Write

_PATHS: Final = 900
_LINES: Final = 40
_BATCH: Final = 1_000
_AGENTS: Final = ("alice", "bob", "carol", "dave", "eve")


def measure(versions: int = 100_000) -> list[Measure]:
    """Of ``versions`` versions in all: µs a version, and seconds for the newest tenth of them."""
    more = versions // 10
    with scratch() as folder, closing(SqliteJournal(os.path.join(folder, "journal.db"))) as journal:
        written = _written(versions)
        for first in range(0, versions, _BATCH):
            journal.append(written[first : first + _BATCH])
        repository = os.path.join(folder, "team.git")
        begin = time.perf_counter()
        export_history(journal, repository, until=journal.last_seq() - more)
        whole = time.perf_counter() - begin
        begin = time.perf_counter()
        done = export_history(journal, repository)
        rest = time.perf_counter() - begin
    each = whole / (versions - more) * 1e6
    return [
        Measure(f"git: exporting {versions - more:,} versions, each", each, "µs", 218),
        Measure(f"git: exporting {done.versions:,} more", rest, "s", 2),
    ]


def _written(versions: int) -> list[Write]:
    chance = random.Random(1)
    texts = [[f"line {line} of the file {path}\n" for line in range(_LINES)] for path in range(_PATHS)]
    drafts = []
    for number in range(versions):
        path = chance.randrange(_PATHS)
        texts[path][chance.randrange(_LINES)] = f"what was written as number {number}\n"
        name = f"folder-{path % 30}/file-{path}.md"
        agent = chance.choice(_AGENTS)
        drafts.append(Write(agent, "collab_write", "collab", name, "".join(texts[path]), f"change {number}"))
    return drafts


if __name__ == "__main__":
    print(table(measure(*map(int, sys.argv[1:]))))
