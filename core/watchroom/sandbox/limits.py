"""How much a command may use, and how its processes are held to it where control groups do not do it."""

from __future__ import annotations

import contextlib
import math
import os
import resource
from collections.abc import Iterator
from typing import Final, NamedTuple

from watchroom.sandbox.supervisor import list_children

_MIB: Final = 1024 * 1024
_SPARE_CPU_SECONDS: Final = 5


class ResourceLimits(NamedTuple):
    """What one command may use, everything that it starts included unless it says otherwise."""

    seconds: float = 60.0
    """Wall-clock time."""
    memory_bytes: int = 1024 * _MIB
    """Memory, with what it writes to its temporary files. Without control groups: of each process."""
    processes: int = 128
    """Processes and threads at any moment."""
    output_bytes: int = _MIB
    """What is kept of each output stream; the rest is read and dropped."""
    tmp_bytes: int = 256 * _MIB
    """Size of its /tmp, and again of its /dev/shm."""
    file_bytes: int = 1024 * _MIB
    """Size of a single file that it writes."""
    open_files: int = 4096
    """Open files of one process."""


def limit_process(pid: int, limits: ResourceLimits, *, in_cgroup: bool, counts_own_processes: bool) -> None:
    """Set the resource limits of a process, which all that it starts inherits. Raises OSError.

    ``pid`` is a command's first process, ``limits`` are those of the whole command. With ``in_cgroup`` a
    control group limits the memory of all its processes together already; without it, the memory that each
    one writes to is limited, not what it only reserves, as many runtimes do. ``counts_own_processes``: the
    kernel counts the command's processes apart from the user's other ones.
    """
    cpu_seconds = (math.ceil(limits.seconds) + _SPARE_CPU_SECONDS) * (os.cpu_count() or 1)
    values = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_CPU: cpu_seconds,
        resource.RLIMIT_FSIZE: limits.file_bytes,
        resource.RLIMIT_NOFILE: limits.open_files,
    }
    if counts_own_processes or not in_cgroup:
        # The kernel does not hold root to this one.
        others = 0 if counts_own_processes else _count_user_threads()
        values[resource.RLIMIT_NPROC] = limits.processes + others
    if not in_cgroup:
        values[resource.RLIMIT_DATA] = limits.memory_bytes
    for kind, wanted in values.items():
        _, hard = resource.prlimit(pid, kind)
        value = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.prlimit(pid, kind, (value, value))


def exceeds_limits(pid: int, limits: ResourceLimits) -> bool:
    """Whether the processes beneath ``pid``, the sandbox's own, use more memory or processes than ``limits``.

    This detects, it does not prevent: between two looks a command can use more, and much more where we are
    root, whose processes the kernel does not count.
    """
    threads = memory = 0
    page = os.sysconf("SC_PAGE_SIZE")
    for each in _descendants(pid):
        try:
            threads += len(os.listdir(f"/proc/{each}/task"))
            with open(f"/proc/{each}/statm", encoding="ascii") as file:
                _, resident, shared = map(int, file.read().split()[:3])
        except (FileNotFoundError, ProcessLookupError):
            continue
        memory += (resident - shared) * page
        if threads > limits.processes or memory > limits.memory_bytes:
            return True
    return False


def _descendants(pid: int) -> Iterator[int]:
    """All processes beneath ``pid``. None gets away: the orphans of a command become children of its first
    process."""
    waiting = list_children(pid)
    while waiting:
        each = waiting.pop()
        yield each
        waiting.extend(list_children(each))


def _count_user_threads() -> int:
    """How many processes and threads our user has now."""
    user = os.getuid()
    count = 0
    for name in os.listdir("/proc"):
        if name.isdecimal():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                if os.stat(f"/proc/{name}").st_uid == user:
                    count += len(os.listdir(f"/proc/{name}/task"))
    return count
