"""How much a command may use."""

from __future__ import annotations

from typing import Final, NamedTuple

_MIB: Final = 1024 * 1024


class ResourceLimits(NamedTuple):
    """What one command may use, everything that it starts included unless it says otherwise."""

    seconds: float = 60.0
    """How long it may run, on the clock."""
    memory_bytes: int = 1024 * _MIB
    """Memory, with what it writes to its temporary files. Without control groups: of each process."""
    processes: int = 128
    """Processes and threads at any moment."""
    output_bytes: int = _MIB
    """What is kept of each of its two streams; the rest is read and let go."""
    tmp_bytes: int = 256 * _MIB
    """What fits into its /tmp, and as much again into its /dev/shm."""
    file_bytes: int = 1024 * _MIB
    """How long a single file may become that it writes."""
    open_files: int = 4096
    """Files that one process may hold open."""
