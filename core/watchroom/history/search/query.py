"""Search queries: in the form that people type, and in the form for FTS5. Pure."""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple, TypeAlias, cast, get_args

from watchroom.errors import InvalidSearch
from watchroom.model import Zone

MAX_QUERY: Final = 200
"""Maximum characters of a query."""
MAX_WORDS: Final = 16
MAX_HITS: Final = 1000
_MIN_PREFIX: Final = 2
"""Minimum characters of a prefix. Nearly every text has a word that begins with a given letter."""

Order: TypeAlias = Literal["newest", "best"]
"""``newest``: newest first. ``best``: best first among the newest 10,000."""

SEPARATOR: Final = "\x1f"
"""Surrounds each CJK character, so that each character is a word. People do not write this character."""
GAP: Final = "\ue000"
"""A word between passages that are not neighbours, so that no phrase matches across them."""
_CJK: Final = re.compile(
    "["
    "\u1100-\u11ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3038-\u30ff\u3100-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uffdc"
    "\U0001b000-\U0001b16f\U00020000-\U0003ffff"
    "]+"
)
"""Matches Chinese, Japanese and Korean characters. Their texts do not mark the boundaries of words."""
_HAS_CONTROLS: Final = re.compile("[\x00-\x08\x0e-\x1f\ue000]")
_ZONES: Final = frozenset(get_args(Zone))
_QUOTED: Final = re.compile(r'"([^"]*)"?|(\S+)')


class SearchQuery(NamedTuple):
    """A search.

    - ``words``: a text must contain all of these words. Words in double quotes, and the characters of a CJK
      word, must be adjacent. The last word also matches as a prefix.
    - ``agent``: only rows of this actor (an agent's id, or ``human:NAME``).
    - ``zone``: only rows of this zone.
    - ``after``, ``until``: only rows with ``after`` < seq ≤ ``until``.
    - ``limit``: the maximum number of hits, 1 to 1,000.
    - ``order``: newest first, or best first.
    """

    words: str
    agent: str | None = None
    zone: Zone | None = None
    after: int = 0
    until: int | None = None
    limit: int = 50
    order: Order = "newest"


def parse_query(typed: str) -> SearchQuery:
    """Parse the query that a person ``typed`` in one line.

    ``agent:NAME`` and ``zone:NAME`` restrict the query. In double quotes, they are ordinary words.
    ``zone:NAME`` with an unknown zone is also an ordinary word.
    """
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
    """Return ``text`` in its indexed form, with separators around each CJK character.

    Apart from the separators, its length does not change.
    """
    if _HAS_CONTROLS.search(text):
        text = _HAS_CONTROLS.sub(" ", text)
    return text if text.isascii() else _CJK.sub(_set_apart, text)


def _set_apart(run: re.Match[str]) -> str:
    return f"{SEPARATOR}{SEPARATOR.join(run[0])}{SEPARATOR}"


def actor_token(actor: str) -> str:
    """Return the token of the rows of ``actor``."""
    return f"a{actor.encode('utf-8', 'replace').hex()}"


def zone_token(zone: str) -> str:
    """Return the token of the rows of ``zone``."""
    return f"z{zone}"


def phrases_of(words: str) -> tuple[str, ...]:
    """Return the phrases of ``words`` as FTS5 expressions. Raise `InvalidSearch` for no phrase, or too
    many."""
    if len(words) > MAX_QUERY:
        raise InvalidSearch(rule="search_length")
    found = []
    safe = words.encode("utf-8", "replace").decode()
    for match in _QUOTED.finditer(safe):
        quoted, word = match.groups()
        text = separate(quoted if quoted is not None else word).replace('"', " ")
        if any(each.isalnum() for each in text):
            is_last = match.end() == len(safe.rstrip()) and quoted is None
            found.append(f'"{text}"{"*" if is_last and _is_prefix(text) else ""}')
    if not found:
        raise InvalidSearch(rule="search_empty")
    if len(found) > MAX_WORDS:
        raise InvalidSearch(rule="search_words")
    return tuple(found)


def match_all(query: SearchQuery) -> str:
    """Return the FTS5 expression that matches all parts of ``query``. Raise `InvalidSearch`."""
    parts = [f"body : ({' AND '.join(phrases_of(query.words))})"]
    tokens = [actor_token(query.agent)] if query.agent is not None else []
    tokens += [zone_token(query.zone)] if query.zone is not None else []
    return " AND ".join([*parts, *(f'who : "{token}"' for token in tokens)])


def match_any(query: SearchQuery) -> str:
    """Return the FTS5 expression that matches any phrase of ``query``. Raise `InvalidSearch`."""
    return " OR ".join(phrases_of(query.words))


def _is_prefix(text: str) -> bool:
    """Whether the word at the end of ``text`` is long enough to match as a prefix."""
    letters = re.search(r"\w*\Z", text.rstrip())
    return letters is not None and len(letters[0]) >= _MIN_PREFIX
