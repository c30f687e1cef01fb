"""What comes from another replica is checked here, piece by piece, before any of it is taken over."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

from watchroom.errors import InvalidState, NotText, TooLarge
from watchroom.model import MAX_TEXT_BYTES, Json

MAX_COUNT: Final = 2**53 - 1
"""The largest whole number that every reader of JSON keeps exactly."""
MAX_KEY: Final = 1000
"""Characters of a map's key or a replica's name."""


def refuse(rule: str) -> InvalidState:
    """The refusal of a state that breaks ``rule``."""
    return InvalidState(rule=f"state_{rule}")


def mapping(state: Json, rule: str) -> Mapping[str, Json]:
    if type(state) is not dict and not isinstance(state, Mapping):
        raise refuse(rule)
    for key in state:
        if not isinstance(key, str):
            raise refuse(rule)
    return state


def fields(state: Json, rule: str, required: frozenset[str], optional: frozenset[str]) -> Mapping[str, Json]:
    """A mapping that has these keys and no others."""
    found = mapping(state, rule)
    if not required <= found.keys() or not found.keys() <= required | optional:
        raise refuse(rule)
    return found


def sequence(state: Json, rule: str) -> Sequence[Json]:
    if not isinstance(state, (list, tuple)):
        raise refuse(rule)
    return state


def natural(state: Json, rule: str) -> int:
    """A whole number from 0 to 2^53 - 1."""
    if type(state) is not int or not 0 <= state <= MAX_COUNT:
        raise refuse(rule)
    return state


def replica_name(state: Json) -> str:
    return _name(state, "replica")


def key(state: Json) -> str:
    return _name(state, "key")


def _name(state: Json, rule: str) -> str:
    if not isinstance(state, str) or not 0 < len(state) <= MAX_KEY or "\0" in state:
        raise refuse(rule)
    try:
        state.encode()
    except UnicodeEncodeError as error:
        raise refuse(rule) from error
    return state


def canonical(value: Json) -> str:
    """``value`` as JSON, the same for equal values. Raises `NotText` where it is no JSON (NaN, halves of
    surrogate pairs, endless nesting), `TooLarge`."""
    try:
        text = json.dumps(value, ensure_ascii=False, sort_keys=True, allow_nan=False, separators=(",", ":"))
        size = len(text.encode())
    except (ValueError, TypeError, RecursionError) as error:
        raise NotText(rule="not_json") from error
    if "\\u0000" in text:
        raise NotText(rule="binary")
    if size > MAX_TEXT_BYTES:
        raise TooLarge(size=size, limit=MAX_TEXT_BYTES)
    return text


def value(state: Json) -> Json:
    """Any JSON value, from a replica."""
    try:
        canonical(state)
    except (NotText, TooLarge) as error:
        raise refuse("value") from error
    return state


def text_bytes(text: str) -> int:
    """How many bytes ``text`` has as UTF-8. Raises `NotText`."""
    if "\0" in text:
        raise NotText(rule="binary")
    if text.isascii():
        return len(text)
    try:
        return len(text.encode())
    except UnicodeEncodeError as error:
        raise NotText(rule="not_utf8") from error
