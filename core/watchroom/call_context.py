"""On whose behalf rows are made: the tool call that is being carried out, if one is, and what it may write.

It travels with the context, as traces do, so that no zone has to hand it on: every row that a call makes, a
reading or a refusal too, says which call that was, and every write of an approved call is looked at once more
at the moment of its commit.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, TypeAlias

from watchroom.model import Draft

CALL: Final = "call"
"""The name in a row's detail."""
OPERATION: Final = "operation"
"""The name in a row's detail."""

Guard: TypeAlias = Callable[[Draft], None]
"""Raises a `WatchroomError` for a draft that may not be committed. It is called while nobody else writes."""

_call: Final[ContextVar[str]] = ContextVar("watchroom_call", default="")
_operation: Final[ContextVar[str]] = ContextVar("watchroom_operation", default="")
_guard: Final[ContextVar[Guard | None]] = ContextVar("watchroom_guard", default=None)


@contextmanager
def call_scope(call: str) -> Iterator[None]:
    """Rows made within are the call's."""
    token = _call.set(call)
    try:
        yield
    finally:
        _call.reset(token)


@contextmanager
def operation_scope() -> Iterator[str]:
    """One operation, of which this gives the id (twelve hexadecimal digits): rows made within carry it."""
    identity = secrets.token_hex(6)
    token = _operation.set(identity)
    try:
        yield identity
    finally:
        _operation.reset(token)


@contextmanager
def guarded_by(guard: Guard | None) -> Iterator[None]:
    """What is committed within is looked at by ``guard`` first."""
    token = _guard.set(guard)
    try:
        yield
    finally:
        _guard.reset(token)


def current_guard() -> Guard | None:
    """Who looks at what is committed now."""
    return _guard.get()


def with_call_context(draft: Draft) -> Draft:
    """The draft, with the call on whose behalf it is made, and the operation that it is part of."""
    signs = {CALL: _call.get(), OPERATION: _operation.get()}
    signs = {name: sign for name, sign in signs.items() if sign}
    return draft._replace(detail={**(draft.detail or {}), **signs}) if signs else draft
