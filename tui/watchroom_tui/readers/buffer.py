"""A buffer for people: its text with the marks of a pending choice, and its changes."""

from __future__ import annotations

import re
from typing import NamedTuple

from watchroom.kernel.journal import Journal
from watchroom.model import Row


class PendingChoice(NamedTuple):
    """A choice that an agent must make: the searched text, its replacement, the number of matches, and the
    number of marked matches."""

    old: str
    new: str
    places: int
    marked: int


class BufferSnapshot(NamedTuple):
    """A buffer at a version.

    - ``shown``: ``text`` with the marks of a pending choice.
    - ``marks``: the pattern of the marks.
    """

    row: Row
    text: str
    base: str
    shown: str
    choice: PendingChoice | None = None
    marks: re.Pattern[str] | None = None


def read_buffer(journal: Journal, row: Row) -> BufferSnapshot:
    """Return the buffer at a version. Do not call it in the event loop, because it is slow."""
    # The module imports pydantic, which takes longer than opening the screen of agents.
    from watchroom.features.buffers import reads as buffers

    found = buffers.read_buffer(journal, row)
    if found.pending is None:
        return BufferSnapshot(row, found.text, found.base, found.text)
    # The module is slow to load, and needed only here.
    from watchroom.algorithms.editing.selections import Selections, choose_tag, find_matches, insert_markers

    old, new = found.pending
    places, tag = find_matches(found.text, old), choose_tag(found.text)
    selections = Selections(1, old, new, places.starts, places.count, tag)
    choice = PendingChoice(old, new, places.count, len(places.starts))
    return BufferSnapshot(
        row, found.text, found.base, insert_markers(found.text, selections), choice, _marks_of(tag)
    )


def _marks_of(tag: str) -> re.Pattern[str]:
    """Return the pattern of marked texts with their marks. The pattern matches only the marks of texts with
    several lines."""
    name = re.escape(tag)
    return re.compile(rf"\[\[{name}#(\d+)\]\].*?\[\[/{name}#\1\]\]|\[\[/?{name}#\d+\]\]")
