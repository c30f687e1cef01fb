"""Processes that write until they are killed, at a moment that a test chooses."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from crash.writer import DEAD


class Nursery:
    """Starts writers, one at a time, and kills them. They tell each acknowledgement as a line of JSON."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin
        assert process.stdout
        self._orders: IO[str] = process.stdin
        self._lines: IO[str] = process.stdout

    def run_and_kill(self, seed: int, after: int) -> list[Any]:
        """Kill a new writer when it has acknowledged ``after`` operations; returns all that it did."""
        self._orders.write(f"{seed}\n")
        self._orders.flush()
        child = int(self._lines.readline())
        acknowledged: list[Any] = [json.loads(self._lines.readline()) for _ in range(after)]
        os.kill(child, signal.SIGKILL)
        *whole, _torn = iter(self._lines.readline, f"{DEAD}\n")
        return acknowledged + [json.loads(line) for line in whole]


@contextmanager
def nursery(script: str, root: Path, *more: str) -> Iterator[Nursery]:
    """Of writers that ``script`` forks, in the workspace at ``root``, with ``more`` arguments."""
    command = [sys.executable, script, str(root), *more]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield Nursery(process)
    finally:
        process.communicate()
