"""The process of a session's client, as recorded in rows, and whether it is still running."""

from __future__ import annotations

import os
from collections.abc import Mapping
from platform import node
from typing import Final, NamedTuple

from watchroom.kernel.rules.details import get_float, get_int, get_text
from watchroom.model import Json
from watchroom.platform import Platform

PID: Final = "pid"
STARTED: Final = "started"
MACHINE: Final = "machine"
BOOT: Final = "boot"
NAMESPACE: Final = "namespace"
"""Fields in the detail of rows about a client's process."""


class RecordedProcess(NamedTuple):
    """A process by its id and start time.

    - ``machine``, ``boot``, ``namespace``: the place where it runs, empty if unknown
    """

    pid: int
    started: float
    machine: str
    boot: str
    namespace: str

    def is_elsewhere(self, platform: Platform) -> bool:
        """Return whether it runs, or ran, on another machine or in another process namespace.

        Rows of earlier versions do not record this; their processes count as local.
        """
        if not self.boot:
            return False
        namespace = platform.process_scope(os.getpid()).namespace
        return self.machine != node() or (
            self.namespace != namespace and not platform.has_restarted(self.boot)
        )

    def has_ended(self, platform: Platform) -> bool | None:
        """Return whether it has ended. None if that is not visible from this process."""
        is_visible = self.boot and self.started > 0 and platform.process_start(os.getpid()) > 0
        if not is_visible or self.is_elsewhere(platform):
            return None
        # The system reuses process ids, and the start time counts from the start of the machine.
        return platform.has_restarted(self.boot) or not platform.is_running(self.pid, self.started)


def read_process(detail: Mapping[str, Json]) -> RecordedProcess | None:
    """Return the process in the ``detail`` of a row, None if the row does not record a process."""
    pid = get_int(detail, PID)
    if pid is None or STARTED not in detail:
        return None
    place = (get_text(detail, name) for name in (MACHINE, BOOT, NAMESPACE))
    return RecordedProcess(pid, get_float(detail, STARTED), *place)
