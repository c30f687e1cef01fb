"""The tools with which people settle conflicts. Agents have no such tools: they write again instead."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from watchroom.features.files.rows import SHARED_FILE_ZONE
from watchroom.kernel.tools.context import ToolContext
from watchroom.kernel.tools.models import NO_BOOL, Message, Name, ParamsModel, ResultModel, RowNumber
from watchroom.kernel.tools.tool import Toolset

TOOLS: Final = Toolset(SHARED_FILE_ZONE, audience="people")
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
    """Write the text in ``params``, and settle the given conflicts with it, for the person of ``context``.
    Raise `NotAConflict`, `VersionConflict`, `BoardLeased`."""
    row = context.zones.conflicts.resolve(
        context.call,
        params.filepath,
        params.content,
        params.expected_version,
        params.conflicts,
        params.message,
    )
    context.seen.record(row.zone, params.filepath, row.version or 0)
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
    """Settle the conflict in ``params`` by keeping the current version, for the person of ``context``. Raise
    `NotAConflict`, `OutsideConflict`, `ConflictSettled`."""
    row = context.zones.conflicts.dismiss(context.call, params.conflict, params.message or "")
    return DismissConflictResult(filepath=row.path, conflict=params.conflict)


class RevertOutsideEditParams(ParamsModel):
    filepath: Name
    conflict: RowNumber | None = None
    message: Message | None = None


class RevertOutsideEditResult(ResultModel):
    filepath: str
    version: int
    """The restored version. 0 if there is none, and the file was deleted."""


@tool("revert_outside_edit", path=("filepath",), destroys=True)
def revert_outside_edit(context: ToolContext, params: RevertOutsideEditParams) -> RevertOutsideEditResult:
    """Replace an external edit of the file in ``params`` by the current version, for the person of
    ``context``. Raise `EditedAgain`, `NoOutsideEdit`, `ConflictSettled`, `NotAConflict`."""
    row = context.zones.conflicts.revert(context.call, params.filepath, params.conflict, params.message or "")
    return RevertOutsideEditResult(filepath=row.path, version=row.base or 0)
