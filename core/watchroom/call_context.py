"""On whose behalf rows are made: the tool call that is being carried out, if one is, and what it may write.

It travels with the context, as traces do, so that no zone has to hand it on: every row that a call makes, a
reading or a refusal too, says which call that was, and every write of an approved call is looked at once more
at the moment of its commit.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, NamedTuple

from watchroom.model import Condition, Draft, Json, Write, Zone
from watchroom.rules.trace_context import BEGAN, TRACEPARENT

CALL: Final = "call"
"""The name in a row's detail."""
OPERATION: Final = "operation"
"""The name in a row's detail."""


class CallTrace(NamedTuple):
    """The trace that one call belongs to: the ``traceparent`` of its caller, and when the call ``began``
    (nanoseconds since the epoch)."""

    traceparent: str
    began: int


class _TraceSigns:
    """What the details of the rows of a call of ``trace`` say. The first one says when it began: it stands
    for the call, which has one span, however many rows it makes."""

    def __init__(self, trace: CallTrace) -> None:
        self._later: Mapping[str, Json] = {TRACEPARENT: trace.traceparent}
        self._next: Mapping[str, Json] = {**self._later, BEGAN: trace.began}

    def take(self) -> Mapping[str, Json]:
        """Of the next row."""
        sign, self._next = self._next, self._later
        return sign


_call: Final[ContextVar[str]] = ContextVar("watchroom_call", default="")
_operation: Final[ContextVar[str]] = ContextVar("watchroom_operation", default="")
_trace: Final[ContextVar[_TraceSigns | None]] = ContextVar("watchroom_trace", default=None)
_conditions: Final[ContextVar[tuple[Zone, str, tuple[Condition, ...]] | None]] = ContextVar(
    "watchroom_conditions", default=None
)


@contextmanager
def call_scope(call: str) -> Iterator[None]:
    """Within the context, rows carry the id ``call`` of the tool call that makes them."""
    token = _call.set(call)
    try:
        yield
    finally:
        _call.reset(token)


@contextmanager
def trace_scope(trace: CallTrace | None) -> Iterator[None]:
    """Within the context, rows belong to ``trace``, if there is one."""
    token = _trace.set(_TraceSigns(trace) if trace is not None else None)
    try:
        yield
    finally:
        _trace.reset(token)


@contextmanager
def operation_scope() -> Iterator[str]:
    """A new operation: within the context, rows carry its id (twelve hexadecimal digits), which this
    yields."""
    identity = secrets.token_hex(6)
    token = _operation.set(identity)
    try:
        yield identity
    finally:
        _operation.reset(token)


@contextmanager
def conditional_on(zone: Zone, path: str, conditions: tuple[Condition, ...]) -> Iterator[None]:
    """Within the context, writes to ``path`` of ``zone`` become rows only while ``conditions`` hold."""
    token = _conditions.set((zone, path, conditions))
    try:
        yield
    finally:
        _conditions.reset(token)


def conditions_of(draft: Write) -> tuple[Condition, ...]:
    """The conditions under which ``draft`` may become a row: its own, and those of the call."""
    scope = _conditions.get()
    in_scope = scope is not None and scope[:2] == (draft.zone, draft.path)
    return (*draft.conditions, *scope[2]) if scope and in_scope else draft.conditions


def with_call_context(draft: Draft) -> Draft:
    """``draft`` with the call, the operation and the trace that it belongs to in its detail, and the
    conditions under which it may become a row. Its message and key hold no NUL, which not every journal
    keeps."""
    if "\0" in draft.message:
        draft = draft._replace(message=draft.message.replace("\0", "␀"))
    if "\0" in draft.key:
        draft = draft._replace(key=draft.key.replace("\0", "␀"))
    if isinstance(draft, Write):
        draft = draft._replace(conditions=conditions_of(draft))
    trace = _trace.get()
    named = {CALL: _call.get(), OPERATION: _operation.get()}
    signs: dict[str, Json] = {name: sign for name, sign in named.items() if sign}
    if trace is not None:
        signs |= trace.take()
    return draft._replace(detail={**(draft.detail or {}), **signs}) if signs else draft
