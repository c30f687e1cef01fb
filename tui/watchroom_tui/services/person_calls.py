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
    """Approve or reject all calls of the ``request`` with this number; the agent reads the ``reason``."""
    return PersonCall(ANSWER, {"request": request, "approved": approved, "reason": reason or None})


def decide_calls(request: int, decisions: Sequence[CallDecision], reason: str = "") -> PersonCall:
    """Make these ``decisions`` on all calls that the ``request`` with this number asks about, for ``reason``
    as lists show it; the agent reads the reason of each."""
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
    """Answer the question of the ``request`` with this number by ``text``."""
    return PersonCall(ANSWER, {"request": request, "text": text})


def choose(request: int, values: Sequence[str]) -> PersonCall:
    """Answer the ``request`` with this number by the ``values`` of its options."""
    return PersonCall(ANSWER, {"request": request, "values": list(values)})


def acknowledge(row: int) -> PersonCall:
    """Say that the row with this number was looked at, and needs nobody any more."""
    return PersonCall(SEEN, {"row": row})


def write_message(agent: str, text: str) -> PersonCall:
    """Write ``text`` to ``agent``."""
    return PersonCall(MESSAGE, {"to": agent, "payload": {"text": text}})


def take_current(conflict: Row) -> PersonCall:
    """Settle ``conflict`` (a refused write, or an edit made by hand) by the version that stands."""
    if conflict.actor == OUTSIDE:
        return PersonCall(REVERT, {"filepath": conflict.path, "conflict": conflict.seq})
    return PersonCall(DISMISS, {"conflict": conflict.seq})


def take_incoming(conflict: Row, text: str, version: int, message: str) -> PersonCall:
    """Settle ``conflict`` by its ``text``, as the version after ``version``, with a ``message``."""
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
    """Whether there is a text in ``conflict`` that could be taken: not where the file was deleted by hand, or
    is no text, or too long."""
    return conflict.actor != OUTSIDE or (
        conflict.sha256 is not None and conflict.error not in (NotText.code, TooLarge.code)
    )
