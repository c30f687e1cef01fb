"""What a search found."""

from __future__ import annotations

from typing import NamedTuple

from watchroom.model import Row


class Hit(NamedTuple):
    """A ``row`` that was found, with an ``excerpt`` of the journal's own text and the places in it that
    match, each from a character up to another. ``line`` is the line of the row's text in which the excerpt's
    first match is, from 1; 0 where what was found has no lines: its message, or what somebody said."""

    row: Row
    excerpt: str
    matches: tuple[tuple[int, int], ...] = ()
    line: int = 0


class SearchResult(NamedTuple):
    """The ``hits`` in the order that was asked for, and how much was searched: rows from ``oldest`` up to
    ``indexed``, where the journal's newest was ``last``. ``has_more``: there are more hits than were asked
    for. ``is_cut_off``: the time was over before all were found."""

    hits: tuple[Hit, ...] = ()
    indexed: int = 0
    last: int = 0
    oldest: int = 1
    has_more: bool = False
    is_cut_off: bool = False

    @property
    def is_behind(self) -> bool:
        """Whether there are rows that were not searched because the index does not have them yet."""
        return self.indexed < self.last
