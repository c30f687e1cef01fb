"""Keeps the missing snapshots of a journal in a process of its own, which ends with the work.

What is unpacked, folded and packed for a snapshot leaves the interpreter holes in its memory that it never
gives back: some 18 MB for the first one, then up to 1 MB for every other. Run as ``python -m
watchroom.projections.snapshot_process``; what it is to do it reads as a line of JSON, and it stops early when
its standard input ends, and so also when whoever began it is killed. It prints up to which row none is
missing.
"""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import closing, suppress
from threading import Event, Thread
from typing import IO, Final, cast

from watchroom.errors import JournalError
from watchroom.journal import Journal, open_journal
from watchroom.journal.snapshots import SNAPSHOT_ROWS
from watchroom.projections.snapshots import CLAIM, keep_missing, newest_snapshot

_LOOK_SECONDS: Final = 0.1
"""So often it is asked whether the process has ended."""
_PATIENCE: Final = 5.0
"""Seconds in which a process that is to stop has stopped."""


def keep_missing_apart(journal: Journal, address: str, stopping: Event, rows: int = SNAPSHOT_ROWS) -> int:
    """Keep the missing snapshots as `keep_missing` does, by another process.

    Args:
        journal: the journal.
        address: where the other process opens that journal, as `open_journal` takes it.
        stopping: once this is set the process is asked to end, and ended where it does not.
        rows: after so many rows each is a snapshot.

    Returns:
        Up to which row none is missing then, 0 where somebody else keeps them.

    Raises:
        JournalError: the process failed; with the last line that it wrote.
    """
    if journal.is_claimed(CLAIM):
        return 0
    newest = newest_snapshot(journal)
    if journal.last_seq() - newest < rows:
        # Of all that have the journal open one begins a process.
        return newest
    return _run(json.dumps({"journal": address, "rows": rows}), stopping)


def _run(asked: str, stopping: Event) -> int:
    # Without the working directory among the places of modules: agents may write there. In a session of its
    # own: what a terminal sends to this process is not for that one.
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", __name__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with process:
        pipe = cast("IO[str]", process.stdin)
        # One that has ended already says why on its standard error.
        with suppress(BrokenPipeError):
            pipe.write(asked + "\n")
            pipe.flush()
        while process.poll() is None and not stopping.wait(_LOOK_SECONDS):
            pass
        try:
            # Its standard input ends here.
            written, said = process.communicate(timeout=_PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            written, said = process.communicate()
    if process.returncode != 0:
        last_line = said.strip().rpartition("\n")[2]
        raise JournalError(reason=f"snapshots: a process ended with status {process.returncode}: {last_line}")
    return int(written)


def main() -> int:
    """Keep the snapshots that the standard input asks for. Returns the exit status."""
    asked = json.loads(sys.stdin.readline())
    stopping = Event()

    def watch_input() -> None:
        sys.stdin.read()
        stopping.set()

    Thread(target=watch_input, daemon=True).start()
    with closing(open_journal(asked["journal"])) as journal:
        print(keep_missing(journal, stopping, asked["rows"]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
