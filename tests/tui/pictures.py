"""Pictures of screens: ``pytest tests/tui --snapshot-update`` updates the stored ones."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

import pytest
from _pytest.mark import ParameterSet
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode
from tui.driver import MIDDLE, NARROW, WIDE, User

Sizes = Sequence[tuple[int, int]]
ALL: Final[Sizes] = (NARROW, MIDDLE, WIDE)
SIZES = [pytest.param(size, id=f"{size[0]}x{size[1]}") for size in ALL]


def pictured(screens: Mapping[str, Sizes]) -> list[ParameterSet]:
    """Return screens and sizes as parameters, without sizes that show the same panes."""
    return [
        pytest.param(screen, size, id=f"{screen}-{size[0]}x{size[1]}")
        for screen, sizes in screens.items()
        for size in sizes
    ]


STEADY = 5
"""Number of checks without a new frame after which the screen counts as still."""


class Picture(SingleFileSnapshotExtension):
    """One SVG file per picture."""

    _write_mode = WriteMode.TEXT
    file_extension = "svg"


async def at_rest(user: User) -> str:
    """Return the still screen as SVG, without parts that differ between runs.

    It waits until nothing works for the screen and it has not changed for a while, because scrollbars appear
    after their lists.
    """
    at, since = -1, 0

    def is_steady() -> bool:
        nonlocal at, since
        is_idle = all(worker.is_finished for worker in user.app.workers)
        since = since + 1 if is_idle and user.frames == at else 0
        at = user.frames
        return since >= STEADY

    await user.pilot.wait_for_scheduled_animations()
    await user.until(is_steady, "a screen that stays as it is")
    picture = user.app.export_screenshot(title="watchroom")
    # The number is derived from the content, and may differ between versions of rich.
    return re.sub(r"terminal-\d+", "terminal", picture)
