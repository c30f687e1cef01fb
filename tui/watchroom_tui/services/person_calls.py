"""Tool calls of people: answer requests, settle conflicts, send messages and mark rows as seen. The functions
are pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from watchroom.errors import NotText, TooLarge
from watchroom.features.policy.grants import GrantChoice
from watchroom.features.requests.rows import CallDecision
from watchroom.features.sessions.rows import AT_RESET
from watchroom.model import (
    ANSWER,
    DISMISS,
    GRANT,
    MESSAGE,
    OUTSIDE,
    RESOLVE,
    RESUME,
    REVERT,
    REVOKE_GRANT,
    SEEN,
    Json,
    Row,
)


class PersonCall(NamedTuple):
    """A call of ``tool`` with ``arguments``, for a person's toolbox."""

    tool: str
    arguments: Mapping[str, Json]


def decide(request: int, *, approved: bool, reason: str = "") -> PersonCall:
    """Return the call that approves or rejects all calls of a request.

    - ``request``: the number of the request.
    - ``reason``: the reason for the agent.
    """
    return PersonCall(ANSWER, {"request": request, "approved": approved, "reason": reason or None})


def grant(request: int, choice: GrantChoice) -> PersonCall:
    """Return the call that grants further calls like the call of a request. ``request``: its number."""
    return PersonCall(GRANT, {"request": request, **choice._asdict()})


def revoke_grant(number: int) -> PersonCall:
    """Return the call that revokes a grant. ``number``: the number of its row."""
    return PersonCall(REVOKE_GRANT, {"grant": number})


def decide_calls(request: int, decisions: Sequence[CallDecision], reason: str = "") -> PersonCall:
    """Return the call that decides all calls of a request.

    - ``request``: the number of the request.
    - ``decisions``: the decisions, with their reasons for the agent.
    - ``reason``: the reason for people, shown with the request in lists.
    """
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
    """Return the call that answers a question with ``text``. ``request``: the number of the request."""
    return PersonCall(ANSWER, {"request": request, "text": text})


def choose(request: int, values: Sequence[str]) -> PersonCall:
    """Return the call that answers a request with the ``values`` of its options. ``request``: the number of
    the request."""
    return PersonCall(ANSWER, {"request": request, "values": list(values)})


def acknowledge(row: int) -> PersonCall:
    """Return the call that marks a row as seen. ``row``: the number of the row."""
    return PersonCall(SEEN, {"row": row})


def write_message(agent: str, text: str) -> PersonCall:
    """Return the call that sends ``text`` to ``agent``."""
    return PersonCall(MESSAGE, {"to": agent, "payload": {"text": text}})


def resume(agent: str, *, at_reset: bool = False) -> PersonCall:
    """Return the call that resumes ``agent``, now or once when its limit resets."""
    return PersonCall(RESUME, {"agent_id": agent, "when": AT_RESET if at_reset else "now"})


def take_current(conflict: Row) -> PersonCall:
    """Return the call that settles ``conflict`` with the current version. ``conflict``: a refused write or an
    external edit."""
    if conflict.actor == OUTSIDE:
        return PersonCall(REVERT, {"filepath": conflict.path, "conflict": conflict.seq})
    return PersonCall(DISMISS, {"conflict": conflict.seq})


def take_incoming(conflict: Row, text: str, version: int, message: str) -> PersonCall:
    """Return the call that settles a conflict with its own text.

    - ``text``: the text of the conflict.
    - ``version``: the expected current version.
    - ``message``: the message of the new version.
    """
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
    """Return whether ``conflict`` has a text. False if the file was deleted, is binary or is too long."""
    return conflict.actor != OUTSIDE or (
        conflict.sha256 is not None and conflict.error not in (NotText.code, TooLarge.code)
    )
