"""The words of a line that differ from another line: for the few lines in view."""

from __future__ import annotations

import re
from typing import Final

LONGEST: Final = 2000
"""In longer lines words are not compared: the whole line counts as changed."""

_TOKEN: Final = re.compile(r"[^\W\u2e80-\uffef]+|\s+|.", re.DOTALL)
"""A word, a run of spaces, or one other character: of scripts without spaces (CJK), each character."""


def find_changed_words(old: str, new: str) -> list[tuple[int, int]]:
    """Ranges of characters in ``new`` with words that ``old`` does not have, in order, the ends excluded."""
    if old == new:
        return []
    if len(old) > LONGEST or len(new) > LONGEST:
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
