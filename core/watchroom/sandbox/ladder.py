"""Which fences this machine offers, best first, each really tried."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from watchroom.errors import WatchroomError
from watchroom.sandbox.bubblewrap import Bubblewrap
from watchroom.sandbox.errors import ProcessesUnbounded
from watchroom.sandbox.fences import Fence
from watchroom.sandbox.groups import Groups
from watchroom.sandbox.landlock import Landlock
from watchroom.sandbox.limits import Limits
from watchroom.sandbox.running import run
from watchroom.sandbox.seatbelt import Seatbelt

_PROBE: Final = Limits(seconds=10.0)
_SOUGHT: Final[tuple[tuple[str, Callable[[Groups], Fence | None]], ...]] = (
    ("bubblewrap", Bubblewrap.found),
    ("landlock", Landlock.found),
    ("sandbox-exec", Seatbelt.found),
)


class Rung(NamedTuple):
    """One kind of fence. ``why`` an installed one does not work is told in the machine's own words."""

    name: str
    installed: bool
    works: bool
    why: str
    fence: Fence | None


class Ladder(NamedTuple):
    """All kinds, best first. ``bounded_as_one``: whether the kernel bounds a command's processes as one."""

    rungs: Sequence[Rung]
    bounded_as_one: bool

    @classmethod
    def probed(cls, groups: Groups | None = None) -> Ladder:
        """Try every fence by running a command behind it, bounded by ``groups`` (default: those that can be
        made here). This takes a moment: keep the answer."""
        groups = Groups.found() if groups is None else groups
        return cls(tuple(_rung(name, found, groups) for name, found in _SOUGHT), bool(groups.places))

    @property
    def best(self) -> Fence | None:
        return next((rung.fence for rung in self.rungs if rung.works), None)


def _rung(name: str, found: Callable[[Groups], Fence | None], groups: Groups) -> Rung:
    try:
        fence = found(groups)
        if fence is None:
            return Rung(name, False, False, "", None)
        if not groups.places and os.getuid() == 0 and sys.platform == "linux":
            raise ProcessesUnbounded
        with tempfile.TemporaryDirectory(prefix="watchroom-") as folder:
            finished = run("true", os.path.realpath(folder), fence=fence, limits=_PROBE)
    except (OSError, WatchroomError) as error:
        return Rung(name, True, False, str(error), None)
    if finished.exit_code:
        return Rung(name, True, False, finished.stderr or str(finished.exit_code), None)
    return Rung(name, True, True, "", fence)
