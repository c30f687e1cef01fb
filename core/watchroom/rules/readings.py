"""Which rows only tell that somebody looked. Pure."""

from __future__ import annotations

from typing import Final

from watchroom.model import CONTROLS, SEEN, SETTLING_NOTES, WRITE_FILE, Row, Zone
from watchroom.rules.client_calls import client_call
from watchroom.rules.handoffs import ACKNOWLEDGE_TOOL

_READ_ZONES: Final[frozenset[Zone]] = frozenset(
    {"private", "handoff", "collab", "board", "realtime", "file", "buffer"}
)
_ACTS: Final = frozenset({ACKNOWLEDGE_TOOL, SEEN, WRITE_FILE, *SETTLING_NOTES, *CONTROLS})


def is_reading(row: Row) -> bool:
    """Whether ``row`` only tells that somebody read something, or looked what there is: it changed nothing,
    answered nothing and was not refused."""
    call = client_call(row)
    if call is not None:
        return call.kind == "read" and call.outcome == "ok"
    is_note = row.version is None and row.outcome == "ok"
    return is_note and row.zone in _READ_ZONES and row.tool not in _ACTS
