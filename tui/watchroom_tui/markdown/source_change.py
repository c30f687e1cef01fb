"""The change between two versions of a board. Pure."""

from __future__ import annotations

from typing import Final, NamedTuple

_BLOCK: Final = 1 << 16
_CONTEXTS: Final = (2000, 400, 80)
"""Lengths in bytes of the text after a place, used to find the place again after several parts changed at
once."""


class SourceChange(NamedTuple):
    """A difference between two texts: the bytes ``start`` to ``old_end`` were replaced by the bytes ``start``
    to ``new_end``."""

    start: int
    old_end: int
    new_end: int


def find_change(old: bytes, new: bytes) -> SourceChange:
    """Return the smallest range that contains all differences between both texts."""
    head = _same_head(old, new)
    tail = _same_tail(old, new, min(len(old), len(new)) - head)
    return SourceChange(head, len(old) - tail, len(new) - tail)


def move_offset(old: bytes, new: bytes, change: SourceChange, offset: int) -> int:
    """Return the offset in the new text for ``offset`` in the old text, the nearest offset if that part is
    gone."""
    if offset < change.start:
        return offset
    if offset >= change.old_end:
        return offset + change.new_end - change.old_end
    for length in _CONTEXTS:
        found = new.find(old[offset : offset + length], change.start)
        if found >= 0:
            return found
    return min(offset, max(change.start, change.new_end - 1))


def _same_head(old: bytes, new: bytes) -> int:
    max_size = min(len(old), len(new))
    low = 0
    while low < max_size and old[low : low + _BLOCK] == new[low : low + _BLOCK]:
        low += _BLOCK
    low, high = min(low, max_size), min(low + _BLOCK, max_size)
    while low < high:
        middle = (low + high + 1) // 2
        if old[low:middle] == new[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _same_tail(old: bytes, new: bytes, max_size: int) -> int:
    ends = (len(old), len(new))
    low = 0
    while low + _BLOCK <= max_size and _part(old, ends[0], low + _BLOCK, low) == _part(
        new, ends[1], low + _BLOCK, low
    ):
        low += _BLOCK
    high = min(low + _BLOCK, max_size)
    while low < high:
        middle = (low + high + 1) // 2
        if _part(old, ends[0], middle, low) == _part(new, ends[1], middle, low):
            low = middle
        else:
            high = middle - 1
    return low


def _part(text: bytes, end: int, first: int, last: int) -> bytes:
    return text[end - first : end - last]
