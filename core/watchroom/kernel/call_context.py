"""`CallContext`: the actor and the tool call of an operation. Services receive it, and create their drafts
with it.

Every row of a call names the call in its detail. That includes reads and refusals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from watchroom.kernel.journal import NoteKey
from watchroom.kernel.rules.trace_context import BEGAN, TRACEPARENT
from watchroom.model import (
    CALL,
    NOTICES,
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
    """The trace of one call. The first row of the call records its start, because the span of the call is
    created from that row.

    - ``traceparent``: the span of the caller (W3C Trace Context).
    - ``began``: the time at which the call arrived, in nanoseconds since the epoch.
    """

    def __init__(self, traceparent: str, began: int) -> None:
        self._later: Mapping[str, Json] = {TRACEPARENT: traceparent}
        self._next: Mapping[str, Json] = {**self._later, BEGAN: began}

    def take_fields(self) -> Mapping[str, Json]:
        """Return the fields for the detail of the next row."""
        fields, self._next = self._next, self._later
        return fields


class CallNotices:
    """The notices for the result of one call. The first row of the call by its actor records them, so its
    rows show what the actor was notified of.

    - ``claim``: returns the notices that no other call has given. Called once, for the first row.
    - ``left``: the number of changed paths whose notices follow later.
    - ``given`` (attribute): the recorded notices; empty before the first row.
    """

    def __init__(self, claim: Callable[[], Sequence[Mapping[str, Json]]], left: int) -> None:
        self._claim: Callable[[], Sequence[Mapping[str, Json]]] | None = claim
        self.left = left
        self.given: Sequence[Mapping[str, Json]] = ()

    def take_fields(self) -> Mapping[str, Json]:
        """Return the fields for the detail of the next row."""
        claim, self._claim = self._claim, None
        if claim is None:
            return {}
        self.given = claim()
        return {NOTICES: self.given} if self.given else {}


class PathConditions(NamedTuple):
    """The ``conditions`` under which a call may write to ``path`` in ``zone``."""

    zone: Zone
    path: str
    conditions: tuple[Condition, ...]


class Seen(NamedTuple):
    """The version of a path that an actor last saw: the path's ``head``, and the newest ``note`` with ``key``
    (zone, path, actor, reading tool)."""

    key: NoteKey
    head: Row | None
    note: Row | None


class Caller(NamedTuple):
    """The data about the caller that one query finds at the start of a call.

    - ``config``: the configuration, the same throughout the call.
    - ``member``: the caller as a member of its task; None if it works on no task.
    - ``seen``: the version of the call's path that the caller last saw, if the call needs it.
    - ``watched``: the heads of the paths whose changes the caller is notified of.
    """

    config: Config
    member: Member | None
    seen: Seen | None
    watched: Sequence[Row] = ()


@dataclass(frozen=True, slots=True)
class CallContext:
    """The actor and the tool call of an operation.

    - ``actor``: an agent's id, or ``human:NAME``.
    - ``tool``: the tool named in the call's rows.
    - ``id``: the key of the call, chosen by its caller; empty if it has none.
    - ``operation``: the id of an operation on a buffer; empty for other calls.
    - ``trace``: the trace of the caller, if it has one.
    - ``conditions``: the conditions for a write of the call, because a person approved exactly this write.
    - ``caller``: data about the caller; None outside of a toolbox.
    - ``notices``: the notices for the call's result; None if there are none.

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
    notices: CallNotices | None = None

    def with_tool(self, tool: str) -> CallContext:
        """Return the same call with ``tool`` as the tool of its rows."""
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
            self._own_detail(detail),
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
            self._own_detail(detail),
            durable,
        )

    def stamp(self, draft: Draft) -> Draft:
        """Return ``draft``, which has another actor, as a row of this call."""
        return draft._replace(detail=self._detail(draft.detail))

    def _own_detail(self, detail: Mapping[str, Json] | None) -> Mapping[str, Json] | None:
        fields = self._detail(detail)
        if self.notices is None:
            return fields
        return {**(fields or {}), **self.notices.take_fields()} or None

    def _detail(self, detail: Mapping[str, Json] | None) -> Mapping[str, Json] | None:
        fields: dict[str, Json] = {**detail} if detail else {}
        if self.id:
            fields[CALL] = self.id
        if self.operation:
            fields[OPERATION] = self.operation
        if self.trace is not None:
            fields |= self.trace.take_fields()
        return fields or None
