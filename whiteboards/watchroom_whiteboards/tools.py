"""The whiteboards' tools, which the toolbox offers beside its own (see `watchroom.toolbox.tool_registry`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

from pydantic import Field
from watchroom.merge import diff_hunks
from watchroom.model import Row
from watchroom.texts import catalogue
from watchroom.toolbox.collab import HistoryEntry, settlement_notices
from watchroom.toolbox.conflict_diff import truncate_diff
from watchroom.toolbox.context import ToolContext
from watchroom.toolbox.models import (
    NO_BOOL,
    NO_BOOL_AS_FLOAT,
    Message,
    Name,
    ParamsModel,
    ResultModel,
    Version,
)
from watchroom.toolbox.tool import Toolset
from watchroom.zones.boards import SECTION
from watchroom.zones.leases import LEASE_WAIT_SECONDS

from watchroom_whiteboards.texts import TEXTS

if TYPE_CHECKING:
    from watchroom_whiteboards.whiteboards import Whiteboards

Wait = Annotated[float, Field(ge=0, le=60), NO_BOOL_AS_FLOAT]
Expected = Annotated[int, Field(ge=-1, le=2**31 - 1), NO_BOOL]

TOOLS: Final = Toolset("board", texts=TEXTS)
tool = TOOLS.tool


class BoardReadParams(ParamsModel):
    board: Name
    section: Name | None = None
    version: Version | None = None
    hold: bool | None = None


class BoardReadResult(ResultModel):
    board: str
    content: str
    version: int
    """0 where nothing was written yet: the content is the template then."""
    current_version: int
    section: str | None = None
    author: str | None = None
    timestamp: str | None = None
    held_for_seconds: float | None = None
    notice: str | None = None
    """How a person settled a conflict of the reader's on this board; given once."""


@tool("whiteboard_read", path=("board",), reads_only=True)
def whiteboard_read(context: ToolContext, params: BoardReadParams) -> BoardReadResult:
    """Return a whiteboard, or a section of it, as ``params`` say, to the actor of ``context``. Raises
    `BoardNotFound`, `BoardDenied`, `VersionNotFound`, `SectionNotFound`."""
    notice = settlement_notices(context, "board", params.board)
    found = _boards(context).read(
        context.actor, params.board, version=params.version, section=params.section, hold=bool(params.hold)
    )
    if found.version == found.current and not found.section:
        context.record_seen("board", params.board, found.version)
    seconds = None
    if found.lease is not None:
        seconds = (found.lease.expires - found.lease.acquired) / 1000
    return BoardReadResult(
        board=params.board,
        content=found.content,
        version=found.version,
        current_version=found.current,
        section=found.section or None,
        author=found.row.actor if found.row else None,
        timestamp=found.row.timestamp if found.row else None,
        held_for_seconds=seconds,
        notice=notice,
    )


class BoardWriteParams(ParamsModel):
    board: Name
    content: str
    message: Message
    expected_version: Expected | None = None
    wait_seconds: Wait | None = None


class BoardWriteResult(ResultModel):
    board: str
    version: int
    section: str | None = None
    overwrote_version: int | None = None
    overwrote_author: str | None = None


@tool("whiteboard_write", path=("board",), destroys=True, may_conflict=True)
def whiteboard_write(context: ToolContext, params: BoardWriteParams) -> BoardWriteResult:
    """Write a whiteboard as ``params`` say; without an expected version, the one that the actor of
    ``context`` last saw is expected. Raises `VersionConflict`, `BoardNotFound`, `BoardDenied`,
    `BoardLeased`."""
    boards = _boards(context)
    expected = params.expected_version
    if expected is None:
        expected = context.last_seen("board", params.board)
    row = boards.write(
        context.actor,
        params.board,
        params.content,
        expected,
        tool="whiteboard_write",
        message=params.message,
        wait=_wait(params.wait_seconds),
    )
    return _write_result(context, params, row)


@TOOLS.replay(whiteboard_write)
def _write_result(context: ToolContext, params: BoardWriteParams, row: Row) -> BoardWriteResult:
    overwrote = context.zones.boards.written_over(row)
    context.record_seen("board", params.board, row.version or 0)
    return BoardWriteResult(
        board=params.board,
        version=row.version or 0,
        overwrote_version=overwrote.version if overwrote else None,
        overwrote_author=overwrote.actor if overwrote else None,
    )


class BoardAppendParams(ParamsModel):
    board: Name
    content: Annotated[str, Field(min_length=1)]
    section: Name | None = None
    wait_seconds: Wait | None = None


@tool("whiteboard_append", path=("board",))
def whiteboard_append(context: ToolContext, params: BoardAppendParams) -> BoardWriteResult:
    """Append the entry in ``params`` to a whiteboard, for the actor of ``context``. Raises `SectionNotFound`,
    `SectionAmbiguous`, `InvalidSection`, `BoardLeased`."""
    row = _boards(context).append(
        context.actor,
        params.board,
        params.content,
        tool="whiteboard_append",
        section=params.section,
        wait=_wait(params.wait_seconds),
    )
    return _append_result(context, params, row)


@TOOLS.replay(whiteboard_append)
def _append_result(context: ToolContext, params: BoardAppendParams, row: Row) -> BoardWriteResult:
    """Whoever appends has not seen what others wrote before."""
    return BoardWriteResult(board=params.board, version=row.version or 0, section=params.section)


class BoardUpdateSectionParams(ParamsModel):
    board: Name
    section: Name
    content: str
    expected_version: Expected | None = None
    wait_seconds: Wait | None = None


@tool("whiteboard_update_section", path=("board",), destroys=True, may_conflict=True)
def whiteboard_update_section(context: ToolContext, params: BoardUpdateSectionParams) -> BoardWriteResult:
    """Replace the section in ``params`` of a whiteboard, for the actor of ``context``. Raises
    `VersionConflict`, `SectionNotFound`, `SectionAmbiguous`, `InvalidSection`, `BoardLeased`."""
    row = _boards(context).update_section(
        context.actor,
        params.board,
        params.section,
        params.content,
        expected=params.expected_version,
        seen=context.last_seen("board", params.board),
        tool="whiteboard_update_section",
        wait=_wait(params.wait_seconds),
    )
    return _update_section_result(context, params, row)


@TOOLS.replay(whiteboard_update_section)
def _update_section_result(
    context: ToolContext, params: BoardUpdateSectionParams, row: Row
) -> BoardWriteResult:
    return BoardWriteResult(board=params.board, version=row.version or 0, section=str(row.detail[SECTION]))


class BoardHistoryParams(ParamsModel):
    board: Name
    limit: Annotated[int, Field(ge=1), NO_BOOL] | None = None
    diff_from: Version | None = None
    diff_to: Version | None = None


class BoardHistoryResult(ResultModel):
    board: str
    history: list[HistoryEntry]
    count: int
    diff: str | None = None
    """A unified diff of the two versions that were asked for."""


@tool("whiteboard_history", path=("board",), reads_only=True)
def whiteboard_history(context: ToolContext, params: BoardHistoryParams) -> BoardHistoryResult:
    """Return the versions of the whiteboard in ``params``, and a diff of two where asked for, to the actor of
    ``context``. Raises `BoardNotFound`, `BoardDenied`, `VersionNotFound`."""
    boards = _boards(context)
    rows = boards.history(context.actor, params.board, limit=params.limit)
    entries = [HistoryEntry.of(row) for row in rows]
    diff = None
    if params.diff_from is not None and rows:
        newer = params.diff_to or rows[-1].version or 0
        older, newest = (
            boards.version(context.actor, params.board, each).content for each in (params.diff_from, newer)
        )
        diff = truncate_diff(diff_hunks(older, newest), context.texts)
    return BoardHistoryResult(board=params.board, history=entries, count=len(entries), diff=diff)


class BoardRestoreParams(ParamsModel):
    board: Name
    version: Version
    message: Message | None = None
    expected_version: Version | None = None
    wait_seconds: Wait | None = None


class BoardRestoreResult(ResultModel):
    board: str
    new_version: int
    restored_version: int


@tool("whiteboard_restore", path=("board",), may_conflict=True)
def whiteboard_restore(context: ToolContext, params: BoardRestoreParams) -> BoardRestoreResult:
    """Write an earlier version of a whiteboard once more, as ``params`` say, for the actor of ``context``.
    Raises `VersionConflict`, `VersionNotFound`, `BoardLeased`."""
    texts = catalogue(context.language, TEXTS)
    row = _boards(context).restore(
        context.actor,
        params.board,
        params.version,
        tool="whiteboard_restore",
        message=params.message or texts("restore.message", version=params.version),
        expected=params.expected_version,
        wait=_wait(params.wait_seconds),
    )
    return _restore_result(context, params, row)


@TOOLS.replay(whiteboard_restore)
def _restore_result(context: ToolContext, params: BoardRestoreParams, row: Row) -> BoardRestoreResult:
    context.record_seen("board", params.board, row.version or 0)
    return BoardRestoreResult(
        board=params.board, new_version=row.version or 0, restored_version=params.version
    )


def _boards(context: ToolContext) -> Whiteboards:
    # What reads Markdown is slow to load: whoever uses other tools does without.
    from watchroom_whiteboards.whiteboards import Whiteboards

    return Whiteboards(context.zones.boards, context.zones.registry)


def _wait(seconds: float | None) -> float:
    return LEASE_WAIT_SECONDS if seconds is None else seconds
