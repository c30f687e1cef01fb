"""Which backends this machine offers, best first, each really tried."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from watchroom.errors import WatchroomError
from watchroom.sandbox.backend import SandboxBackend
from watchroom.sandbox.bubblewrap import BubblewrapBackend
from watchroom.sandbox.cgroups import CgroupFactory
from watchroom.sandbox.errors import ProcessesUnbounded
from watchroom.sandbox.landlock import LandlockBackend
from watchroom.sandbox.limits import ResourceLimits
from watchroom.sandbox.runner import run
from watchroom.sandbox.seatbelt import SeatbeltBackend

_PROBE: Final = ResourceLimits(seconds=10.0)
_SOUGHT: Final[tuple[tuple[str, Callable[[CgroupFactory], SandboxBackend | None]], ...]] = (
    ("bubblewrap", BubblewrapBackend.detect),
    ("landlock", LandlockBackend.detect),
    ("sandbox-exec", SeatbeltBackend.detect),
)


class ProbeResult(NamedTuple):
    """One kind of backend. ``why`` an installed one does not work is told in the machine's own words."""

    name: str
    installed: bool
    works: bool
    why: str
    backend: SandboxBackend | None


class SandboxProbe(NamedTuple):
    """All kinds of sandbox, best first. ``limits_processes_together``: whether the kernel limits a command's
    processes as one group."""

    results: Sequence[ProbeResult]
    limits_processes_together: bool

    @classmethod
    def run(cls, groups: CgroupFactory | None = None) -> SandboxProbe:
        """Try every backend by running a command behind it, bounded by ``groups`` (default: those that can be
        made here). This takes a moment: keep the answer."""
        groups = CgroupFactory.detect() if groups is None else groups
        return cls(tuple(_rung(name, found, groups) for name, found in _SOUGHT), bool(groups.places))

    @property
    def best(self) -> SandboxBackend | None:
        return next((result.backend for result in self.results if result.works), None)


def _rung(
    name: str, found: Callable[[CgroupFactory], SandboxBackend | None], groups: CgroupFactory
) -> ProbeResult:
    try:
        backend = found(groups)
        if backend is None:
            return ProbeResult(name, False, False, "", None)
        if not groups.places and os.getuid() == 0 and sys.platform == "linux":
            raise ProcessesUnbounded
        with tempfile.TemporaryDirectory(prefix="watchroom-") as folder:
            finished = run("true", os.path.realpath(folder), backend=backend, limits=_PROBE)
    except (OSError, WatchroomError) as error:
        return ProbeResult(name, True, False, str(error), None)
    if finished.exit_code:
        return ProbeResult(name, True, False, finished.stderr or str(finished.exit_code), None)
    return ProbeResult(name, True, True, "", backend)
