"""The ids of sessions that clients gave theirs. Pure."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Final

from watchroom.rules.usage import SHARED_ID

_NO_ID: Final = re.compile(r"[^A-Za-z0-9_.-]", re.ASCII)
_LONGEST_ID: Final = 64


def session_id_of(given: str) -> str:
    """The id of the session that a client calls ``given``: the same where a session's id can be that."""
    kept = _NO_ID.sub("-", given).lstrip("_.-")[:_LONGEST_ID]
    return kept if kept == given else f"{kept[: _LONGEST_ID - 9] or 'session'}-{fingerprint(given)[:8]}"


def subagent_id_of(parent: str, subagent: str) -> str:
    """The id of the session of what a client calls ``subagent``, which the session with the id ``parent``
    started."""
    return session_id_of(f"{parent[:SHARED_ID]}.{subagent}")


def fingerprint(text: str) -> str:
    """What tells ``text`` from others: the same whatever blanks stand around it."""
    return hashlib.sha256(json.dumps(text.strip()).encode()).hexdigest()
