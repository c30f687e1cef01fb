"""The tool calls by which people answer requests, settle conflicts and say what they have seen. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from watchroom.errors import NotText, TooLarge
from watchroom.features.requests.rows import CallDecision
from watchroom.model import ANSWER, DISMISS, MESSAGE, OUTSIDE, RESOLVE, REVERT, SEEN, Json, Row


class PersonCall(NamedTuple):
    """A call of ``tool`` with ``arguments``, for a person's toolbox."""

    tool: str
    arguments: Mapping[str, Json]


def decide(request: int, *, approved: bool, reason: str = "") -> PersonCall:
    """Approve or reject all calls of the ``request`` with this number. The agent reads the ``reason``."""
    return PersonCall(ANSWER, {"request": request, "approved": approved, "reason": reason or None})


def decide_calls(request: int, decisions: Sequence[CallDecision], reason: str = "") -> PersonCall:
    """Make ``decisions`` on all calls of the ``request`` with this number. The agent reads their reasons, and
    lists show ``reason``."""
    made: list[Mapping[str, Json]] = [
        {
            "call_id": each.call_id,
            "approved": each.approved,
            "reason": each.reason or None,
            "arguments": each.arguments,
        }
        for each in decisions
    ]
    return PersonCall(ANSWER, {"request": request, "decisions": made, "reason": reason or None})


def reply(request: int, text: str) -> PersonCall:
    """Answer the question of the ``request`` with this number with ``text``."""
    return PersonCall(ANSWER, {"request": request, "text": text})


def choose(request: int, values: Sequence[str]) -> PersonCall:
    """Answer the ``request`` with this number with the ``values`` of its options."""
    return PersonCall(ANSWER, {"request": request, "values": list(values)})


def acknowledge(row: int) -> PersonCall:
    """Mark the row with this number as seen."""
    return PersonCall(SEEN, {"row": row})


def write_message(agent: str, text: str) -> PersonCall:
    """Send ``text`` to ``agent``."""
    return PersonCall(MESSAGE, {"to": agent, "payload": {"text": text}})


def take_current(conflict: Row) -> PersonCall:
    """Settle ``conflict`` (a refused write or an external edit) with the current version."""
    if conflict.actor == OUTSIDE:
        return PersonCall(REVERT, {"filepath": conflict.path, "conflict": conflict.seq})
    return PersonCall(DISMISS, {"conflict": conflict.seq})


def take_incoming(conflict: Row, text: str, version: int, message: str) -> PersonCall:
    """Settle ``conflict`` with its ``text``, as the version after ``version``, with a ``message``."""
    return PersonCall(
        RESOLVE,
        {
            "filepath": conflict.path,
            "content": text,
            "message": message,
            "expected_version": version,
            "conflicts": [conflict.seq],
        },
    )


def has_text(conflict: Row) -> bool:
    """Return whether ``conflict`` has a text to take. It has none if the file was deleted, is binary or is
    too long."""
    return conflict.actor != OUTSIDE or (
        conflict.sha256 is not None and conflict.error not in (NotText.code, TooLarge.code)
    )
