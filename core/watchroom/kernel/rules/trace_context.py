"""The trace context of a remote caller (W3C Trace Context), and how rows record it. Pure."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from watchroom.model import Row

TRACEPARENT: Final = "traceparent"
"""The key in the metadata of a request, and in a row's detail, for the caller's span."""
BEGAN: Final = "call_began"
"""The key in the detail of a traced call's first row: the start of the call (nanoseconds since the epoch)."""
_MARK: Final = f'"{BEGAN}": '
"""Text to search in a detail before it is parsed, because only few rows have it."""
_FORM: Final = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})")
_SAMPLED: Final = 1


class TraceParent(NamedTuple):
    """The span of the caller. ``is_sampled``: the caller records the trace. Ids are hexadecimal."""

    trace_id: str
    span_id: str
    is_sampled: bool


class TracedCall(NamedTuple):
    """A call in the trace of its caller. ``began``: nanoseconds since the epoch."""

    parent: TraceParent
    began: int


def parse_traceparent(given: object) -> TraceParent | None:
    """Parse a ``traceparent``; None if it is malformed or has no span."""
    found = _FORM.fullmatch(given) if isinstance(given, str) else None
    if found is None:
        return None
    return TraceParent(found[1], found[2], bool(int(found[3], 16) & _SAMPLED))


def traced_call(row: Row) -> TracedCall | None:
    """Return the traced call whose first row is ``row``; None for other rows."""
    if _MARK not in row.detail_json:
        return None
    parent, began = parse_traceparent(row.detail.get(TRACEPARENT)), row.detail.get(BEGAN)
    if parent is None or not isinstance(began, int) or isinstance(began, bool):
        return None
    return TracedCall(parent, min(began, row.time))
