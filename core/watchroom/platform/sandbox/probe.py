"""Tests which kinds of sandbox work on this machine."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from watchroom.errors import ProcessesUnbounded, WatchroomError
from watchroom.platform.sandbox.backend import SandboxBackend
from watchroom.platform.sandbox.bubblewrap import BubblewrapBackend
from watchroom.platform.sandbox.landlock import LandlockBackend
from watchroom.platform.sandbox.limits import CgroupFactory, ResourceLimits
from watchroom.platform.sandbox.runner import run_command
from watchroom.platform.sandbox.seatbelt import SeatbeltBackend

_LIMITS: Final = ResourceLimits(seconds=10.0)
_BACKENDS: Final[tuple[tuple[str, Callable[[CgroupFactory], SandboxBackend | None]], ...]] = (
    ("bubblewrap", BubblewrapBackend.detect),
    ("landlock", LandlockBackend.detect),
    ("sandbox-exec", SeatbeltBackend.detect),
)


class ProbeResult(NamedTuple):
    """The result for one kind of sandbox.

    - ``name``: the name of the kind.
    - ``installed``, ``works``: whether it is installed, and whether a test command ran in it.
    - ``reason``: the error of an installed sandbox that does not work.
    - ``backend``: None unless it works.
    """

    name: str
    installed: bool
    works: bool
    reason: str
    backend: SandboxBackend | None


class SandboxProbe(NamedTuple):
    """The results for all kinds of sandbox.

    - ``results``: best kind first.
    - ``limits_processes_together``: whether the kernel limits the processes of a command as one group.
    """

    results: Sequence[ProbeResult]
    limits_processes_together: bool

    @classmethod
    def run(cls, cgroups: CgroupFactory | None = None) -> SandboxProbe:
        """Run a command in each kind of sandbox. This takes about 100 ms, so keep the result.

        ``cgroups``: creates control groups, default: the control groups of this machine.
        """
        cgroups = CgroupFactory.detect() if cgroups is None else cgroups
        results = tuple(_test(name, detect, cgroups) for name, detect in _BACKENDS)
        return cls(results, bool(cgroups.parents))

    @property
    def best(self) -> SandboxBackend | None:
        """The best working backend, None if there is none."""
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
