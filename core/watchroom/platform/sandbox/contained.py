"""Runs a command without a sandbox for a limited time. None of its processes is left afterwards."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from threading import Event
from typing import Final, NamedTuple

from watchroom.platform.child_process import run_child
from watchroom.platform.sandbox import supervisor
from watchroom.platform.sandbox.supervised import is_supported

_MAIN: Final = (
    "import sys; sys.path.append(sys.argv[1]); import supervisor; "
    "sys.exit(supervisor.contain(float(sys.argv[2]), sys.argv[3:]))"
)
_MERGED: Final = 'exec "$@" 2>&1 < /dev/null'
_SPARE_SECONDS: Final = 10.0
"""Seconds that the supervisor has to end the processes of a command after the timeout."""


class ContainedResult(NamedTuple):
    """The result of a command.

    - ``status``: its exit code; the negative number of the signal that ended it; None if it was ended here.
    - ``tail``: the last bytes of its output and errors.
    - ``seconds``: its run time.
    """

    status: int | None
    tail: bytes
    seconds: float


def run_contained(
    command: Sequence[str],
    folder: str,
    *,
    environment: Mapping[str, str],
    timeout: float,
    max_tail: int,
    stopping: Event | None = None,
) -> ContainedResult:
    """Run ``command`` in ``folder`` with all rights of this user.

    On Linux, a supervisor ends all of its processes when it ends, after ``timeout`` seconds, when
    ``stopping`` is set, and when this process ends. On other systems, its process group is ended.

    ``max_tail``: how many bytes of the output are kept. The rest is read and dropped.

    Raise OSError.
    """
    tail = bytearray()

    def keep(piece: bytes) -> None:
        tail.extend(piece)
        del tail[:-max_tail]

    is_supervised = is_supported()
    words: Sequence[str] = ("/bin/sh", "-c", _MERGED, "sh", *command)
    if is_supervised:
        place = os.path.dirname(supervisor.__file__)
        words = (sys.executable, "-I", "-S", "-c", _MAIN, place, str(timeout), *command)
    began = time.monotonic()
    status: int | None = None
    with suppress(TimeoutError):
        done = run_child(
            words,
            timeout=timeout + (_SPARE_SECONDS if is_supervised else 0),
            folder=folder,
            environment=environment,
            keeps_input_open=is_supervised,
            stopping=stopping,
            on_output=keep,
        )
        status = done.status
        if is_supervised:
            reported = done.errors.strip()
            status = int(reported) if reported.lstrip(b"-").isdigit() else None
    return ContainedResult(status, bytes(tail), time.monotonic() - began)
