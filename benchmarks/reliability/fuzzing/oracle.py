"""Conditions that hold for every answer."""

from __future__ import annotations

import json
import time
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from watchroom.errors import WatchroomError
from watchroom.model import Json
from watchroom.texts import Language

MAX_MESSAGE: Final = 10_000
"""Max characters of a refusal, because long inputs must not be repeated whole."""
LANGUAGES: tuple[Language, ...] = ("en", "zh")


class Broken(AssertionError):
    """A promise was broken."""


def require(holds: object, said: object) -> None:
    """Raise `Broken` with ``said`` unless ``holds`` is true."""
    if not holds:
        raise Broken(repr(said)[:1000])


def refusal_kind(error: WatchroomError) -> tuple[str, str]:
    """Check that ``error`` has a message and a suggestion in both languages that can be sent. Return its code
    and rule."""
    require(type(error).code != WatchroomError.code, "a refusal without a code of its own")
    for language in LANGUAGES:
        require(len(error.message(language)) <= MAX_MESSAGE, f"{error.code}: a message of any length")
        for said in (error.message(language), error.suggestion(language)):
            require(said, f"{error.code}: nothing is said in {language}")
            said.encode()
        json.dumps(error.more(language), allow_nan=False)
    return error.code, str(error.values.get("rule", ""))


@contextmanager
def within_seconds(most: float, what: str) -> Iterator[None]:
    """Require that the context takes at most ``most`` seconds of CPU."""
    start = time.process_time()
    yield
    taken = time.process_time() - start
    require(taken <= most, f"{what} is slow")


def check_sendable(value: Json) -> None:
    """Check that ``value`` can be sent as JSON to any reader."""
    json.dumps(value, allow_nan=False, ensure_ascii=False).encode()


def check_line(text: str) -> None:
    """Check that a drawn line contains no control or invisible characters."""
    if text.isprintable():
        return
    for character in text:
        require(
            character.isprintable() or character in "\u3000\u00a0",
            (f"U+{ord(character):04X} {unicodedata.name(character, '')} is drawn", text[:80]),
        )


def check_lines(lines: Iterable[str]) -> None:
    """Check each of ``lines`` with `check_line`."""
    for line in lines:
        check_line(line)
