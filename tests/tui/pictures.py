"""Pictures of screens: ``pytest tests/tui --snapshot-update`` renews those that are kept."""

from __future__ import annotations

import re

import pytest
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode
from textual.strip import Strip
from tui.driving import MIDDLE, NARROW, WIDE, Desk

SIZES = [pytest.param(size, id=f"{size[0]}x{size[1]}") for size in (NARROW, MIDDLE, WIDE)]

STEADY = 5
"""So many pictures in a row are the same when the screen is at rest."""


class Picture(SingleFileSnapshotExtension):
    """One SVG file for each picture."""

    _write_mode = WriteMode.TEXT
    file_extension = "svg"


async def at_rest(desk: Desk) -> str:
    """The screen as SVG, once nothing is at work for it and it has stayed the same for a while: scrollbars
    come a moment after their lists.

    Without what differs from run to run.
    """
    drawn: list[list[Strip]] = []

    def is_steady() -> bool:
        if any(not worker.is_finished for worker in desk.app.workers):
            drawn.clear()
            return False
        # Much quicker than to make a picture each time.
        screen = desk.app.screen
        drawn.append([*screen._compositor.render_strips(screen.size)])
        return len(drawn) >= STEADY and all(each == drawn[-1] for each in drawn[-STEADY:])

    await desk.pilot.wait_for_scheduled_animations()
    await desk.until(is_steady, "a screen that stays as it is")
    picture = desk.app.export_screenshot(title="watchroom")
    # The number stands for the content and may differ between versions of rich.
    return re.sub(r"terminal-\d+", "terminal", picture)
