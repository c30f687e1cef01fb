"""Patterns with ``*`` and ``?``, for texts and for paths. Pure.

Matching does not backtrack. Its time is at most proportional to the length of the text times the length of
the pattern.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple

ANY: Final = "\ufdd0"
"""A mark for any text: none, one word, or several words (an unquoted expansion)."""
ONE: Final = "\ufdd1"
"""A mark for any text within one word (a quoted expansion)."""
GLOB: Final = "\ufdd2"
"""A mark for a part of a file name (``*``, ``~``)."""
OUTPUT: Final = "\ufdd3"
"""A mark for a file that contains the output of another command (``<(…)``)."""
WORDS: Final = "\ufdd5"
"""A mark for any number of words, each after a space (an unquoted expansion as a separate word)."""
MARKS: Final = frozenset((ANY, ONE, GLOB, OUTPUT, WORDS))
_MARK: Final = re.compile(f"[{''.join(sorted(MARKS))}]")
_FIRST_WORD_END: Final = re.compile(f"[ {WORDS}]")
_WILDCARD: Final = re.compile("[*?]")
_MAX_COMPILED: Final = 2048
"""Maximum number of compiled patterns that are kept. No policy has more patterns of one kind."""


def matches_text(pattern: str, text: str) -> bool:
    """Return whether ``pattern`` matches the whole ``text``.

    ``*`` matches any number of characters, including line ends. ``?`` matches one character.
    """
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
        # The first occurrence is enough, because a star follows and matches any rest.
        found = _find(segment, text, at, end)
        if found < 0:
            return False
        at = found + len(segment)
    return True


def could_match_text(pattern: str, text: str) -> bool:
    """Return whether `matches_text` could be true if the marks in ``text`` were replaced by other text.

    `ANY` can become any text. The other marks stay within one word: they cannot become a space that the
    pattern has before its first ``*``. A pattern that begins with ``*`` or ``?`` would match any text with a
    mark. For such patterns, marks count only if the first word has a mark.
    """
    found = _MARK.search(text)
    if found is None:
        return matches_text(pattern, text)
    mark = found.start()
    if pattern[:1] in ("*", "?") and _FIRST_WORD_END.search(text, 0, mark + 1):
        return matches_text(pattern, text)
    literal = _WILDCARD.split(pattern, 1)[0][:mark]
    return text.startswith(literal) and _simulate(_build_automaton(pattern), text)


class _Automaton(NamedTuple):
    """A pattern as a nondeterministic automaton. State n means that n characters of the pattern have matched.

    Sets of states are integers with one bit per state.

    - ``accepting``: per character, the states that accept it; the empty string is for all other characters.
    - ``stars``: the states before a ``*``.
    - ``spaces``: the states before a space, up to the first ``*``.
    - ``length``: the number of the final state.
    """

    accepting: Mapping[str, int]
    stars: int
    spaces: int
    length: int


@lru_cache(_MAX_COMPILED)
def _build_automaton(pattern: str) -> _Automaton:
    pattern = re.sub(r"\*+", "*", pattern)
    any_one = sum(1 << at for at, each in enumerate(pattern) if each == "?")
    accepting = {"": any_one}
    for at, each in enumerate(pattern):
        if each not in "*?":
            accepting[each] = accepting.get(each, any_one) | 1 << at
    first_star = pattern.find("*")
    words = pattern if first_star < 0 else pattern[:first_star]
    spaces = sum(1 << at for at, each in enumerate(words) if each == " ")
    stars = sum(1 << at for at, each in enumerate(pattern) if each == "*")
    return _Automaton(accepting, stars, spaces, len(pattern))


def _simulate(automaton: _Automaton, text: str) -> bool:
    accepting, stars, spaces, length = automaton
    all_states = (1 << (length + 1)) - 1
    states = 1 | (1 & stars) << 1
    for each in text:
        if each == ANY:
            # All states from the first active one on.
            states = all_states & -(states & -states)
        elif each == WORDS:
            after_space = (states & accepting.get(" ", accepting[""])) << 1 | states & stars
            states |= all_states & -(after_space & -after_space)
        elif each in MARKS:
            reached = states
            while (more := reached | (reached & ~spaces) << 1 & all_states) != reached:
                reached = more
            states = reached
        else:
            states = (states & accepting.get(each, accepting[""])) << 1 | states & stars
        states |= (states & stars) << 1
        if not states:
            return False
    return bool(states >> length & 1)


def matches_path(pattern: str, path: str) -> bool:
    """Return whether ``pattern`` matches the whole ``path``, name by name.

    ``**`` matches any number of names. Within a name, ``*`` and ``?`` match as in `matches_text`.
    """
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
            # Let the last ** match one further name.
            resumed += 1
            at, name = last_any + 1, resumed
        else:
            return False
    return all(each == "**" for each in wanted[at:])


def _matches_name(pattern: str, name: str) -> bool:
    if "*" not in pattern and "?" not in pattern:
        return pattern == name
    # The empty text before the first slash of an absolute path is not a name.
    return bool(name) and matches_text(pattern, name)


def may_share_path(one: str, other: str) -> bool:
    """Return whether there may be a path for which `matches_path` is true of both patterns.

    False is always right. True may be wrong if a name of one pattern has ``?`` and no ``*``.
    """
    mine, theirs = one.split("/"), other.split("/")
    # By the number of their names that are left out: whether the rests of both patterns may share a path.
    below = [False] * (len(theirs) + 1)
    for at in range(len(mine), -1, -1):
        row = [False] * (len(theirs) + 1)
        for to in range(len(theirs), -1, -1):
            own = mine[at] if at < len(mine) else ""
            others = theirs[to] if to < len(theirs) else ""
            if not own and not others:
                row[to] = True
            elif own == "**" or others == "**":
                # The ** matches no further name, or the name of the other pattern.
                row[to] = bool(own and below[to]) or bool(others and row[to + 1])
            elif own and others:
                row[to] = below[to + 1] and _may_share_name(own, others)
        below = row
    return below[0]


def _may_share_name(one: str, other: str) -> bool:
    if not _WILDCARD.search(one):
        return _matches_name(other, one)
    if not _WILDCARD.search(other):
        return _matches_name(one, other)
    beginnings = zip(one.split("*", 1)[0], other.split("*", 1)[0], strict=False)
    ends = zip(reversed(one.rsplit("*", 1)[-1]), reversed(other.rsplit("*", 1)[-1]), strict=False)
    return all(a == b or "?" in (a, b) for a, b in (*beginnings, *ends))


def _find(segment: str, text: str, start: int, end: int) -> int:
    """Return the first position of ``segment`` (without ``*``) in ``text[start:end]``; -1 if there is
    none."""
    if "?" not in segment:
        return text.find(segment, start, end)
    found = _compile(segment).search(text, start, end)
    return found.start() if found else -1


@lru_cache(_MAX_COMPILED)
def _compile(segment: str) -> re.Pattern[str]:
    return re.compile(".".join(re.escape(each) for each in segment.split("?")), re.DOTALL)
