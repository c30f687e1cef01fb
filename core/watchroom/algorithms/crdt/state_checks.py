"""Checks of states and deltas of other replicas, before any merge."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Final

from watchroom.errors import InvalidState, NotText, TooLarge
from watchroom.model import MAX_TEXT_BYTES, Json

MAX_COUNT: Final = 2**53 - 1
"""The largest integer that every JSON parser represents exactly."""
MAX_KEY: Final = 1000
"""Maximum length of map keys and replica names in characters."""

_NUL: Final = re.compile(r"(?<!\\)(?:\\\\)*+\\u0000")
"""Matches an escaped NUL in JSON, but not an escaped backslash followed by ``u0000``."""


def invalid_state(rule: str) -> InvalidState:
    """Return the `InvalidState` error for ``rule``. ``rule`` is given without the prefix ``state_``."""
    return InvalidState(rule=f"state_{rule}")


def printable_name(name: str) -> str:
    """Return ``name`` for an error message: at most 100 characters, with lone surrogates escaped."""
    return name[:100].encode("utf-8", "backslashreplace").decode()


def check_mapping(state: Json, rule: str) -> Mapping[str, Json]:
    """Return ``state`` if it is a mapping with string keys. Otherwise raise `InvalidState` with ``rule``."""
    if type(state) is not dict and not isinstance(state, Mapping):
        raise invalid_state(rule)
    for key in state:
        if not isinstance(key, str):
            raise invalid_state(rule)
    return state


def check_fields(
    state: Json, rule: str, required: frozenset[str], optional: frozenset[str]
) -> Mapping[str, Json]:
    """Return ``state`` if it is a mapping with the ``required`` keys, and otherwise only ``optional`` keys.
    Otherwise raise `InvalidState` with ``rule``."""
    found = check_mapping(state, rule)
    if not required <= found.keys() or not found.keys() <= required | optional:
        raise invalid_state(rule)
    return found


def check_sequence(state: Json, rule: str) -> Sequence[Json]:
    """Return ``state`` if it is a list or tuple. Otherwise raise `InvalidState` with ``rule``."""
    if not isinstance(state, (list, tuple)):
        raise invalid_state(rule)
    return state


def check_natural(state: Json, rule: str) -> int:
    """Return ``state`` if it is an integer from 0 to 2^53 - 1.

    Otherwise raise `InvalidState` with ``rule``.
    """
    if type(state) is not int or not 0 <= state <= MAX_COUNT:
        raise invalid_state(rule)
    return state


def check_replica_name(state: Json) -> str:
    """Return ``state`` if it is a valid replica name: 1 to `MAX_KEY` characters without NUL.

    Otherwise raise `InvalidState`.
    """
    return _check_name(state, "replica")


def check_key(state: Json) -> str:
    """Return ``state`` if it is a valid map key: 1 to `MAX_KEY` characters without NUL.

    Otherwise raise `InvalidState`.
    """
    return _check_name(state, "key")


def _check_name(state: Json, rule: str) -> str:
    if not isinstance(state, str) or not 0 < len(state) <= MAX_KEY or "\0" in state:
        raise invalid_state(rule)
    try:
        state.encode()
    except UnicodeEncodeError as error:
        raise invalid_state(rule) from error
    return state


def canonical_json(value: Json) -> str:
    """Return ``value`` as compact JSON with sorted keys, so that equal values give equal texts.

    Raise `NotText` if the value is not plain JSON (NaN, lone surrogates, NUL, too deep nesting), and
    `TooLarge` above 10 MB.
    """
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
    """Return ``state`` if it is a JSON value of at most 10 MB. Otherwise raise `InvalidState`."""
    try:
        canonical_json(state)
    except (NotText, TooLarge) as error:
        raise invalid_state("value") from error
    return state


def utf8_size(text: str) -> int:
    """Return the length of ``text`` in bytes of UTF-8. Raise `NotText` for NUL and lone surrogates."""
    if "\0" in text:
        raise NotText(rule="binary")
    if text.isascii():
        return len(text)
    try:
        return len(text.encode())
    except UnicodeEncodeError as error:
        raise NotText(rule="not_utf8") from error
