"""The tools of whiteboards. Toolboxes offer them in addition to the core's tools (see
`watchroom.features.calls.tool_registry`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

from pydantic import Field
from watchroom.algorithms.merge import diff_hunks
from watchroom.features.boards.locks import LOCK_TIMEOUT
from watchroom.features.boards.rows import READ_TOOL, SECTION
from watchroom.features.conflicts.reads import truncate_diff
from watchroom.features.files.tools import HistoryEntry
from watchroom.kernel.tools.context import ToolContext
from watchroom.kernel.tools.models import (
    NO_BOOL,
    NO_BOOL_AS_FLOAT,
    Message,
    Name,
    ParamsModel,
    ResultModel,
    Version,
)
from watchroom.kernel.tools.tool import Toolset
from watchroom.model import Row
from watchroom.texts import catalogue

from watchroom_whiteboards.errors import BoardDenied, BoardNotFound
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
    """The version. 0 if the board was never written; the content is then the template."""
    current_version: int
    section: str | None = None
    author: str | None = None
    timestamp: str | None = None
    held_for_seconds: float | None = None
    notice: str | None = None
    """A text about the reader's conflicts on this board that people settled. Each settlement is returned
    once."""


@tool("whiteboard_read", path=("board",), reads_only=True)
def whiteboard_read(context: ToolContext, params: BoardReadParams) -> BoardReadResult:
    """Return a whiteboard, or a section of it, to the actor of ``context``. ``params``: the board and the
    section. Raise `BoardNotFound`, `BoardDenied`, `VersionNotFound`, `SectionNotFound`."""
    notice = context.zones.conflicts.describe_unread(context.actor, "board", params.board, context.texts)
    found = _boards(context).read(
        context.call, params.board, version=params.version, section=params.section, hold=bool(params.hold)
    )
    if found.version == found.current and not found.section:
        context.seen.record("board", params.board, found.version)
    seconds = None
    if found.lock is not None:
        seconds = (found.lock.expires - found.lock.acquired) / 1000
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


@TOOLS.permission(whiteboard_read)
def _may_read(context: ToolContext, params: BoardReadParams) -> bool:
    try:
        _boards(context).named(context.call, params.board)
    except (BoardNotFound, BoardDenied):
        return False
    return True


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


@tool("whiteboard_write", path=("board",), destroys=True, may_conflict=True, read_tool=READ_TOOL)
def whiteboard_write(context: ToolContext, params: BoardWriteParams) -> BoardWriteResult:
    """Write the whiteboard in ``params`` for the actor of ``context``. The expected version is by default the
    version that the actor last saw. Raise `VersionConflict`, `BoardNotFound`, `BoardDenied`,
    `BoardLeased`."""
    boards = _boards(context)
    expected = params.expected_version
    if expected is None:
        expected = _last_seen(context, params.board)
    row = boards.write(
        context.call,
        params.board,
        params.content,
        expected,
        message=params.message,
        wait=_wait(params.wait_seconds),
    )
    return _write_result(context, params, row)


@TOOLS.replay(whiteboard_write)
def _write_result(context: ToolContext, params: BoardWriteParams, row: Row) -> BoardWriteResult:
    overwrote = context.zones.boards.find_overwritten(row)
    context.seen.record("board", params.board, row.version or 0)
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
    """Append the entry in ``params`` to a whiteboard, for the actor of ``context``. Raise `SectionNotFound`,
    `SectionAmbiguous`, `InvalidSection`, `BoardLeased`."""
    row = _boards(context).append(
        context.call,
        params.board,
        params.content,
        section=params.section,
        wait=_wait(params.wait_seconds),
    )
    return _append_result(context, params, row)


@TOOLS.replay(whiteboard_append)
def _append_result(context: ToolContext, params: BoardAppendParams, row: Row) -> BoardWriteResult:
    # Not recorded as seen, because appending does not read the text that others wrote before.
    return BoardWriteResult(board=params.board, version=row.version or 0, section=params.section)


class BoardUpdateSectionParams(ParamsModel):
    board: Name
    section: Name
    content: str
    message: Message | None = None
    expected_version: Expected | None = None
    wait_seconds: Wait | None = None


@tool("whiteboard_update_section", path=("board",), destroys=True, may_conflict=True, read_tool=READ_TOOL)
def whiteboard_update_section(context: ToolContext, params: BoardUpdateSectionParams) -> BoardWriteResult:
    """Replace a section of a whiteboard for the actor of ``context``. ``params``: the board and the section.
    Raise `VersionConflict`, `SectionNotFound`, `SectionAmbiguous`, `InvalidSection`, `BoardLeased`."""
    row = _boards(context).update_section(
        context.call,
        params.board,
        params.section,
        params.content,
        message=params.message or "",
        expected=params.expected_version,
        seen=_last_seen(context, params.board),
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
    """A unified diff of the two requested versions."""


@tool("whiteboard_history", path=("board",), reads_only=True)
def whiteboard_history(context: ToolContext, params: BoardHistoryParams) -> BoardHistoryResult:
    """Return the versions of a whiteboard, and a diff of two versions if requested, to the actor of
    ``context``. Raise `BoardNotFound`, `BoardDenied`, `VersionNotFound`."""
    boards = _boards(context)
    rows = boards.history(context.call, params.board, limit=params.limit)
    entries = [HistoryEntry.of(row) for row in rows]
    diff = None
    if params.diff_from is not None and rows:
        newer = params.diff_to or rows[-1].version or 0
        older, newest = (
            boards.version(context.call, params.board, each).content for each in (params.diff_from, newer)
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
    """Write an earlier version of a whiteboard again, for the actor of ``context``. ``params``: the board and
    the version. Raise `VersionConflict`, `VersionNotFound`, `BoardLeased`."""
    texts = catalogue(context.language, TEXTS)
    row = _boards(context).restore(
        context.call,
        params.board,
        params.version,
        message=params.message or texts("restore.message", version=params.version),
        expected=params.expected_version,
        wait=_wait(params.wait_seconds),
    )
    return _restore_result(context, params, row)


@TOOLS.replay(whiteboard_restore)
def _restore_result(context: ToolContext, params: BoardRestoreParams, row: Row) -> BoardRestoreResult:
    context.seen.record("board", params.board, row.version or 0)
    return BoardRestoreResult(
        board=params.board, new_version=row.version or 0, restored_version=params.version
    )


def _boards(context: ToolContext) -> Whiteboards:
    # The Markdown parser loads slowly, and other tools do not need it.
    from watchroom_whiteboards.whiteboards import Whiteboards

    return Whiteboards(context.zones.boards, context.zones.registry)


def _wait(seconds: float | None) -> float:
    return LOCK_TIMEOUT if seconds is None else seconds


def _last_seen(context: ToolContext, board: str) -> int:
    """Return the newest version of ``board`` that the caller saw, in this process or earlier; 0 if there is
    none."""
    seen = context.seen.get(("board", board))
    return context.zones.boards.last_seen(context.call, board) if seen is None else seen
