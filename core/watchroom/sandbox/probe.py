"""Which sandboxes work on this machine, best first: each one is tested."""

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
from watchroom.sandbox.runner import run_command
from watchroom.sandbox.seatbelt import SeatbeltBackend

_LIMITS: Final = ResourceLimits(seconds=10.0)
_BACKENDS: Final[tuple[tuple[str, Callable[[CgroupFactory], SandboxBackend | None]], ...]] = (
    ("bubblewrap", BubblewrapBackend.detect),
    ("landlock", LandlockBackend.detect),
    ("sandbox-exec", SeatbeltBackend.detect),
)


class ProbeResult(NamedTuple):
    """What was found out about one kind of sandbox. ``reason`` says why an installed one does not work, in
    the machine's own words; ``backend`` is None unless it works."""

    name: str
    installed: bool
    works: bool
    reason: str
    backend: SandboxBackend | None


class SandboxProbe(NamedTuple):
    """The ``results`` for all kinds of sandbox, best first. ``limits_processes_together``: whether the kernel
    limits a command's processes as one group."""

    results: Sequence[ProbeResult]
    limits_processes_together: bool

    @classmethod
    def run(cls, cgroups: CgroupFactory | None = None) -> SandboxProbe:
        """Test every kind by running a command in it, with control groups of ``cgroups`` (default: those that
        this machine allows). This takes a moment: keep the answer."""
        cgroups = CgroupFactory.detect() if cgroups is None else cgroups
        results = tuple(_test(name, detect, cgroups) for name, detect in _BACKENDS)
        return cls(results, bool(cgroups.parents))

    @property
    def best(self) -> SandboxBackend | None:
        """The best backend that works, None where none does."""
        return next((result.backend for result in self.results if result.works), None)


def _test(
    name: str, detect: Callable[[CgroupFactory], SandboxBackend | None], cgroups: CgroupFactory
) -> ProbeResult:
    try:
        backend = detect(cgroups)
        if backend is None:
            return ProbeResult(name, False, False, "", None)
        if not cgroups.parents and os.getuid() == 0 and sys.platform == "linux":
            raise ProcessesUnbounded
        with tempfile.TemporaryDirectory(prefix="watchroom-") as folder:
            result = run_command("true", os.path.realpath(folder), backend=backend, limits=_LIMITS)
    except (OSError, WatchroomError) as error:
        return ProbeResult(name, True, False, str(error), None)
    if result.exit_code:
        return ProbeResult(name, True, False, result.stderr or str(result.exit_code), None)
    return ProbeResult(name, True, True, "", backend)
