"""Patterns with ``*`` and ``?``, for texts and for paths. Pure.

No pattern is turned into a search that goes back: matching takes at most the length of the text times that of
the pattern, whatever both say.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_MAX_COMPILED: Final = 256


def matches_text(pattern: str, text: str) -> bool:
    """Whether ``text`` as a whole is as ``pattern`` says: ``*`` stands for any characters, also none and line
    ends, ``?`` for one; all others stand for themselves."""
    first, *others = pattern.split("*")
    if not others:
        return len(text) == len(first) and _find(first, text, 0, len(text)) == 0
    *middle, last = others
    end = len(text) - len(last)
    if len(first) > end or _find(first, text, 0, len(first)) != 0:
        return False
    if _find(last, text, end, len(text)) != end:
        return False
    at = len(first)
    for segment in middle:
        # The first place is as good as any: what follows may stand anywhere after it.
        found = _find(segment, text, at, end)
        if found < 0:
            return False
        at = found + len(segment)
    return True


def matches_path(pattern: str, path: str) -> bool:
    """Whether ``path`` as a whole is as ``pattern`` says, name by name: ``**`` stands for any names, also
    none, and within a name ``*`` and ``?`` stand for characters as in `matches_text`."""
    wanted, names = pattern.split("/"), path.split("/")
    at = name = 0
    last_any, resumed = -1, 0
    while name < len(names):
        if at < len(wanted) and wanted[at] == "**":
            last_any, resumed = at, name
            at += 1
        elif at < len(wanted) and _matches_name(wanted[at], names[name]):
            at += 1
            name += 1
        elif last_any >= 0:
            # The names that ** stands for become one more.
            resumed += 1
            at, name = last_any + 1, resumed
        else:
            return False
    return all(each == "**" for each in wanted[at:])


def _matches_name(pattern: str, name: str) -> bool:
    if "*" not in pattern and "?" not in pattern:
        return pattern == name
    # What stands before the first slash of an absolute path is no name.
    return bool(name) and matches_text(pattern, name)


def _find(segment: str, text: str, start: int, end: int) -> int:
    """Where ``segment``, which has no ``*``, stands first in ``text[start:end]``; -1 where it does not."""
    if "?" not in segment:
        return text.find(segment, start, end)
    found = _compile(segment).search(text, start, end)
    return found.start() if found else -1


@lru_cache(_MAX_COMPILED)
def _compile(segment: str) -> re.Pattern[str]:
    return re.compile(".".join(re.escape(each) for each in segment.split("?")), re.DOTALL)
