"""Patterns with ``*`` and ``?``, for texts and for paths. Pure.

No pattern is turned into a search that goes back: matching takes at most the length of the text times that of
the pattern, whatever both say.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple

ANY: Final = "\ufdd0"
"""A mark: any text, also none and several words (an unquoted expansion)."""
ONE: Final = "\ufdd1"
"""A mark: any text within one word (a quoted expansion)."""
GLOB: Final = "\ufdd2"
"""A mark: a part of a file's name (``*``, ``~``)."""
OUTPUT: Final = "\ufdd3"
"""A mark: a file from which the output of another command is read (``<(…)``)."""
WORDS: Final = "\ufdd5"
"""A mark: any number of words with a space before each (an unquoted expansion that is a word of its own)."""
MARKS: Final = frozenset((ANY, ONE, GLOB, OUTPUT, WORDS))
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


def could_match_text(pattern: str, text: str) -> bool:
    """Return whether `matches_text` could be true if the marks in ``text`` were replaced by other text.

    `ANY` can be any text. The other marks are text within one word: a space of the pattern before its first
    ``*`` ends a word, so that they cannot be this space. A pattern that begins with ``*`` or ``?`` would
    match whatever has a mark; it is compared with marks only if the first word has one.
    """
    is_open = pattern[:1] in ("*", "?")
    if MARKS.isdisjoint(_FIRST_WORD.match(text)[0] if is_open else text):  # type: ignore[index]
        return matches_text(pattern, text)
    known = _KNOWN_START.match(pattern)
    first = min(text.find(mark) for mark in MARKS if mark in text)
    length = min(first, known.end() if known else 0)
    if pattern[:length] != text[:length]:
        return False
    return _simulate(_automaton(pattern), text)


class _Automaton(NamedTuple):
    """The places of a pattern as bits of an integer: bit n is set after n characters of the pattern match.

    ``taking``: the places whose character takes a given one; the empty string stands for all others.
    ``stars``: the places of ``*``. ``spaces``: the places of spaces before the first ``*``.
    """

    taking: Mapping[str, int]
    stars: int
    spaces: int
    length: int


@lru_cache(_MAX_COMPILED)
def _automaton(pattern: str) -> _Automaton:
    pattern = re.sub(r"\*+", "*", pattern)
    any_one = sum(1 << at for at, each in enumerate(pattern) if each == "?")
    taking = {"": any_one}
    for at, each in enumerate(pattern):
        if each not in "*?":
            taking[each] = taking.get(each, any_one) | 1 << at
    first_star = pattern.find("*")
    words = pattern if first_star < 0 else pattern[:first_star]
    spaces = sum(1 << at for at, each in enumerate(words) if each == " ")
    stars = sum(1 << at for at, each in enumerate(pattern) if each == "*")
    return _Automaton(taking, stars, spaces, len(pattern))


def _simulate(automaton: _Automaton, text: str) -> bool:
    taking, stars, spaces, length = automaton
    everything = (1 << (length + 1)) - 1
    places = 1 | (1 & stars) << 1
    for each in text:
        if each == ANY:
            places = everything & -(places & -places)
        elif each == WORDS:
            behind = (places & taking.get(" ", taking[""])) << 1 | places & stars
            places |= everything & -(behind & -behind)
        elif each in MARKS:
            reached = places
            while (more := reached | (reached & ~spaces) << 1 & everything) != reached:
                reached = more
            places = reached
        else:
            places = (places & taking.get(each, taking[""])) << 1 | places & stars
        places |= (places & stars) << 1
        if not places:
            return False
    return bool(places >> length & 1)


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


_FIRST_WORD: Final = re.compile(f"[^ {WORDS}]*")
_KNOWN_START: Final = re.compile("[^*?]*")


@lru_cache(_MAX_COMPILED)
def _compile(segment: str) -> re.Pattern[str]:
    return re.compile(".".join(re.escape(each) for each in segment.split("?")), re.DOTALL)
