"""What holds each single process of a command, where control groups hold all of them together."""

from __future__ import annotations

import contextlib
import math
import os
import sys
from typing import Final

from watchroom.sandbox.limits import ResourceLimits

if sys.platform == "linux":
    import resource

_SPARE_SECONDS: Final = 5


def bound(pid: int, limits: ResourceLimits, *, together: bool, counts_own_processes: bool = True) -> None:
    """Bound process ``pid`` and all that it will start. ``together``: a group bounds their memory already,
    and as one; without it, what each writes to counts, not what it only reserves, as many runtimes do.
    ``counts_own_processes``: their number is not counted with the user's other processes."""
    seconds = (math.ceil(limits.seconds) + _SPARE_SECONDS) * (os.cpu_count() or 1)
    bounds = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_CPU: seconds,
        resource.RLIMIT_FSIZE: limits.file_bytes,
        resource.RLIMIT_NOFILE: limits.open_files,
    }
    if counts_own_processes or not together:
        # The kernel does not hold root to this one.
        bounds[resource.RLIMIT_NPROC] = limits.processes + (0 if counts_own_processes else _of_this_user())
    if not together:
        bounds[resource.RLIMIT_DATA] = limits.memory_bytes
    for what, most in bounds.items():
        _, hard = resource.prlimit(pid, what)
        value = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.prlimit(pid, what, (value, value))


def _of_this_user() -> int:
    """How many processes and threads its user has now."""
    user = os.getuid()
    count = 0
    for name in os.listdir("/proc"):
        if name.isdecimal():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                if os.stat(f"/proc/{name}").st_uid == user:
                    count += len(os.listdir(f"/proc/{name}/task"))
    return count
