"""A buffer as people look at it: its text, with the places marked among which its agent has to choose, and
what it changes in the text that it is based on."""

from __future__ import annotations

import re
from typing import NamedTuple

from watchroom.kernel.journal import Journal
from watchroom.model import Row


class PendingChoice(NamedTuple):
    """What was looked for, and by what it is to be replaced; in how many places it stands, and how many of
    them are marked."""

    old: str
    new: str
    places: int
    marked: int


class BufferSnapshot(NamedTuple):
    """``shown`` is ``text`` with marks in it, where a choice is open; ``marks`` finds them in a line."""

    row: Row
    text: str
    base: str
    shown: str
    choice: PendingChoice | None = None
    marks: re.Pattern[str] | None = None


def read_buffer(journal: Journal, row: Row) -> BufferSnapshot:
    """The buffer as of one of its versions. Takes a while: not for the event loop."""
    # The zone of buffers loads pydantic, which takes longer than to open the screen of agents.
    from watchroom.features.buffers import reads as buffers

    found = buffers.read_buffer(journal, row)
    if found.pending is None:
        return BufferSnapshot(row, found.text, found.base, found.text)
    # The editor is slow to load, and wanted only here.
    from watchroom.algorithms.editing.selections import Selections, choose_tag, find_matches, insert_markers

    old, new = found.pending
    places, tag = find_matches(found.text, old), choose_tag(found.text)
    selections = Selections(1, old, new, places.starts, places.count, tag)
    choice = PendingChoice(old, new, places.count, len(places.starts))
    return BufferSnapshot(
        row, found.text, found.base, insert_markers(found.text, selections), choice, _marks_of(tag)
    )


def _marks_of(tag: str) -> re.Pattern[str]:
    """What is marked, with its marks; of what goes over several lines, the marks."""
    name = re.escape(tag)
    return re.compile(rf"\[\[{name}#(\d+)\]\].*?\[\[/{name}#\1\]\]|\[\[/?{name}#\d+\]\]")
