"""On whose behalf rows are made: the tool call that is being carried out, if one is, and what it may write.

It travels with the context, as traces do, so that no zone has to hand it on: every row that a call makes, a
reading or a refusal too, says which call that was, and every write of an approved call is looked at once more
at the moment of its commit.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from watchroom.model import Condition, Draft, Write, Zone

CALL: Final = "call"
"""The name in a row's detail."""
OPERATION: Final = "operation"
"""The name in a row's detail."""

_call: Final[ContextVar[str]] = ContextVar("watchroom_call", default="")
_operation: Final[ContextVar[str]] = ContextVar("watchroom_operation", default="")
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
    """``draft`` with the call and the operation that it belongs to in its detail, and the conditions under
    which it may become a row."""
    if isinstance(draft, Write):
        draft = draft._replace(conditions=conditions_of(draft))
    signs = {CALL: _call.get(), OPERATION: _operation.get()}
    signs = {name: sign for name, sign in signs.items() if sign}
    return draft._replace(detail={**(draft.detail or {}), **signs}) if signs else draft
