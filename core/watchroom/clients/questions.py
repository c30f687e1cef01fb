"""What people are asked about the call of a client's own tool, and what of their answer the model is told."""

from __future__ import annotations

import json

from watchroom.clients.differences import call_difference
from watchroom.rules.requests import (
    DIFFERENCE,
    POLICY_RULE,
    CallDecision,
    PendingCall,
    Request,
    parse_arguments,
)


def build_question(client: str, call: PendingCall, folder: str, rule: str, expires: int) -> Request:
    """The request to approve of ``call`` of ``client``, which works in ``folder``, with what it would change
    there. ``rule`` is that of the policy that asks, empty where the client does; it ``expires`` then
    (nanoseconds since the epoch). It reads the file that the call would change."""
    difference = call_difference(parse_arguments(call.arguments), folder)
    metadata = {"client": client, POLICY_RULE: rule, DIFFERENCE: difference}
    told = {name: value for name, value in metadata.items() if value}
    return Request("approve", calls=(call,), metadata=told, expires=expires)


def format_decision(call: PendingCall, decided: CallDecision) -> str:
    """What was ``decided`` about ``call``, as far as a client takes it only with a prompt: the reason, and
    other arguments. Empty for nothing."""
    told = [decided.reason] if decided.reason else []
    if decided.approved and decided.arguments is not None:
        told.append(f"{call.name} {json.dumps(json.loads(decided.arguments), ensure_ascii=False)}")
    return "\n".join(told)
