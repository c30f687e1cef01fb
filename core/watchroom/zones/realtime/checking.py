"""Looks at a replica from elsewhere in a process of its own: what a hostile history can do to the engine, it
does there, and not here."""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import sys
from collections.abc import Mapping
from typing import Final

from watchroom.crdt.errors import InvalidState
from watchroom.crdt.remote_state import Known, Writers, check_remote
from watchroom.model import Json

_SECONDS: Final = 60
_CPU_SECONDS: Final = 10
"""What is merged here several times is merged by each process that reads the document once."""
_MEMORY: Final = 2 * 1024**3
"""Bytes."""


def check_apart(
    schema: Mapping[str, str], fields: Json, ours: Json, here: Known, writers: Writers, now: int
) -> None:
    """`check_remote` in another process, with bounded time and memory. Raises `InvalidState`."""
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
        done = subprocess.run(
            [sys.executable, "-m", __name__],
            input=json.dumps(job).encode(),
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise InvalidState(rule="state_slow") from error
    if done.returncode == -signal.SIGXCPU:
        raise InvalidState(rule="state_slow")
    if done.returncode != 0:
        raise InvalidState(rule="state_text")
    broken = json.loads(done.stdout)
    if broken:
        raise InvalidState(rule=broken["rule"], field=broken["field"])


def main() -> None:
    job = json.load(sys.stdin)
    _bound_resources(job["seconds"])
    try:
        writers = Writers(frozenset(job["replicas"]), frozenset(job["agents"]), job["merger"])
        check_remote(job["schema"], job["fields"], job["ours"], job["here"], writers, job["now"])
    except InvalidState as error:
        json.dump({"rule": error.values["rule"], "field": error.values["field"]}, sys.stdout)
        return
    json.dump({}, sys.stdout)


def _bound_resources(seconds: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    main()
