"""The tools with which people settle what waits for them. Agents have none of them: they write again."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from watchroom.toolbox.context import ToolContext
from watchroom.toolbox.models import NO_BOOL, Message, Name, ParamsModel, ResultModel, RowNumber
from watchroom.toolbox.tool import Toolset

TOOLS: Final = Toolset("collab", audience="people")
tool = TOOLS.tool


class ResolveConflictParams(ParamsModel):
    filepath: Name
    content: str
    message: Message
    expected_version: Annotated[int, Field(ge=0, le=2**31 - 1), NO_BOOL]
    conflicts: Annotated[list[RowNumber], Field(min_length=1, max_length=1000)]


class ResolveConflictResult(ResultModel):
    filepath: str
    version: int
    conflicts: list[int]


@tool("resolve_conflict", path=("filepath",), destroys=True, may_conflict=True)
def resolve_conflict(context: ToolContext, params: ResolveConflictParams) -> ResolveConflictResult:
    """Write the text in ``params`` and settle the conflicts that it resolves, for the person of ``context``.
    Raises `NotAConflict`, `VersionConflict`, `BoardLeased`."""
    row = context.zones.conflicts.resolve(
        context.actor,
        params.filepath,
        params.content,
        params.expected_version,
        params.conflicts,
        params.message,
    )
    context.record_seen(row.zone, params.filepath, row.version or 0)
    return ResolveConflictResult(
        filepath=params.filepath, version=row.version or 0, conflicts=params.conflicts
    )


class DismissConflictParams(ParamsModel):
    conflict: RowNumber
    message: Message | None = None


class DismissConflictResult(ResultModel):
    filepath: str
    conflict: int


@tool("dismiss_conflict")
def dismiss_conflict(context: ToolContext, params: DismissConflictParams) -> DismissConflictResult:
    """Settle the conflict in ``params`` without a new version, for the person of ``context``. Raises
    `NotAConflict`, `OutsideConflict`, `ConflictSettled`."""
    row = context.zones.conflicts.dismiss(context.actor, params.conflict, params.message or "")
    return DismissConflictResult(filepath=row.path, conflict=params.conflict)


class RevertOutsideEditParams(ParamsModel):
    filepath: Name
    conflict: RowNumber | None = None
    message: Message | None = None


class RevertOutsideEditResult(ResultModel):
    filepath: str
    version: int
    """The version that is on disk again, 0 if none: then the file is gone."""


@tool("revert_outside_edit", path=("filepath",), destroys=True)
def revert_outside_edit(context: ToolContext, params: RevertOutsideEditParams) -> RevertOutsideEditResult:
    """Put the current version of the file in ``params`` in place of an edit made by hand, for the person of
    ``context``. Raises `EditedAgain`, `NoOutsideEdit`, `ConflictSettled`, `NotAConflict`."""
    row = context.zones.conflicts.revert(
        context.actor, params.filepath, params.conflict, params.message or ""
    )
    return RevertOutsideEditResult(filepath=row.path, version=row.base or 0)


class MarkAsSeenParams(ParamsModel):
    row: RowNumber
    message: Message | None = None


class MarkAsSeenResult(ResultModel):
    row: int
    path: str


@tool("mark_as_seen", idempotent=True)
def mark_as_seen(context: ToolContext, params: MarkAsSeenParams) -> MarkAsSeenResult:
    """Record that the person of ``context`` has seen the row in ``params``. Raises `NothingWaits`."""
    row = context.zones.acknowledgements.acknowledge(context.actor, params.row, params.message or "")
    return MarkAsSeenResult(row=params.row, path=row.path)
