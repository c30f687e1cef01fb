"""What Watchroom supervises of each client, derived from its record. Pure.

Each value names a text: ``client.can.VALUE`` in the dashboard's catalogues.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias, get_args

from watchroom.agents.clients.adapter import AcpSupport, HookSupport
from watchroom.agents.clients.hook_answers import AFTER, BEFORE, PERMISSION, START, STOP

Aspect: TypeAlias = Literal[
    "own_tools",
    "stale_write",
    "shell",
    "questions",
    "live_text",
    "usage",
    "stop",
    "pause",
    "parked",
    "resume",
    "messages",
    "notices",
]
ASPECTS: Final[tuple[Aspect, ...]] = get_args(Aspect)


def supervised_by_hooks(hooks: HookSupport) -> Mapping[Aspect, str]:
    """Return what is supervised of a client with ``hooks``, in a repository."""
    events = hooks.events
    usage = hooks.has_session_file or "PostModelRequest" in events
    found: dict[Aspect, str] = {
        "own_tools": "yes" if BEFORE in events else "no",
        "stale_write": "merged" if hooks.merges_texts else "yes",
        "shell": "yes" if AFTER in events else "no",
        "questions": "yes" if PERMISSION in events else "own_dialog",
        "live_text": "complete" if hooks.has_session_file else "no",
        "usage": "yes" if usage else "no",
        "stop": "denied_then_signal",
        "pause": "holds",
        "parked": "yes" if hooks.reports_limits else "no",
        "resume": "yes" if START in events else "no",
        "messages": "when_it_acts" if STOP in events else "no",
        "notices": "yes" if AFTER in events else "no",
    }
    if "MessageDisplay" in events:
        found["live_text"] = "live"
    if hooks.waits_when_idle:
        found["messages"] = "wakes"
    return found


def supervised_by_protocol(acp: AcpSupport) -> Mapping[Aspect, str]:
    """Return what is supervised of a client that `watchroom run` starts. If nobody has tried the client,
    only the protocol is known."""
    is_known = acp.tried != ""
    return {
        "own_tools": "if_it_asks" if acp.no_tools is None else "if_it_asks_or_none",
        "stale_write": "no",
        "shell": "external",
        "questions": "yes" if is_known else "if_asked",
        "live_text": "live",
        "usage": "yes" if is_known else "if_reported",
        "stop": "cancel_then_signal",
        "pause": "cancels",
        "parked": "yes" if is_known else "if_reported",
        "resume": "yes" if is_known else "if_loaded",
        "messages": "next_prompt",
        "notices": "no",
    }
