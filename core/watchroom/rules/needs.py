"""What waits for a person: which row may open which need, and which of them a look can close. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias, get_args

from watchroom.errors import ConfigInvalid
from watchroom.model import (
    BUDGET_WARNING,
    LOST,
    MESSAGE,
    OUTSIDE,
    PAUSE,
    PEOPLE_LOST,
    SHARED,
    SYSTEM,
    UNCHECKED,
    USER,
    WITHDRAW,
    Row,
    Zone,
)
from watchroom.rules.conflicts import NOT_A_FILE, checkout_of

NeedKind: TypeAlias = Literal[
    "forged",
    "unreadable",
    "conflict",
    "request",
    "lost",
    "failed",
    "expired",
    "breaker",
    "budget",
    "message",
    "outside",
    "unchecked",
    "denied",
    "stalled",
    "handoff",
]
URGENCY: Final[tuple[NeedKind, ...]] = get_args(NeedKind)
"""What a person should look at first, of needs without a deadline."""
NeedAnswer: TypeAlias = Literal[
    "approve", "reject", "reply", "choose", "merge", "compare", "edit", "resume", "message", "seen"
]
"""What deals with a need: answers to a request, the merge, a look at the difference, another valid file, the
command that resumes, a message to the agent, or that a person has seen it."""

EXPIRED: Final = "expired"
"""The key of the need for all requests that expired."""
UNREADABLE: Final = "unreadable"
"""The key of the need for all rows that cannot be read."""
TRIPWIRES: Final = frozenset({"agent_cannot_answer", "keys_not_typed"})
"""The errors of decisions that somebody else tried to make in a person's name."""
_OPENED_BY_SYSTEM: Final[Mapping[str, NeedKind]] = {
    LOST: "lost",
    BUDGET_WARNING: "budget",
    PAUSE: "breaker",
    PEOPLE_LOST: "forged",
}
"""By the tool of a row that Watchroom itself makes."""
_ENDED_BY_TIME: Final = '"outcome": "expired"'
_FAILED: Final = '"status": "error"'
"""In the detail of a step. Looked for as text: there are many steps, and few fail."""


def need_opened_by(row: Row) -> NeedKind | None:
    """The kind of need that ``row`` may open, None if it opens none. As far as the row itself tells: a
    refusal is a need only when it was repeated, an unchecked write only over another's version, and a
    conflict only until it is settled, a lost process only if it ran something."""
    if row.actor == SYSTEM and row.tool in _OPENED_BY_SYSTEM:
        return _OPENED_BY_SYSTEM[row.tool]
    if row.actor == OUTSIDE:
        is_need = row.outcome == "conflict" or row.error in (ConfigInvalid.code, NOT_A_FILE)
        return "outside" if is_need else None
    if row.kind == "human" and row.version is None:
        # A person who is refused sees it at once.
        return "forged" if row.error in TRIPWIRES else None
    if row.outcome == "denied":
        return "denied"
    if row.outcome == "conflict":
        return "conflict" if row.zone in SHARED else None
    if row.outcome == "ok" and row.zone == "agent" and row.tool == MESSAGE:
        return "message" if row.path == USER else None
    if row.version is None:
        return None
    if row.zone in SHARED:
        return "unchecked" if row.base == UNCHECKED else None
    if row.zone == "session":
        return "failed" if _FAILED in row.detail_json else None
    if row.zone == "request":
        if row.version == 1:
            return "request"
        return "expired" if row.tool == WITHDRAW and _ENDED_BY_TIME in row.detail_json else None
    return "handoff" if row.zone == "handoff" and not row.deleted else None


def need_key(kind: NeedKind, actor: str, row: Row) -> str:
    """What tells a need of ``kind`` from the others of its kind: it is about ``actor``, or about what ``row``
    is about."""
    if kind in ("failed", "message"):
        return actor
    if kind == "expired":
        return EXPIRED
    if kind == "unreadable":
        return UNREADABLE
    if kind == "forged":
        # Anybody who writes rows past the tools can write many: they are one matter.
        return actor
    if kind == "denied":
        return f"{actor} {row.zone} {row.path}"
    if kind == "outside":
        checkout = checkout_of(row) if row.zone in SHARED else ""
        return f"{row.zone} {row.path} {checkout}" if checkout else f"{row.zone} {row.path}"
    if kind == "conflict":
        return f"{_qualified_path(row)} {actor}"
    return _qualified_path(row) if kind == "unchecked" else row.path


def is_acknowledgeable(kind: NeedKind, zone: Zone) -> bool:
    """Whether a person who looked at a need of ``kind`` about something in ``zone``, and finds it fine, can
    say so. A conflict has to be settled, and a request answered."""
    return zone == "handoff" if kind == "outside" else kind not in ("conflict", "request")


def need_answers(kind: NeedKind, row: Row) -> tuple[NeedAnswer, ...]:
    """What deals with a need of ``kind`` that ``row`` tells of, the usual first."""
    if kind == "request":
        return _REQUEST_ANSWERS.get(str(row.detail.get("kind")), ("reply", "reject"))
    if kind == "outside" and row.error == NOT_A_FILE:
        return ("edit",)
    if kind == "outside" and row.zone not in SHARED:
        return ("seen",) if row.zone == "handoff" else ("edit",)
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
    "expired": ("seen",),
    "breaker": ("resume", "message", "seen"),
    "budget": ("seen",),
    "message": ("message", "seen"),
    "outside": ("merge",),
    "unchecked": ("compare", "seen"),
    "denied": ("message", "seen"),
    "stalled": ("message", "seen"),
    "handoff": ("message", "seen"),
}


def _qualified_path(row: Row) -> str:
    """A path that is not the path of another zone's; that of a shared file stands as it is."""
    return row.path if row.zone == "collab" else f"{row.zone} {row.path}"
