"""Reads fields of untrusted JSON from clients, and merges JSON objects. Pure."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import datetime
from typing import Final

from watchroom import validation
from watchroom.model import Json

_MAX_NUMBER: Final = 2**53
"""The largest integer up to which a float represents every integer."""


def text_of(given: Mapping[str, Json], name: str) -> str:
    """Return the text ``name`` of ``given`` in a form that a row can store, empty if there is none."""
    value = given.get(name)
    if not isinstance(value, str):
        return ""
    return value if value.isascii() else validation.replace_lone_surrogates(value)


def absolute_path(event: Mapping[str, Json], path: str) -> str:
    """Return ``path`` of the call of ``event`` as an absolute path. A relative path begins at the client's
    folder."""
    return os.path.join(text_of(event, "cwd") or os.sep, os.path.expanduser(path)) if path else ""


def object_of(given: Mapping[str, Json], name: str) -> Mapping[str, Json]:
    """Return the object ``name`` of ``given``, empty if there is none."""
    value = given.get(name)
    return value if isinstance(value, Mapping) else {}


def count_of(given: Mapping[str, Json], name: str) -> int:
    """Return the count ``name`` of ``given``, at least 0 and at most 2^53; 0 if there is none."""
    value = given.get(name)
    return min(max(0, value), _MAX_NUMBER) if isinstance(value, int) and not isinstance(value, bool) else 0


def amount_of(given: Mapping[str, Json], name: str) -> float | None:
    """Return the amount of money ``name`` of ``given``, None if there is none or it is above 2^53."""
    value = given.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) <= _MAX_NUMBER else None


def dump(given: Json) -> str:
    """Return ``given`` as the JSON text of an object that a row can store, ``{}`` if it is not an object."""
    text = json.dumps(given if isinstance(given, Mapping) else {}, ensure_ascii=False)
    return text if text.isascii() else validation.replace_lone_surrogates(text)


def time_of(fields: Mapping[str, Json], name: str) -> int:
    """Return the time ``name`` of ``fields`` (ISO 8601 with an offset) in nanoseconds since the epoch; 0 if
    there is none."""
    try:
        moment = datetime.fromisoformat(text_of(fields, name))
        return int(moment.timestamp() * 1e9) if moment.tzinfo is not None else 0
    except (ValueError, OverflowError):
        return 0


def merge_configuration(existing: Mapping[str, Json], ours: Mapping[str, Json]) -> dict[str, Json]:
    """Return ``existing`` with ``ours`` merged in.

    Objects are merged by key, lists get the items that they lack, and other values are replaced. A second
    merge changes nothing. Raise ValueError if an object or a list in ``ours`` meets a value of another type.
    """
    result = dict(existing)
    for key, value in ours.items():
        known = result.get(key)
        if isinstance(known, Mapping) and isinstance(value, Mapping):
            result[key] = merge_configuration(known, value)
        elif isinstance(known, list) and isinstance(value, list) and key != "args":
            result[key] = [*known, *(each for each in value if each not in known)]
        elif known is not None and isinstance(value, Mapping | list) and key != "args":
            raise ValueError(f"{key} is something else")
        else:
            result[key] = value
    return result
