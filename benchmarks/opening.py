"""Opening a workspace with a long past, each time in a fresh process: ``python benchmarks/opening.py``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from statistics import median

from big_workspace import build
from measure import Measure, scratch, table

_ROUNDS = 7
_OPEN = """
import json, sys, time
begin = time.perf_counter()
from watchroom import Workspace
imported = time.perf_counter()
with Workspace.open(sys.argv[1], scan=sys.argv[2] == "scan"):
    opened = time.perf_counter()
print(json.dumps([opened - imported, opened - begin]))
"""


def measure(rows: int = 100_000) -> list[Measure]:
    with scratch() as folder:
        big, small = os.path.join(folder, "big"), os.path.join(folder, "small")
        build(small, 1_000)
        start = time.perf_counter()
        build(big, rows)
        built = time.perf_counter() - start
        return [
            Measure(f"building {rows:,} rows and their files", built, "s"),
            *opening(big, small, rows),
        ]


def opening(big: str, small: str, rows: int) -> list[Measure]:
    """With every file compared, as at the start of a run; without; and a small workspace beside them."""
    cases = {"all files compared": (big, "scan"), "no scan": (big, ""), "1,000 rows": (small, "scan")}
    opened: dict[str, list[tuple[float, float]]] = {name: [] for name in cases}
    for _ in range(_ROUNDS):
        for name, (root, scan) in cases.items():
            done = subprocess.run(
                [sys.executable, "-c", _OPEN, root, scan], capture_output=True, check=True, text=True
            )
            alone, with_imports = json.loads(done.stdout)
            opened[name].append((alone, with_imports))
    measures = []
    for name, seconds in opened.items():
        alone, with_imports = (median(column) for column in zip(*seconds, strict=True))
        goal = 0.3 if name == "all files compared" else None
        size = "" if "rows" in name else f"{rows:,} rows, "
        remark = f"with imports {with_imports:.3f} s"
        measures.append(Measure(f"opening: {size}{name}", alone, "s", goal, remark=remark))
    return measures


if __name__ == "__main__":
    print(table(measure()))
