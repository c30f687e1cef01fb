"""Looks for damage in a long journal in a process of its own, so that whoever asks can go on meanwhile.

Threads would share the interpreter: what compares the checkpoints took half as long again beside them. Run
as: ``python -m watchroom.journal.sqlite.integrity_process PATH``. It prints the damages as JSON.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from typing import Final
from urllib.parse import quote

from watchroom.journal.protocol import Damage
from watchroom.journal.sqlite.integrity import problems

MANY_ROWS: Final = 100_000
"""Fewer are looked through sooner than a process begins."""
_BUSY_SECONDS: Final = 60.0
_MAPPED_BYTES: Final = 2**31
"""So much of the file is mapped into memory. Where a page of it cannot be read that ends the process, and
nothing else: who asked looks itself then."""


def find_damage_apart(path: str) -> list[Damage] | None:
    """What is broken in the journal at ``path``, as `problems` finds it, by another process; None where that
    one could not tell, which may have another reason than damage."""
    command = [sys.executable, "-m", __name__, path]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    return [Damage(*each) for each in json.loads(done.stdout)] if done.returncode == 0 else None


def main(arguments: Sequence[str]) -> int:
    """Print what is broken in the journal of which the command line ``arguments`` name the path. Returns the
    exit status."""
    (path,) = arguments

    def connect() -> sqlite3.Connection:
        # As a file that is there: one that is not must not be made.
        uri = f"file:{quote(os.fsencode(os.path.abspath(path)))}?mode=rw"
        connection = sqlite3.connect(
            uri, uri=True, isolation_level=None, timeout=_BUSY_SECONDS, check_same_thread=False
        )
        connection.execute("PRAGMA query_only=1")
        connection.execute(f"PRAGMA mmap_size={_MAPPED_BYTES}")
        return connection

    with closing(connect()) as connection:
        json.dump(problems(connection.cursor(), connect), sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
