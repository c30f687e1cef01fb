"""The process in which a replica from elsewhere is looked at: a job on standard input, what is broken on
standard output.

Apart from `zones.realtime.checking`, so that the process starts without the journal and the zones.
"""

from __future__ import annotations

import json
import resource
import sys
from typing import Final

from watchroom.crdt.errors import InvalidState
from watchroom.crdt.remote_state import Writers, check_remote

_MEMORY: Final = 2 * 1024**3
"""Bytes."""


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
