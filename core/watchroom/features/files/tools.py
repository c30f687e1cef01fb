"""The tools for private files (FILES-1) and for shared files (FILES-3)."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from watchroom.features.files.rows import READ_TOOL
from watchroom.kernel.rules.file_versions import is_executable
from watchroom.kernel.tools.context import ToolContext
from watchroom.kernel.tools.models import (
    NO_BOOL,
    FrozenModel,
    Message,
    Name,
    NoParams,
    ParamsModel,
    ResultModel,
    Version,
)
from watchroom.kernel.tools.tool import Toolset
from watchroom.model import Row

PRIVATE_TOOLS: Final = Toolset("private")
SHARED_TOOLS: Final = Toolset("collab")


class PrivateSaveParams(ParamsModel):
    filename: Name
    content: str
    message: Message | None = None


class PrivateSaveResult(ResultModel):
    filename: str
    version: int
    size: int


@PRIVATE_TOOLS.tool(
    "save_to_my_workspace", path=("filename",), destroys=True, idempotent=True, audience="agents"
)
def save_to_my_workspace(context: ToolContext, params: PrivateSaveParams) -> PrivateSaveResult:
    """Save the file in ``params`` for the actor of ``context``. Raise `InvalidPath`, `TooLarge`."""
    row = context.zones.private.write(
        context.call,
        context.actor,
        params.filename,
        params.content,
        message=params.message or "",
    )
    return _save_result(context, params, row)


@PRIVATE_TOOLS.replay(save_to_my_workspace)
def _save_result(context: ToolContext, params: PrivateSaveParams, row: Row) -> PrivateSaveResult:
    return PrivateSaveResult(filename=params.filename, version=row.version or 0, size=row.size or 0)


class PrivateReadParams(ParamsModel):
    agent_id: Name
    filename: Name


class PrivateReadResult(ResultModel):
    agent_id: str
    filename: str
    content: str
    size: int


@PRIVATE_TOOLS.tool("read_from_workspace", path=("agent_id", "filename"), reads_only=True)
def read_from_workspace(context: ToolContext, params: PrivateReadParams) -> PrivateReadResult:
    """Return the file in ``params``, which can belong to any agent, to the actor of ``context``. Raise
    `UnknownAgent`, `NotFound`, `NotText`."""
    content, row = context.zones.private.read(context.call, params.agent_id, params.filename)
    return PrivateReadResult(
        agent_id=params.agent_id, filename=params.filename, content=content, size=row.size or 0
    )


class PrivateListParams(ParamsModel):
    agent_id: Name


class PrivateListResult(ResultModel):
    agent_id: str
    files: list[str]
    count: int
    notice: str | None = None
    """The number of files with names that the tools do not accept, as a text."""


@PRIVATE_TOOLS.tool("list_workspace_files", path=("agent_id",), reads_only=True)
def list_workspace_files(context: ToolContext, params: PrivateListParams) -> PrivateListResult:
    """Return the names of the files of the agent in ``params`` to the actor of ``context``. Raise
    `UnknownAgent`."""
    found = context.zones.private.files(context.call, params.agent_id)
    notice = context.texts("listing.unusable", count=found.unusable) if found.unusable else None
    return PrivateListResult(
        agent_id=params.agent_id, files=found.names, count=len(found.names), notice=notice
    )


class PrivateDeleteParams(ParamsModel):
    filename: Name


class PrivateDeleteResult(ResultModel):
    filename: str


@PRIVATE_TOOLS.tool(
    "delete_from_my_workspace", path=("filename",), destroys=True, idempotent=True, audience="agents"
)
def delete_from_my_workspace(context: ToolContext, params: PrivateDeleteParams) -> PrivateDeleteResult:
    """Delete the file in ``params``, which the actor of ``context`` owns. Raise `NotFound`."""
    row = context.zones.private.delete(context.call, context.actor, params.filename)
    return _delete_result(context, params, row)


@PRIVATE_TOOLS.replay(delete_from_my_workspace)
def _delete_result(context: ToolContext, params: PrivateDeleteParams, row: Row) -> PrivateDeleteResult:
    return PrivateDeleteResult(filename=params.filename)


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
    """The reason why the file of the version is not on disk. The version itself is in the journal."""


@SHARED_TOOLS.tool("collab_write", path=("filepath",), destroys=True, may_conflict=True, read_tool=READ_TOOL)
def collab_write(context: ToolContext, params: CollabWriteParams) -> CollabWriteResult:
    """Write the shared file in ``params`` for the actor of ``context``. The expected version is by default
    the version that the actor last saw. Raise `VersionConflict`, `PathBlocked`."""
    expected = params.expected_version
    if expected is None:
        expected = context.seen.get(("collab", params.filepath))
    if expected is None:
        expected = context.zones.collab.last_seen(context.call, params.filepath)
    row = context.zones.collab.write(
        context.call, params.filepath, params.content, expected, message=params.message
    )
    return _write_result(context, params, row)


@SHARED_TOOLS.replay(collab_write)
def _write_result(context: ToolContext, params: CollabWriteParams, row: Row) -> CollabWriteResult:
    overwrote = context.zones.collab.find_overwritten(row)
    context.seen.record("collab", params.filepath, row.version or 0)
    return CollabWriteResult(
        filepath=params.filepath,
        version=row.version or 0,
        overwrote_version=overwrote.version if overwrote else None,
        overwrote_author=overwrote.actor if overwrote else None,
        notice=_describe_disk_error(context, row),
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
    """Reports how people settled the reader's conflicts on this file. Each settlement is reported once."""


@SHARED_TOOLS.tool("collab_read", path=("filepath",), reads_only=True)
def collab_read(context: ToolContext, params: CollabReadParams) -> CollabReadResult:
    """Return a version of a shared file to the actor of ``context``. ``params``: the file and the version,
    default the current version. Raise `NotFound`, `VersionNotFound`."""
    notice = context.zones.conflicts.describe_unread(context.actor, "collab", params.filepath, context.texts)
    found = context.zones.collab.read(context.call, params.filepath, params.version)
    version = found.row.version or 0
    if version == found.current:
        context.seen.record("collab", params.filepath, version)
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
    """True if the file is executable; otherwise left out."""


class CollabListResult(ResultModel):
    files: list[CollabFile]
    count: int


@SHARED_TOOLS.tool("collab_list", reads_only=True)
def collab_list(context: ToolContext, params: NoParams) -> CollabListResult:
    """Return the shared files to the actor of ``context``. ``params`` are empty."""
    files = [
        CollabFile(
            filepath=row.path,
            version=row.version or 0,
            author=row.actor,
            timestamp=row.timestamp,
            size=row.size or 0,
            executable=is_executable(row) or None,
        )
        for row in context.zones.collab.files(context.call)
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
        """Return the entry for ``row``, the row of a version."""
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


@SHARED_TOOLS.tool("collab_history", path=("filepath",), reads_only=True)
def collab_history(context: ToolContext, params: CollabHistoryParams) -> CollabHistoryResult:
    """Return the versions of the shared file in ``params`` to the actor of ``context``. Raise
    `NotFound`."""
    rows = context.zones.collab.history(context.call, params.filepath, limit=params.limit)
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
    """The reason why the file of the version is not on disk. The version itself is in the journal."""


@SHARED_TOOLS.tool("collab_rollback", path=("filepath",), may_conflict=True)
def collab_rollback(context: ToolContext, params: CollabRollbackParams) -> CollabRollbackResult:
    """Write an earlier version of a shared file again, for the actor of ``context``. ``params``: the file and
    the version. Raise `VersionConflict`, `NotFound`, `VersionNotFound`."""
    message = params.message or context.texts("rollback.message", version=params.to_version)
    row = context.zones.collab.rollback(
        context.call,
        params.filepath,
        params.to_version,
        message,
        expected=params.expected_version,
    )
    return _rollback_result(context, params, row)


@SHARED_TOOLS.replay(collab_rollback)
def _rollback_result(context: ToolContext, params: CollabRollbackParams, row: Row) -> CollabRollbackResult:
    context.seen.record("collab", params.filepath, row.version or 0)
    return CollabRollbackResult(
        filepath=params.filepath,
        new_version=row.version or 0,
        restored_version=params.to_version,
        notice=_describe_disk_error(context, row),
    )


def _describe_disk_error(context: ToolContext, row: Row) -> str | None:
    """Return the reason why the file of the version ``row`` was not written to disk; None if it was
    written."""
    reason = context.zones.collab.find_disk_error(row)
    return context.texts("files.not_written", version=row.version, reason=reason) if reason else None
