"""On whose behalf rows are made: the tool call that is being carried out, if one is.

It travels with the context, as traces do, so that no zone has to hand it on: every row that a call makes, a
reading or a refusal too, says which call that was.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from watchroom.model import Draft

CALL: Final = "call"
"""The name in a row's detail."""

_call: Final[ContextVar[str]] = ContextVar("watchroom_call", default="")


@contextmanager
def on_behalf_of(call: str) -> Iterator[None]:
    """Rows made within are the call's."""
    token = _call.set(call)
    try:
        yield
    finally:
        _call.reset(token)


def signed(draft: Draft) -> Draft:
    """The draft, with the call on whose behalf it is made."""
    call = _call.get()
    return draft._replace(detail={**(draft.detail or {}), CALL: call}) if call else draft
