"""Which version of a file each of its lines comes from. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from watchroom.merge import LineChange, diff_lines

V = TypeVar("V")


def blame(versions: Sequence[tuple[V, str]]) -> list[V]:
    """For each line of the last text, the version that brought it; ``versions`` are in order, oldest first,
    each with its text. What the first version has comes from it."""
    found: list[V] = []
    before = ""
    for version, text in versions:
        found = update_blame(found, diff_lines(before, text), version)
        before = text
    return found


def update_blame(before: Sequence[V], changed: Sequence[LineChange], version: V) -> list[V]:
    """The blame of ``version``, from ``before``, that of the version before it, and what was ``changed`` in
    between."""
    found: list[V] = []
    done = 0
    for change in changed:
        found.extend(before[done : change.old_start])
        found.extend([version] * (change.new_end - change.new_start))
        done = change.old_end
    found.extend(before[done:])
    return found
