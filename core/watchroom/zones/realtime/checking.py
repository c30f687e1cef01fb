"""Looks at a replica from elsewhere in a process of its own: what a hostile history can do to the engine, it
does there, and not here."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Mapping
from typing import Final

from watchroom.crdt.errors import InvalidState
from watchroom.crdt.remote_state import Known, Writers
from watchroom.model import Json
from watchroom.sandbox import replica_check

_SECONDS: Final = 60
_CPU_SECONDS: Final = 10
"""What is merged here several times is merged by each process that reads the document once."""


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
            [sys.executable, "-m", replica_check.__name__],
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
