"""``python forker.py ROOT OUT``: reads numbers, one a line. For each it forks a process that begins the workspace OUT
from ROOT, and ends, as if killed, when it is about to touch the disk for that time; prints ``done`` or ``killed``."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from contextlib import closing
from pathlib import Path

from watchroom import Workspace
from watchroom.kernel.journal import SqliteJournal

_TOUCHING = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "sqlite3.connect")


def begin(root: str, out: str, at: int) -> None:
    touched = 0

    def count(event: str, _: object) -> None:
        nonlocal touched
        if event in _TOUCHING:
            touched += 1
            if touched == at:
                os.kill(os.getpid(), signal.SIGKILL)

    with closing(SqliteJournal(Path(root) / ".watchroom" / "journal.db")) as journal:
        sys.addaudithook(count)
        Workspace.fork(journal, journal.last_seq(), out)
        os._exit(0)


def fork_forkers(root: str, out: str) -> None:
    with tempfile.TemporaryDirectory() as elsewhere, Workspace.open(f"{elsewhere}/a", ["alice"]) as workspace:
        Workspace.fork(workspace.journal, workspace.journal.last_seq(), f"{elsewhere}/b")
    for at in sys.stdin:
        process = os.fork()
        if process == 0:
            begin(root, out, int(at))
        _, status = os.waitpid(process, 0)
        os.write(1, b"done\n" if os.WIFEXITED(status) and not os.WEXITSTATUS(status) else b"killed\n")


if __name__ == "__main__":
    fork_forkers(sys.argv[1], sys.argv[2])
