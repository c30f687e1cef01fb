"""Finds rows that cannot be read. Pure.

A journal can contain any text in any column: rows written with SQL, by a newer version, or damaged on disk. A
row that readers cannot use is shown and reported, but takes no effect.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Literal, TypeAlias

from watchroom.features.needs.rules import URGENCY
from watchroom.features.tasks.rows import is_spawn
from watchroom.kernel.rules.details import (
    ANSWER_OUTCOMES,
    REQUEST_KINDS,
    SESSION_STATUSES,
    TASK_OUTCOMES,
    WITHDRAWAL_OUTCOMES,
)
from watchroom.kernel.rules.row_files import MAX_VERSION
from watchroom.kernel.zones import ZONES
from watchroom.model import ANSWER, OUTCOMES, SEEN, TERMINATE, WITHDRAW, Json, Row, parse_object

DamageRule: TypeAlias = Literal[
    "damage_zone", "damage_outcome", "damage_version", "damage_detail", "damage_fields", "damage_fault"
]
"""The reason why a row cannot be read.

- ``damage_zone``, ``damage_outcome``: its zone or outcome is unknown
- ``damage_version``: its version is out of range
- ``damage_detail``: its detail is not a JSON object
- ``damage_fields``: a field of its detail is missing or malformed
- ``damage_fault``: a projection failed on it
"""


def find_damage(row: Row) -> DamageRule | None:
    """Return the rule that ``row`` breaks, None if it can be read."""
    if row.zone not in ZONES:
        return "damage_zone"
    if row.outcome not in OUTCOMES:
        return "damage_outcome"
    if row.version is not None and not 0 < row.version <= MAX_VERSION:
        return "damage_version"
    # Parse the detail only once, because every row of a journal is checked.
    detail = parse_object(row.detail_json) if row.detail_json else {}
    if detail is None:
        return "damage_detail"
    return None if row.outcome != "ok" or _has_needed_fields(row, detail) else "damage_fields"


def _has_needed_fields(row: Row, detail: Mapping[str, Json]) -> bool:
    """Return whether the fields that projections need are in ``detail``, the detail of ``row``, and
    well-formed."""
    if row.tool == SEEN and row.version is None:
        has_texts = isinstance(detail.get("actor"), str) and _is_one_of(detail.get("need"), URGENCY)
        return has_texts and _is_int(detail.get("row"))
    if row.version is None:
        return True
    if row.zone == "session":
        return _is_one_of(detail.get("status", "idle"), SESSION_STATUSES)
    if row.zone == "request":
        if row.version == 1:
            return _is_one_of(detail.get("kind", "prompt"), REQUEST_KINDS)
        is_end = row.tool in (ANSWER, WITHDRAW)
        return not is_end or _is_one_of(
            detail.get("outcome", "expired"), (*ANSWER_OUTCOMES, *WITHDRAWAL_OUTCOMES)
        )
    if row.zone == "task":
        return row.version == 1 or _is_one_of(detail.get("status", "done"), TASK_OUTCOMES)
    if row.zone == "agent" and (row.tool == TERMINATE or is_spawn(row)):
        return bool(row.path) and isinstance(detail.get("task"), str)
    return True


def _is_one_of(value: Json, known: Collection[str]) -> bool:
    return isinstance(value, str) and value in known


def _is_int(value: Json) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
