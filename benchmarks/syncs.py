"""Count a commit's syncs of the disk, with strace: ``python benchmarks/syncs.py``.

SQLite's own checkpoints are recognised by the file: a checkpoint syncs the WAL, then the database. The first
commit after it restarts the WAL, and syncs its header too.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import Counter

from measure import Measure, kilobyte, scratch, table
from watchroom import Workspace

_MARK = "/watchroom-benchmark-commit"
_SYNCS = "fsync,fdatasync,sync,syncfs,sync_file_range,msync"
_SYNC = re.compile(rf"^\d+\s+(?:{_SYNCS.replace(',', '|')})\((?:\d+<([^>]*)>)?")


def measure(commits: int = 1_000) -> list[Measure]:
    """Measure versioned commits and private saves. The first hundreds grow the WAL to its maximum."""
    if not shutil.which("strace"):
        return []
    return [_counted(kind, commits) for kind in ("collab_write", "save_to_my_workspace")]


def _counted(kind: str, commits: int) -> Measure:
    with scratch() as folder:
        log = os.path.join(folder, "strace")
        trace = ["strace", "-f", "-y", "-o", log, "-e", f"trace={_SYNCS},access,faccessat,faccessat2"]
        team = os.path.join(folder, "team")
        subprocess.run([*trace, sys.executable, __file__, "--work", team, kind, str(commits)], check=True)
        with open(log, encoding="utf-8", errors="replace") as lines:
            windows = _windows(lines.read())
    plain, checkpoints, others = _apart(windows)
    syncs = sum(each.total() for each in plain) / len(plain)
    remark = (
        f"{len(plain)} commits, {sum(each.total() == 1 for each in plain)} with exactly one, on the WAL;"
        f" {checkpoints} checkpoints with {others} syncs of their own"
    )
    return Measure(f"syncs per commit ({kind})", syncs, "", 1, "=", remark)


def _windows(log: str) -> list[Counter[str]]:
    """Return for each commit the files that were synced in it, by their extension."""
    windows: list[Counter[str]] = []
    for line in log.splitlines():
        if _MARK in line:
            windows.append(Counter())
        elif windows and (found := _SYNC.match(line)):
            windows[-1][os.path.splitext(found.group(1))[1]] += 1
    return windows[:-1]


def _apart(windows: list[Counter[str]]) -> tuple[list[Counter[str]], int, int]:
    """Return the commits without the syncs of checkpoints, the number of checkpoints, and of their syncs."""
    plain, checkpoints, others = [], 0, 0
    after = False
    for window in windows:
        own = window.copy()
        if window[".db"]:
            checkpoints += 1
            own.subtract({".db": 1, ".db-wal": 1})
        if after:
            own.subtract({".db-wal": 1})
        others += window.total() - own.total()
        after = bool(window[".db"])
        plain.append(+own)
    return plain, checkpoints, others


def _work(folder: str, kind: str, commits: int) -> None:
    with Workspace.open(folder, agents=["alice"]) as workspace:
        tools = workspace.tools("alice")
        for n in range(400 + commits):
            if n >= 400:
                os.access(_MARK, os.F_OK)
            name = {"collab_write": "filepath"}.get(kind, "filename")
            arguments = {name: f"{n % 20}.md", "content": kilobyte(n), "message": "work"}
            if not tools.dispatch_tool_call(kind, arguments)["success"]:
                raise RuntimeError("a commit failed")
        os.access(_MARK, os.F_OK)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        _work(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    else:
        print(table(measure()))
