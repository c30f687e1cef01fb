"""Comparisons of two versions of a file or board."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from watchroom.algorithms.merge import split_lines
from watchroom.features.overview.reads import VersionPair, find_pair, read_pair_texts
from watchroom.model import Row

from watchroom_tui.context import Dashboard
from watchroom_tui.formatters.diff_drawing import DiffInput


class Comparison(NamedTuple):
    """Two versions, and the changes from one to the other."""

    pair: VersionPair
    diff: DiffInput


async def compare_versions(app: Dashboard, row: Row, other: Row | None = None) -> Comparison:
    """Compare ``row`` with ``other``, or with the base of ``row`` if ``other`` is None. Read the journal in a
    thread. Raise `UnreadableVersionError` and `JournalError`."""
    pair = await asyncio.to_thread(find_pair, app.journal, row, other)
    return Comparison(pair, await compare_pair(app, pair))


async def compare_pair(app: Dashboard, pair: VersionPair) -> DiffInput:
    """Return the changes within ``pair``, from the worker process. Raise `UnreadableVersionError`."""
    texts = await asyncio.to_thread(read_pair_texts, app.journal, pair)
    changed = await app.worker_process.changes(texts.old, texts.new)
    old, new = await asyncio.to_thread(lambda: [split_lines(text) for text in texts])
    return DiffInput(old, new, changed)
