"""Pictures of screens: ``pytest tests/tui --snapshot-update`` renews those that are kept."""

from __future__ import annotations

import re

import pytest
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode
from tui.driving import MIDDLE, NARROW, WIDE, Desk

SIZES = [pytest.param(size, id=f"{size[0]}x{size[1]}") for size in (NARROW, MIDDLE, WIDE)]

STEADY = 5
"""So many pictures in a row are the same when the screen is at rest."""


class Picture(SingleFileSnapshotExtension):
    """One SVG file for each picture."""

    _write_mode = WriteMode.TEXT
    file_extension = "svg"


async def at_rest(desk: Desk) -> str:
    """The screen as SVG, once it has stayed the same for a while: scrollbars come a moment after their lists.

    Without what differs from run to run.
    """
    pictures: list[str] = []

    def is_steady() -> bool:
        pictures.append(desk.app.export_screenshot(title="watchroom"))
        return len(pictures) >= STEADY and len(set(pictures[-STEADY:])) == 1

    await desk.pilot.wait_for_scheduled_animations()
    await desk.until(is_steady, "a screen that stays as it is")
    # The number stands for the content and may differ between versions of rich.
    return re.sub(r"terminal-\d+", "terminal", pictures[-1])
