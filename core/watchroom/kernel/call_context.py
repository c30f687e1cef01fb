"""`CallContext`: who acts, and on behalf of which tool call. Services receive it, and make their drafts with
it.

Every row that a call makes, also a reading or a refusal, names the call in its detail.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from watchroom.kernel.journal import NoteKey
from watchroom.kernel.rules.trace_context import BEGAN, TRACEPARENT
from watchroom.model import (
    CALL,
    OPERATION,
    UNCHECKED,
    Condition,
    Draft,
    Json,
    Note,
    Outcome,
    Row,
    Write,
    Zone,
)

if TYPE_CHECKING:
    from watchroom.features.config.rows import Config
    from watchroom.features.tasks.rules import Member


class CallTrace:
    """The trace that one call belongs to. Its first row records when the call began, because the span of the
    call is made from that row.

    - ``traceparent``: the span of the caller (W3C Trace Context).
    - ``began``: when the call came, in nanoseconds since the epoch.
    """

    def __init__(self, traceparent: str, began: int) -> None:
        self._later: Mapping[str, Json] = {TRACEPARENT: traceparent}
        self._next: Mapping[str, Json] = {**self._later, BEGAN: began}

    def take_fields(self) -> Mapping[str, Json]:
        """Return the fields for the detail of the next row."""
        fields, self._next = self._next, self._later
        return fields


class PathConditions(NamedTuple):
    """The ``conditions`` under which a call may write to ``path`` in ``zone``."""

    zone: Zone
    path: str
    conditions: tuple[Condition, ...]


class Seen(NamedTuple):
    """Which version of a path an actor last saw: its ``head``, and the newest ``note`` with ``key`` (zone,
    path, actor, and the tool that reads)."""

    key: NoteKey
    head: Row | None
    note: Row | None


class Caller(NamedTuple):
    """What one query found out about the caller at the start of a call.

    - ``config``: the configuration, the same throughout the call.
    - ``member``: the caller's place in its task; None if it works on no task.
    - ``seen``: which version of the call's path the caller last saw, if the call needs it.
    """

    config: Config
    member: Member | None
    seen: Seen | None


@dataclass(frozen=True, slots=True)
class CallContext:
    """Who acts, and on behalf of which tool call.

    - ``actor``: an agent's id, or ``human:NAME``.
    - ``tool``: the tool in the call's rows.
    - ``id``: the key of the call, which its caller chose; empty if it has none.
    - ``operation``: the id of an operation on a buffer; empty outside of one.
    - ``trace``: the trace of the caller, if it has one.
    - ``conditions``: what must hold for the call to write, because a person approved exactly that.
    - ``caller``: what is known of the caller; None outside of a toolbox.

    Example::

        call = CallContext("alice", "collab_write")
        workspace.collab.write(call, "plan.md", "# Plan", expected=0)
    """

    actor: str
    tool: str = ""
    id: str = ""
    operation: str = ""
    trace: CallTrace | None = None
    conditions: PathConditions | None = None
    caller: Caller | None = None

    def with_tool(self, tool: str) -> CallContext:
        """Return the same call with rows by ``tool``."""
        return self if tool == self.tool else replace(self, tool=tool)

    def write(
        self,
        zone: Zone,
        path: str,
        content: str | None,
        message: str = "",
        expected: int = UNCHECKED,
        detail: Mapping[str, Json] | None = None,
    ) -> Write:
        """Return the draft of a version of ``path``. See `Write` for the parameters."""
        scope = self.conditions
        conditions = scope.conditions if scope is not None and scope[:2] == (zone, path) else ()
        return Write(
            self.actor,
            self.tool,
            zone,
            path,
            content,
            message,
            expected,
            self._detail(detail),
            conditions,
        )

    def note(
        self,
        zone: Zone,
        path: str,
        outcome: Outcome = "ok",
        error: str = "",
        message: str = "",
        content: str | None = None,
        base: int | None = None,
        size: int | None = None,
        detail: Mapping[str, Json] | None = None,
        durable: bool = True,
    ) -> Note:
        """Return the draft of a row that changes no version. See `Note` for the parameters."""
        return Note(
            self.actor,
            self.tool,
            zone,
            path,
            outcome,
            error,
            message,
            content,
            base,
            None,
            size,
            self._detail(detail),
            durable,
        )

    def stamp(self, draft: Draft) -> Draft:
        """Return ``draft``, made in another actor's name, as a row of this call."""
        return draft._replace(detail=self._detail(draft.detail))

    def _detail(self, detail: Mapping[str, Json] | None) -> Mapping[str, Json] | None:
        fields: dict[str, Json] = {**detail} if detail else {}
        if self.id:
            fields[CALL] = self.id
        if self.operation:
            fields[OPERATION] = self.operation
        if self.trace is not None:
            fields |= self.trace.take_fields()
        return fields or None
