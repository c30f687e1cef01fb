"""What is searched for, as the index takes it. Pure."""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple, TypeAlias, cast, get_args

from watchroom.errors import InvalidSearch
from watchroom.model import Zone

LONGEST_QUERY: Final = 200
"""Characters."""
MOST_WORDS: Final = 16
MOST_HITS: Final = 1000
_SHORTEST_PREFIX: Final = 2
"""A single letter is a word: what begins with it is nearly everything."""

Order: TypeAlias = Literal["newest", "best"]
"""Newest first, or the best of the newest 10,000 first."""

SEPARATOR: Final = "\x1f"
"""Stands around each CJK character, so that each is a word. No text that people wrote contains it."""
GAP: Final = "\ue000"
"""A word that nobody writes, between passages that are no neighbours: no phrase leads across it."""
_CJK: Final = re.compile(
    "["
    "\u1100-\u11ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3038-\u30ff\u3100-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uffdc"
    "\U0001b000-\U0001b16f\U00020000-\U0003ffff"
    "]+"
)
"""Chinese, Japanese and Korean characters: nothing tells where their words begin and end."""
_HAS_CONTROLS: Final = re.compile("[\x00-\x08\x0e-\x1f\ue000]")
_ZONES: Final = frozenset(get_args(Zone))
_QUOTED: Final = re.compile(r'"([^"]*)"?|(\S+)')


class SearchQuery(NamedTuple):
    """The ``words`` that a text must have, all of them: those in double quotes beside each other, a CJK word
    as it stands; the last one may be the beginning of a word. Only what ``agent`` did (its id, or
    ``human:NAME``), what concerns ``zone``, and rows with ``after`` < seq ≤ ``until``. At most ``limit``
    hits."""

    words: str
    agent: str | None = None
    zone: Zone | None = None
    after: int = 0
    until: int | None = None
    limit: int = 50
    order: Order = "newest"


def parse_query(typed: str) -> SearchQuery:
    """What a person ``typed`` in one line: the words, and ``agent:NAME`` or ``zone:NAME`` for what is not to
    be found elsewhere. In double quotes these are words, too, and so is a zone that there is not."""
    agent, zone = None, None
    words = []
    for match in _QUOTED.finditer(typed):
        kind, _, name = match[0].partition(":")
        if kind == "agent" and name:
            agent = name
        elif kind == "zone" and name in _ZONES:
            zone = cast("Zone", name)
        else:
            words.append(match[0])
    return SearchQuery(" ".join(words), agent, zone)


def separate(text: str) -> str:
    """``text`` as it is indexed: each CJK character apart. Without the separators it is as long as before."""
    if _HAS_CONTROLS.search(text):
        text = _HAS_CONTROLS.sub(" ", text)
    return text if text.isascii() else _CJK.sub(_set_apart, text)


def _set_apart(run: re.Match[str]) -> str:
    return f"{SEPARATOR}{SEPARATOR.join(run[0])}{SEPARATOR}"


def actor_token(actor: str) -> str:
    """The word by which the rows of ``actor`` are found."""
    return f"a{actor.encode('utf-8', 'replace').hex()}"


def zone_token(zone: str) -> str:
    """The word by which the rows of ``zone`` are found."""
    return f"z{zone}"


def phrases_of(words: str) -> tuple[str, ...]:
    """The phrases that ``words`` name, in the language of FTS5. Raises `InvalidSearch` where there are none,
    or too many."""
    if len(words) > LONGEST_QUERY:
        raise InvalidSearch(rule="search_length")
    found = []
    safe = words.encode("utf-8", "replace").decode()
    for match in _QUOTED.finditer(safe):
        quoted, word = match.groups()
        text = separate(quoted if quoted is not None else word).replace('"', " ")
        if any(each.isalnum() for each in text):
            is_last = match.end() == len(safe.rstrip()) and quoted is None
            found.append(f'"{text}"{"*" if is_last and _may_go_on(text) else ""}')
    if not found:
        raise InvalidSearch(rule="search_empty")
    if len(found) > MOST_WORDS:
        raise InvalidSearch(rule="search_words")
    return tuple(found)


def match_all(query: SearchQuery) -> str:
    """The expression of FTS5 that finds what ``query`` asks for. Raises `InvalidSearch`."""
    parts = [f"body : ({' AND '.join(phrases_of(query.words))})"]
    tokens = [actor_token(query.agent)] if query.agent is not None else []
    tokens += [zone_token(query.zone)] if query.zone is not None else []
    return " AND ".join([*parts, *(f'who : "{token}"' for token in tokens)])


def match_any(query: SearchQuery) -> str:
    """The expression of FTS5 for a text that has anything of what ``query`` asks for. Raises
    `InvalidSearch`."""
    return " OR ".join(phrases_of(query.words))


def _may_go_on(text: str) -> bool:
    """Whether the word at the end of ``text`` may be the beginning of one."""
    letters = re.search(r"\w*\Z", text.rstrip())
    return letters is not None and len(letters[0]) >= _SHORTEST_PREFIX
