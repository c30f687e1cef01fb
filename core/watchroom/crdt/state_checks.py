"""Checks of states and deltas that come from another replica, made before any of it is merged."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Final

from watchroom.crdt.errors import InvalidState
from watchroom.errors import NotText, TooLarge
from watchroom.model import MAX_TEXT_BYTES, Json

MAX_COUNT: Final = 2**53 - 1
"""The largest whole number that every reader of JSON keeps exactly."""
MAX_KEY: Final = 1000
"""Characters of a map's key or a replica's name."""

_NUL: Final = re.compile(r"(?<!\\)(?:\\\\)*+\\u0000")
"""A NUL as JSON escapes it, and no backslash before the letters."""


def invalid_state(rule: str) -> InvalidState:
    """The `InvalidState` error for a state that breaks ``rule`` (without its prefix ``state_``)."""
    return InvalidState(rule=f"state_{rule}")


def printable_name(name: str) -> str:
    """``name`` as a refusal may quote it: short, with lone surrogates written out."""
    return name[:100].encode("utf-8", "backslashreplace").decode()


def check_mapping(state: Json, rule: str) -> Mapping[str, Json]:
    """``state``, if it is a mapping with string keys. Raises `InvalidState` with ``rule``."""
    if type(state) is not dict and not isinstance(state, Mapping):
        raise invalid_state(rule)
    for key in state:
        if not isinstance(key, str):
            raise invalid_state(rule)
    return state


def check_fields(
    state: Json, rule: str, required: frozenset[str], optional: frozenset[str]
) -> Mapping[str, Json]:
    """``state``, if it is a mapping with all ``required`` keys and no keys beside these and the ``optional``
    ones. Raises `InvalidState` with ``rule``."""
    found = check_mapping(state, rule)
    if not required <= found.keys() or not found.keys() <= required | optional:
        raise invalid_state(rule)
    return found


def check_sequence(state: Json, rule: str) -> Sequence[Json]:
    """``state``, if it is a list or tuple. Raises `InvalidState` with ``rule``."""
    if not isinstance(state, (list, tuple)):
        raise invalid_state(rule)
    return state


def check_natural(state: Json, rule: str) -> int:
    """``state``, if it is a whole number from 0 to 2^53 - 1. Raises `InvalidState` with ``rule``."""
    if type(state) is not int or not 0 <= state <= MAX_COUNT:
        raise invalid_state(rule)
    return state


def check_replica_name(state: Json) -> str:
    """``state``, if it can be a replica's name: 1 to `MAX_KEY` characters without NUL. Raises
    `InvalidState`."""
    return _name(state, "replica")


def check_key(state: Json) -> str:
    """``state``, if it can be a map's key: 1 to `MAX_KEY` characters without NUL. Raises `InvalidState`."""
    return _name(state, "key")


def _name(state: Json, rule: str) -> str:
    if not isinstance(state, str) or not 0 < len(state) <= MAX_KEY or "\0" in state:
        raise invalid_state(rule)
    try:
        state.encode()
    except UnicodeEncodeError as error:
        raise invalid_state(rule) from error
    return state


def canonical_json(value: Json) -> str:
    """``value`` as JSON with sorted keys: equal values give equal texts. Raises `NotText` where it is no JSON
    (NaN, lone surrogates, endless nesting), `TooLarge` beyond 10 MB."""
    try:
        text = json.dumps(value, ensure_ascii=False, sort_keys=True, allow_nan=False, separators=(",", ":"))
        size = len(text.encode())
    except (ValueError, TypeError, RecursionError) as error:
        raise NotText(rule="not_json") from error
    if _NUL.search(text):
        raise NotText(rule="binary")
    if size > MAX_TEXT_BYTES:
        raise TooLarge(size=size, limit=MAX_TEXT_BYTES)
    return text


def check_value(state: Json) -> Json:
    """``state``, if it is a JSON value of at most 10 MB. Raises `InvalidState`."""
    try:
        canonical_json(state)
    except (NotText, TooLarge) as error:
        raise invalid_state("value") from error
    return state


def utf8_size(text: str) -> int:
    """The length of ``text`` as UTF-8, in bytes. Raises `NotText` for NUL and lone surrogates."""
    if "\0" in text:
        raise NotText(rule="binary")
    if text.isascii():
        return len(text)
    try:
        return len(text.encode())
    except UnicodeEncodeError as error:
        raise NotText(rule="not_utf8") from error
