"""Texts as lines, and which lines differ. Lines end at line feeds only and keep their ends."""

from __future__ import annotations

from typing import NamedTuple


class LineChange(NamedTuple):
    """The lines ``old_start`` up to ``old_end`` of one text are the lines ``new_start`` up to ``new_end`` of
    another.

    Counted from 0, the ends excluded; either side may be empty."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


def split_lines(text: str) -> list[str]:
    """The lines of ``text`` with their ends; joined they are the text again.

    Not ``str.splitlines``, which also splits at characters that are part of a line for everyone else.
    """
    *lines, last = text.split("\n")
    whole = [line + "\n" for line in lines]
    return [*whole, last] if last else whole


def unified_diff(old: str, new: str, old_name: str, new_name: str) -> str:
    """The changes from ``old`` to ``new`` in unified form, empty where there are none. ``old_name`` and
    ``new_name`` stand in the header."""
    hunks = diff_hunks(old, new)
    return f"--- {old_name}\n+++ {new_name}\n{hunks}" if hunks else ""


def diff_hunks(old: str, new: str) -> str:
    """The hunks of a unified diff from ``old`` to ``new``, empty where both are the same."""
    if old == new:
        return ""
    import pygit2

    # The patch points into these two, so they have to outlive it.
    before, after = old.encode(), new.encode()
    patch = pygit2.Patch.create_from(before, after, flag=pygit2.enums.DiffOption.FORCE_TEXT)
    data: bytes = patch.data
    return data[data.find(b"\n@@ ") + 1 :].decode("utf-8", "replace")


def diff_lines(old: str, new: str) -> list[LineChange]:
    """The changes from ``old`` to ``new`` in order, with as few lines as Myers' algorithm finds (libgit2)."""
    if old == new:
        return []
    import pygit2

    # The patch points into these two, so they have to outlive it.
    before, after = old.encode(), new.encode()
    patch = pygit2.Patch.create_from(
        before, after, flag=pygit2.enums.DiffOption.FORCE_TEXT, context_lines=0, interhunk_lines=0
    )
    found = []
    for hunk in patch.hunks:
        # Where a side has no lines, git names the line before the place.
        old_start = hunk.old_start - bool(hunk.old_lines)
        new_start = hunk.new_start - bool(hunk.new_lines)
        found.append(LineChange(old_start, old_start + hunk.old_lines, new_start, new_start + hunk.new_lines))
    return found
