"""The trace of a caller elsewhere, as W3C Trace Context names it, and how rows keep it. Pure."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from watchroom.model import Row

TRACEPARENT: Final = "traceparent"
"""The name in what a request says of itself, and in the detail of a row."""
BEGAN: Final = "call_began"
"""In the detail of the first row that a traced call makes: when the call came (nanoseconds since the
epoch)."""
_MARK: Final = f'"{BEGAN}": '
"""Looked for as text: there are many rows, and few say it."""
_FORM: Final = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})")
_SAMPLED: Final = 1


class TraceParent(NamedTuple):
    """The span of a caller: its ids in hexadecimal digits, and whether the caller records its trace."""

    trace_id: str
    span_id: str
    is_sampled: bool


class TracedCall(NamedTuple):
    """A call that belongs to the trace of its caller, and when it came (nanoseconds since the epoch)."""

    parent: TraceParent
    began: int


def parse_traceparent(given: object) -> TraceParent | None:
    """The span that ``given``, a ``traceparent``, names; None where it names none."""
    found = _FORM.fullmatch(given) if isinstance(given, str) else None
    if found is None:
        return None
    return TraceParent(found[1], found[2], bool(int(found[3], 16) & _SAMPLED))


def traced_call(row: Row) -> TracedCall | None:
    """The traced call of which ``row`` is the first row; None of any other row."""
    if _MARK not in row.detail_json:
        return None
    parent, began = parse_traceparent(row.detail.get(TRACEPARENT)), row.detail.get(BEGAN)
    if parent is None or not isinstance(began, int) or isinstance(began, bool):
        return None
    return TracedCall(parent, min(began, row.time))
