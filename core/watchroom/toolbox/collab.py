"""The collaborative zone's tools (FILES-3)."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from watchroom.errors import InvalidPath
from watchroom.journal import NoteKey
from watchroom.model import Row, Zone
from watchroom.rules.task_versions import is_executable
from watchroom.toolbox.context import ToolContext
from watchroom.toolbox.models import (
    NO_BOOL,
    FrozenModel,
    Message,
    Name,
    NoParams,
    ParamsModel,
    ResultModel,
    Version,
)
from watchroom.toolbox.tool import Toolset

TOOLS: Final = Toolset("collab")
tool = TOOLS.tool


class SharedFileParams(ParamsModel):
    filepath: Name


class CollabWriteParams(SharedFileParams):
    content: str
    message: Message
    expected_version: Annotated[int, Field(ge=-1, le=2**31 - 1), NO_BOOL] | None = None


class CollabWriteResult(ResultModel):
    filepath: str
    version: int
    overwrote_version: int | None = None
    overwrote_author: str | None = None
    notice: str | None = None
    """That the version is kept, and its file could not be written to disk."""


def _seen_key(context: ToolContext, params: CollabWriteParams) -> NoteKey | None:
    """Of what a write asks which version its actor last saw."""
    if params.expected_version is not None or context.has_seen("collab", params.filepath):
        return None
    try:
        return context.zones.collab.seen_key(context.actor, params.filepath)
    except InvalidPath:
        # The call refuses it, once the policy has said what it says of it.
        return None


@tool("collab_write", path=("filepath",), destroys=True, may_conflict=True, seen=_seen_key)
def collab_write(context: ToolContext, params: CollabWriteParams) -> CollabWriteResult:
    """Write a shared file as ``params`` say; without an expected version, the one that the actor of
    ``context`` last saw is expected. Raises `VersionConflict`, `PathBlocked`."""
    expected = params.expected_version
    if expected is None:
        expected = context.last_seen("collab", params.filepath)
    row = context.zones.collab.write(
        context.actor, params.filepath, params.content, expected, tool="collab_write", message=params.message
    )
    return _write_result(context, params, row)


@TOOLS.replay(collab_write)
def _write_result(context: ToolContext, params: CollabWriteParams, row: Row) -> CollabWriteResult:
    overwrote = context.zones.collab.written_over(row)
    context.record_seen("collab", params.filepath, row.version or 0)
    return CollabWriteResult(
        filepath=params.filepath,
        version=row.version or 0,
        overwrote_version=overwrote.version if overwrote else None,
        overwrote_author=overwrote.actor if overwrote else None,
        notice=layout_notice(context, row),
    )


class CollabReadParams(SharedFileParams):
    version: Version | None = None


class CollabReadResult(ResultModel):
    filepath: str
    content: str
    version: int
    current_version: int
    author: str
    message: str
    timestamp: str
    checksum: str
    notice: str | None = None
    """How a person settled a conflict of the reader's on this file; given once."""


@tool("collab_read", path=("filepath",), reads_only=True)
def collab_read(context: ToolContext, params: CollabReadParams) -> CollabReadResult:
    """Return the version of a shared file that ``params`` name, by default the current one, to the actor of
    ``context``. Raises `NotFound`, `VersionNotFound`."""
    notice = settlement_notices(context, "collab", params.filepath)
    found = context.zones.collab.read(context.actor, params.filepath, params.version)
    version = found.row.version or 0
    if version == found.current:
        context.record_seen("collab", params.filepath, version)
    return CollabReadResult(
        filepath=params.filepath,
        content=found.content,
        version=version,
        current_version=found.current,
        author=found.row.actor,
        message=found.row.message,
        timestamp=found.row.timestamp,
        checksum=found.row.sha256 or "",
        notice=notice,
    )


class CollabFile(FrozenModel):
    filepath: str
    version: int
    author: str
    timestamp: str
    size: int
    executable: bool | None = None
    """True if the file may be executed, else left out."""


class CollabListResult(ResultModel):
    files: list[CollabFile]
    count: int


@tool("collab_list", reads_only=True)
def collab_list(context: ToolContext, params: NoParams) -> CollabListResult:
    """Return the shared files, to the actor of ``context``; ``params`` are empty."""
    files = [
        CollabFile(
            filepath=row.path,
            version=row.version or 0,
            author=row.actor,
            timestamp=row.timestamp,
            size=row.size or 0,
            executable=is_executable(row) or None,
        )
        for row in context.zones.collab.files(context.actor, tool="collab_list")
    ]
    return CollabListResult(files=files, count=len(files))


class CollabHistoryParams(SharedFileParams):
    limit: Annotated[int, Field(ge=1), NO_BOOL] | None = None


class HistoryEntry(FrozenModel):
    version: int
    author: str
    message: str
    timestamp: str
    checksum: str
    size: int

    @classmethod
    def of(cls, row: Row) -> HistoryEntry:
        """Return the entry of ``row``, which wrote a version."""
        return cls(
            version=row.version or 0,
            author=row.actor,
            message=row.message,
            timestamp=row.timestamp,
            checksum=row.sha256 or "",
            size=row.size or 0,
        )


class CollabHistoryResult(ResultModel):
    filepath: str
    history: list[HistoryEntry]
    count: int


@tool("collab_history", path=("filepath",), reads_only=True)
def collab_history(context: ToolContext, params: CollabHistoryParams) -> CollabHistoryResult:
    """Return the versions of the shared file in ``params``, to the actor of ``context``. Raises
    `NotFound`."""
    rows = context.zones.collab.history(
        context.actor, params.filepath, tool="collab_history", limit=params.limit
    )
    entries = [HistoryEntry.of(row) for row in rows]
    return CollabHistoryResult(filepath=params.filepath, history=entries, count=len(entries))


class CollabRollbackParams(SharedFileParams):
    to_version: Version
    expected_version: Version | None = None
    message: Message | None = None


class CollabRollbackResult(ResultModel):
    filepath: str
    new_version: int
    restored_version: int
    notice: str | None = None
    """That the version is kept, and its file could not be written to disk."""


@tool("collab_rollback", path=("filepath",), may_conflict=True)
def collab_rollback(context: ToolContext, params: CollabRollbackParams) -> CollabRollbackResult:
    """Write an earlier version of a shared file once more, as ``params`` say, for the actor of ``context``.
    Raises `VersionConflict`, `NotFound`, `VersionNotFound`."""
    message = params.message or context.texts("rollback.message", version=params.to_version)
    row = context.zones.collab.rollback(
        context.actor,
        params.filepath,
        params.to_version,
        message,
        tool="collab_rollback",
        expected=params.expected_version,
    )
    return _rollback_result(context, params, row)


@TOOLS.replay(collab_rollback)
def _rollback_result(context: ToolContext, params: CollabRollbackParams, row: Row) -> CollabRollbackResult:
    context.record_seen("collab", params.filepath, row.version or 0)
    return CollabRollbackResult(
        filepath=params.filepath,
        new_version=row.version or 0,
        restored_version=params.to_version,
        notice=layout_notice(context, row),
    )


def layout_notice(context: ToolContext, row: Row) -> str | None:
    """Return why the file of the version ``row`` could not be written to disk; None if it was written."""
    reason = context.zones.collab.layout_failure(row)
    return context.texts("files.not_written", version=row.version, reason=reason) if reason else None


def settlement_notices(context: ToolContext, zone: Zone, path: str) -> str | None:
    """Return what ``context``'s actor has to know of its conflicts on ``path`` of ``zone`` that people
    settled, one line each; None if nothing. Each is returned once."""
    rows = context.zones.conflicts.find_unread(context.actor, zone, path)
    return "\n".join(_settlement_notice(context, row) for row in rows) or None


def _settlement_notice(context: ToolContext, row: Row) -> str:
    kind = "resolved" if row.version else "dismissed"
    version = row.version or row.base
    message = context.texts("conflict.saying", message=row.message) if row.message else ""
    return context.texts(f"conflict.{kind}", who=row.actor, path=row.path, version=version, message=message)
