"""The pieces in which texts are searched: the lines that a version added."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from watchroom.merge.line_diff import diff_lines, split_lines


class Passage(NamedTuple):
    """A piece of text that a row says; ``line`` is that of the row's text in which it begins (from 1), 0
    where it is no part of a text with lines: the message of a row, or what somebody said."""

    text: str
    line: int = 0


def added_passages(before: str, after: str) -> Iterator[Passage]:
    """The lines of ``after`` that are not those of ``before``, neighbours together."""
    if not before:
        yield from [Passage(after, 1)] if after else ()
        return
    old, new = split_lines(before), split_lines(after)
    start, shortest = 0, min(len(old), len(new))
    while start < shortest and old[start] == new[start]:
        start += 1
    end = 0
    while end < shortest - start and old[-1 - end] == new[-1 - end]:
        end += 1
    left, right = old[start : len(old) - end], new[start : len(new) - end]
    if not left or {*left}.isdisjoint(right):
        # Most versions only add, or rewrite: no difference needs to be made.
        yield from [Passage("".join(right), start + 1)] if right else ()
        return
    for change in diff_lines("".join(left), "".join(right)) if right else ():
        if change.new_end > change.new_start:
            yield Passage("".join(right[change.new_start : change.new_end]), start + change.new_start + 1)
