"""Differences of two texts: by lines, and by words within a line.

Lines end only at line feeds, and keep their ends.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

MAX_COMPARED: Final = 2000
"""Maximum characters of a line whose words are compared. A longer line counts as completely changed."""
_TOKEN: Final = re.compile(r"[^\W\u2e80-\uffef]+|\s+|.", re.DOTALL)
"""Matches a word, a run of spaces, or one other character.

In scripts without spaces (CJK), each character is a token.
"""


class LineChange(NamedTuple):
    """The lines ``old_start`` up to ``old_end`` became the lines ``new_start`` up to ``new_end``.

    Lines count from 0, ends are excluded, and either range may be empty.
    """

    old_start: int
    old_end: int
    new_start: int
    new_end: int


def split_lines(text: str) -> list[str]:
    """Return the lines of ``text`` with their line ends, so that the joined lines equal ``text``.

    ``str.splitlines`` also splits at characters that editors and git treat as part of a line.
    """
    *lines, last = text.split("\n")
    whole = [line + "\n" for line in lines]
    return [*whole, last] if last else whole


def unified_diff(old: str, new: str, old_name: str, new_name: str) -> str:
    """Return a unified diff from ``old`` to ``new``; empty if they are equal.

    ``old_name``, ``new_name``: the file names in the header.
    """
    hunks = diff_hunks(old, new)
    return f"--- {old_name}\n+++ {new_name}\n{hunks}" if hunks else ""


def diff_hunks(old: str, new: str) -> str:
    """Return the hunks of a unified diff from ``old`` to ``new``; empty if they are equal."""
    if old == new:
        return ""
    import pygit2

    # The patch points into these buffers, so they must outlive it.
    before, after = old.encode(), new.encode()
    patch = pygit2.Patch.create_from(before, after, flag=pygit2.enums.DiffOption.FORCE_TEXT)
    data: bytes = patch.data
    return data[data.find(b"\n@@ ") + 1 :].decode("utf-8", "replace")


def diff_lines(old: str, new: str) -> list[LineChange]:
    """Return the changes from ``old`` to ``new`` in order, as found by Myers' algorithm (libgit2)."""
    if old == new:
        return []
    import pygit2

    # The patch points into these buffers, so they must outlive it.
    before, after = old.encode(), new.encode()
    patch = pygit2.Patch.create_from(
        before, after, flag=pygit2.enums.DiffOption.FORCE_TEXT, context_lines=0, interhunk_lines=0
    )
    found = []
    for hunk in patch.hunks:
        # If a side has no lines, git returns the line before the change.
        old_start = hunk.old_start - bool(hunk.old_lines)
        new_start = hunk.new_start - bool(hunk.new_lines)
        found.append(LineChange(old_start, old_start + hunk.old_lines, new_start, new_start + hunk.new_lines))
    return found


def find_changed_words(old: str, new: str) -> list[tuple[int, int]]:
    """Return the ranges of ``new`` with words that ``old`` does not have, in order.

    Each is (start, end) in characters, the end excluded.
    """
    if old == new:
        return []
    if len(old) > MAX_COMPARED or len(new) > MAX_COMPARED:
        return [(0, len(new))]
    from rapidfuzz.distance import Levenshtein

    before, after = _TOKEN.findall(old), _TOKEN.findall(new)
    starts = [0]
    for token in after:
        starts.append(starts[-1] + len(token))
    found: list[tuple[int, int]] = []
    for operation in Levenshtein.opcodes(before, after):
        if operation.tag == "equal" or operation.dest_start == operation.dest_end:
            continue
        start, end = starts[operation.dest_start], starts[operation.dest_end]
        if found and found[-1][1] == start:
            found[-1] = (found[-1][0], end)
        else:
            found.append((start, end))
    return found
