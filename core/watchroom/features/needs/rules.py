"""Rules for needs: which row opens which kind, how a person can answer it, and which needs can be marked as
seen. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias, get_args

from watchroom.errors import ConfigInvalid
from watchroom.features.budgets.rows import is_subagent_step
from watchroom.features.checks.rows import is_check, is_unproven
from watchroom.features.files.rows import SHARED_FILE_ZONE
from watchroom.features.handoffs.rows import HANDOFF_NEED, HandoffNeed
from watchroom.features.people.rules import STOP_ROUTINE
from watchroom.features.plans.rows import OVERLAP_NEED, OverlapNeed, is_plan, read_plan
from watchroom.features.sessions.rows import parking_of
from watchroom.features.trees.rows import PREDICT, TREE, read_prediction
from watchroom.kernel.rules.conflicts import NOT_A_FILE, checkout_of
from watchroom.kernel.zones import DELIVERED, SHARED
from watchroom.model import (
    BUDGET_WARNING,
    LOST,
    MESSAGE,
    OUTSIDE,
    PAUSE,
    PEOPLE_LOST,
    SYSTEM,
    UNCHECKED,
    USER,
    WITHDRAW,
    Row,
    Zone,
)

NeedKind: TypeAlias = Literal[
    "forged",
    "unreadable",
    "conflict",
    "request",
    "lost",
    "failed",
    "parked",
    "expired",
    "breaker",
    "unproven",
    "budget",
    "message",
    "outside",
    OverlapNeed,
    "predicted",
    "unchecked",
    "denied",
    "stalled",
    HandoffNeed,
]
URGENCY: Final[tuple[NeedKind, ...]] = get_args(NeedKind)
"""The order of needs without a deadline, most urgent first."""
NeedAnswer: TypeAlias = Literal[
    "approve",
    "reject",
    "reply",
    "choose",
    "merge",
    "compare",
    "edit",
    "leave",
    "resume",
    "message",
    "seen",
]
"""A person's answer to a need.

- ``approve``, ``reject``, ``reply``, ``choose``: answer a request.
- ``merge``: settle a conflict.
- ``compare``: show a diff.
- ``edit``: correct a file.
- ``leave``: continue a parked agent once, when its limit resets.
- ``resume``: continue a stopped agent.
- ``message``: write to the agent.
- ``seen``: mark the need as seen.
"""

EXPIRED: Final = "expired"
"""The key of the single need for all expired requests."""
UNREADABLE: Final = "unreadable"
"""The key of the single need for all rows that cannot be read."""
TRIPWIRES: Final = frozenset({"agent_cannot_answer", "keys_not_typed"})
"""The errors of decisions that somebody else attempted under a person's name."""
_OPENED_BY_SYSTEM: Final[Mapping[str, NeedKind]] = {
    LOST: "lost",
    STOP_ROUTINE: "budget",
    BUDGET_WARNING: "budget",
    PAUSE: "breaker",
    PEOPLE_LOST: "forged",
}
"""The kind of need by tool, for rows of the actor ``system``."""
_ENDED_BY_TIME: Final = '"outcome": "expired"'
_FAILED: Final = '"status": "error"'
"""Marks a failed step in its detail. Searched as text, because there are many steps and few fail."""


def need_opened_by(row: Row) -> NeedKind | None:
    """Return the kind of need that ``row`` may open; None if it opens none.

    Some needs also depend on other rows. A refusal must be repeated. An unchecked write must replace another
    actor's version. A conflict must be open. A lost process must have had unfinished work. A predicted
    conflict is a need once the agents of the trees have stopped. Plans must be active.
    """
    if row.actor == SYSTEM and (kind := _kind_of_system(row)) is not None:
        return kind
    if row.actor == OUTSIDE:
        is_need = row.outcome == "conflict" or row.error in (ConfigInvalid.code, NOT_A_FILE)
        return "outside" if is_need else None
    if row.kind == "human" and row.version is None:
        # People immediately see their own refusals.
        return "forged" if row.error in TRIPWIRES else None
    if row.outcome == "denied":
        return "denied"
    if row.outcome == "conflict":
        return "conflict" if row.zone in SHARED else None
    if row.outcome == "ok" and row.zone == "agent" and row.tool == MESSAGE:
        return "message" if row.path == USER else None
    if row.version is None:
        return OVERLAP_NEED if is_plan(row) and read_plan(row).overlaps else None
    if row.zone in SHARED:
        return "unchecked" if row.base == UNCHECKED else None
    if row.zone == "session":
        return _kind_of_step(row)
    if row.zone == "request":
        if row.version == 1:
            return "request"
        return "expired" if row.tool == WITHDRAW and _ENDED_BY_TIME in row.detail_json else None
    return HANDOFF_NEED if row.zone in DELIVERED and not row.deleted else None


def _kind_of_step(row: Row) -> NeedKind | None:
    """Return the kind of need that ``row``, a step of a session, opens."""
    if parking_of(row) is not None:
        return None if is_subagent_step(row) else "parked"
    return "failed" if _FAILED in row.detail_json else None


def _kind_of_system(row: Row) -> NeedKind | None:
    """Return the kind of need that ``row`` of the actor ``system`` opens."""
    if is_check(row):
        return "unproven" if is_unproven(row) else None
    if row.tool == PREDICT and row.zone == TREE:
        return "predicted" if read_prediction(row).paths else None
    return _OPENED_BY_SYSTEM.get(row.tool)


def need_key(kind: NeedKind, actor: str, row: Row) -> str:
    """Return the key of a need, unique among the needs of its ``kind``. It contains ``actor``, or the subject
    of ``row``."""
    if kind in ("failed", "parked", "message"):
        return actor
    if kind == "expired":
        return EXPIRED
    if kind == "unreadable":
        return UNREADABLE
    if kind == "forged":
        # A writer without the tools can write many rows. They are one need.
        return actor
    if kind == "denied":
        return f"{actor} {row.zone} {row.path}"
    if kind == "outside":
        checkout = checkout_of(row) if row.zone in SHARED else ""
        return f"{row.zone} {row.path} {checkout}" if checkout else f"{row.zone} {row.path}"
    if kind == "predicted":
        return " ".join(read_prediction(row).trees)
    if kind == "conflict":
        return f"{_qualified_path(row)} {actor}"
    return _qualified_path(row) if kind == "unchecked" else row.path


def is_acknowledgeable(kind: NeedKind, zone: Zone) -> bool:
    """Return whether a person can mark a need of ``kind`` about a path in ``zone`` as seen. Conflicts must be
    settled, and requests must be answered."""
    return zone in DELIVERED if kind == "outside" else kind not in ("conflict", "request")


def need_answers(kind: NeedKind, row: Row) -> tuple[NeedAnswer, ...]:
    """Return the possible answers to a need of ``kind`` that ``row`` opened, the usual answer first."""
    if kind == "request":
        return _REQUEST_ANSWERS.get(str(row.detail.get("kind")), ("reply", "reject"))
    if kind == "outside" and row.error == NOT_A_FILE:
        return ("edit",)
    if kind == "outside" and row.zone not in SHARED:
        return ("seen",) if row.zone in DELIVERED else ("edit",)
    if kind == "parked" and ((parking := parking_of(row)) is None or parking.resets is None):
        return ("resume", "message", "seen")
    return _ANSWERS[kind]


_REQUEST_ANSWERS: Final[Mapping[str, tuple[NeedAnswer, ...]]] = {
    "approve": ("approve", "reject"),
    "select": ("choose", "reject"),
}
_ANSWERS: Final[Mapping[NeedKind, tuple[NeedAnswer, ...]]] = {
    "forged": ("seen",),
    "unreadable": ("seen",),
    "conflict": ("merge",),
    "lost": ("resume", "seen"),
    "failed": ("resume", "message", "seen"),
    "parked": ("leave", "resume", "message", "seen"),
    "expired": ("seen",),
    "breaker": ("resume", "message", "seen"),
    "unproven": ("seen", "message"),
    "budget": ("seen",),
    "message": ("message", "seen"),
    "outside": ("merge",),
    OVERLAP_NEED: ("message", "seen"),
    "predicted": ("seen",),
    "unchecked": ("compare", "seen"),
    "denied": ("message", "seen"),
    "stalled": ("message", "seen"),
    HANDOFF_NEED: ("message", "seen"),
}


def _qualified_path(row: Row) -> str:
    """Return a path that is unique among zones. The path of a shared file is returned unchanged."""
    return row.path if row.zone == SHARED_FILE_ZONE else f"{row.zone} {row.path}"
