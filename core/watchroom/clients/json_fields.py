"""Fields of JSON that clients wrote, whatever they contain. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Final

from watchroom import validation
from watchroom.model import Json

_MAX_NUMBER: Final = 2**53
"""Up to here a float has every whole number."""


def text_of(given: Mapping[str, Json], name: str) -> str:
    """The text under ``name`` in ``given`` as a row can keep it, empty where there is none."""
    value = given.get(name)
    if not isinstance(value, str):
        return ""
    return value if value.isascii() else validation.replace_lone_surrogates(value)


def object_of(given: Mapping[str, Json], name: str) -> Mapping[str, Json]:
    """The object under ``name`` in ``given``, empty where there is none."""
    value = given.get(name)
    return value if isinstance(value, Mapping) else {}


def count_of(given: Mapping[str, Json], name: str) -> int:
    """The number under ``name`` in ``given`` of something that is counted, 0 where there is none; at most
    2^53."""
    value = given.get(name)
    return min(max(0, value), _MAX_NUMBER) if isinstance(value, int) and not isinstance(value, bool) else 0


def amount_of(given: Mapping[str, Json], name: str) -> float | None:
    """The amount under ``name`` in ``given``, None where there is none, or one that nobody pays."""
    value = given.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) <= _MAX_NUMBER else None


def dump(given: Json) -> str:
    """``given`` as the JSON text of an object that a row can keep, empty where it is none."""
    text = json.dumps(given if isinstance(given, Mapping) else {}, ensure_ascii=False)
    return text if text.isascii() else validation.replace_lone_surrogates(text)


def time_of(fields: Mapping[str, Json], name: str) -> int:
    """The time ``name`` of ``fields``, in ISO 8601 with its offset, in nanoseconds since the epoch; 0 where
    it is none."""
    try:
        moment = datetime.fromisoformat(text_of(fields, name))
        return int(moment.timestamp() * 1e9) if moment.tzinfo is not None else 0
    except (ValueError, OverflowError):
        return 0
