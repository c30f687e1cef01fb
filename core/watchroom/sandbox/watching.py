"""Counts what the processes of a command use, for machines without control groups to do it.

What is counted is bounded, not prevented: between two looks a command can go beyond, and far beyond where we
are root, whose processes the kernel does not count.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from watchroom.sandbox.limits import ResourceLimits


def beyond(first: int, limits: ResourceLimits) -> bool:
    """Whether the processes beneath ``first``, which is the backend's own, use more than they may."""
    threads = memory = 0
    page = os.sysconf("SC_PAGE_SIZE")
    for pid in _beneath(first):
        try:
            threads += len(os.listdir(f"/proc/{pid}/task"))
            with open(f"/proc/{pid}/statm", encoding="ascii") as file:
                _, resident, shared = map(int, file.read().split()[:3])
        except (FileNotFoundError, ProcessLookupError):
            continue
        memory += (resident - shared) * page
        if threads > limits.processes or memory > limits.memory_bytes:
            return True
    return False


def _beneath(first: int) -> Iterator[int]:
    """All processes beneath ``first``. None gets away: the orphans of a command become its first's."""
    waiting = [first]
    while waiting:
        pid = waiting.pop()
        if pid != first:
            yield pid
        try:
            for task in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as file:
                    waiting.extend(map(int, file.read().split()))
        except (FileNotFoundError, ProcessLookupError):
            continue
