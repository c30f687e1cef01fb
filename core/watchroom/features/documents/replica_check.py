"""Checks a replica from another machine in a child process.

A hostile history can make the engine use much time and memory. The child has limits for both. It starts
without importing the journal.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from collections.abc import Mapping
from typing import Final

from watchroom.algorithms.crdt.remote_state import Known, Writers, check_remote
from watchroom.errors import InvalidState
from watchroom.model import Json
from watchroom.platform.child_process import run_module, watch_parent

_TIMEOUT: Final = 60
"""Seconds until the child is killed."""
_CPU_SECONDS: Final = 10
"""CPU time limit of the child in seconds. The child merges the state several times, while a reader of the
document merges it once."""
_MAX_MEMORY: Final = 2 * 1024**3
"""Limit of the child's address space in bytes."""


def check_in_child(
    schema: Mapping[str, str], fields: Json, ours: Json, here: Known, writers: Writers, now: int
) -> None:
    """Call `check_remote` in a child process. Raise `InvalidState`, also if a limit is exceeded."""
    job = {
        "schema": dict(schema),
        "fields": fields,
        "ours": ours,
        "here": here,
        "replicas": [*writers.replicas],
        "agents": [*writers.agents],
        "merger": writers.merger,
        "now": now,
        "seconds": _CPU_SECONDS,
    }
    try:
        done = run_module(__name__, job=json.dumps(job).encode(), timeout=_TIMEOUT)
    except TimeoutError as error:
        raise InvalidState(rule="state_slow") from error
    if done.status == -signal.SIGXCPU:
        raise InvalidState(rule="state_slow")
    if done.status != 0:
        raise InvalidState(rule="state_text")
    broken = json.loads(done.output)
    if broken:
        raise InvalidState(rule=broken["rule"], field=broken["field"])


def main() -> None:
    """Check the replica given as the job. Print the broken rule and its field, or nothing if the replica is
    valid."""
    job = json.loads(watch_parent(lambda: os._exit(1)))
    _limit_resources(job["seconds"])
    try:
        writers = Writers(frozenset(job["replicas"]), frozenset(job["agents"]), job["merger"])
        check_remote(job["schema"], job["fields"], job["ours"], job["here"], writers, job["now"])
    except InvalidState as error:
        json.dump({"rule": error.values["rule"], "field": error.values["field"]}, sys.stdout)
        return
    json.dump({}, sys.stdout)


def _limit_resources(seconds: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MAX_MEMORY, _MAX_MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    main()
