"""The differences between two moments: the changed paths, and the changes in one of them."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from watchroom.algorithms.merge import split_lines
from watchroom.features.overview.reads import UnreadableVersionError
from watchroom.history.comparison import PathDifference, find_versions, read_changed_paths, read_sides
from watchroom.kernel.journal import ChangedPath

from watchroom_tui.context import Dashboard, RangeTarget
from watchroom_tui.formatters.diff_drawing import DiffInput


class PathComparison(NamedTuple):
    """The change of a path. ``diff`` is None if a version is binary or unreadable."""

    difference: PathDifference
    diff: DiffInput | None


async def read_changes(app: Dashboard, target: RangeTarget) -> list[ChangedPath]:
    """Return the paths that differ between the two rows of ``target``. Read the journal in a thread. Raise
    `JournalError`."""
    return await asyncio.to_thread(read_changed_paths, app.journal, target.after, target.until)


async def compare_path(app: Dashboard, changed: ChangedPath) -> PathComparison | None:
    """Return the change of a path, compared in the worker process. None if the journal has lost the newest
    version of the path. Raise `JournalError`."""
    pair = await asyncio.to_thread(find_versions, app.journal, changed)
    if pair is None:
        return None
    try:
        texts = await asyncio.to_thread(read_sides, app.journal, pair)
    except UnreadableVersionError:
        return PathComparison(PathDifference(changed, pair, None, None), None)
    lines = await app.worker_process.changes(texts.old, texts.new)
    added = sum(each.new_end - each.new_start for each in lines)
    removed = sum(each.old_end - each.old_start for each in lines)
    old, new = await asyncio.to_thread(lambda: [split_lines(text) for text in texts])
    return PathComparison(PathDifference(changed, pair, added, removed), DiffInput(old, new, lines))
