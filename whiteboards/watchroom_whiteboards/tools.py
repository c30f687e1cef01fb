"""The whiteboards' tools, which the toolbox offers beside its own (see `watchroom.toolbox.offered`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

from pydantic import Field
from watchroom.model import Row
from watchroom.texts import catalogue
from watchroom.toolbox.arguments import Arguments, Integer, Message, Name, Number, Version
from watchroom.toolbox.caller import Caller
from watchroom.toolbox.collab import settled
from watchroom.toolbox.missed import cut, unified
from watchroom.toolbox.results import HistoryEntry, Result
from watchroom.toolbox.tool import READS, Hints, Tool, define
from watchroom.zones.boards import SECTION
from watchroom.zones.leases import PATIENCE

from watchroom_whiteboards.texts import TEXTS

if TYPE_CHECKING:
    from watchroom_whiteboards.whiteboards import Whiteboards

Wait = Annotated[Number, Field(ge=0, le=60)]
Expected = Annotated[Integer, Field(ge=-1, le=2**31 - 1)]


class ReadBoard(Arguments):
    board: Name
    section: Name | None = None
    version: Version | None = None
    hold: bool | None = None


class WriteBoard(Arguments):
    board: Name
    content: str
    message: Message
    expected_version: Expected | None = None
    wait_seconds: Wait | None = None


class AppendToBoard(Arguments):
    board: Name
    content: Annotated[str, Field(min_length=1)]
    section: Name | None = None
    wait_seconds: Wait | None = None


class UpdateSection(Arguments):
    board: Name
    section: Name
    content: str
    expected_version: Expected | None = None
    wait_seconds: Wait | None = None


class BoardHistory(Arguments):
    board: Name
    limit: Annotated[Integer, Field(ge=1)] | None = None
    diff_from: Version | None = None
    diff_to: Version | None = None


class RestoreBoard(Arguments):
    board: Name
    version: Version
    message: Message | None = None
    expected_version: Version | None = None
    wait_seconds: Wait | None = None


class BoardContent(Result):
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
    """Told once: how a person settled a conflict of the reader's on this board."""


class BoardWritten(Result):
    board: str
    version: int
    section: str | None = None
    overwrote_version: int | None = None
    overwrote_author: str | None = None


class BoardVersions(Result):
    board: str
    history: list[HistoryEntry]
    count: int
    diff: str | None = None
    """A unified diff of the two versions that were asked for."""


class BoardRestored(Result):
    board: str
    new_version: int
    restored_version: int


def _boards(caller: Caller) -> Whiteboards:
    # What reads Markdown is slow to load: whoever uses other tools does without.
    from watchroom_whiteboards.whiteboards import Whiteboards

    return Whiteboards(caller.boards, caller.registry)


def read(caller: Caller, args: ReadBoard) -> BoardContent:
    news = caller.settling.find_unread(caller.actor, "board", args.board)
    found = _boards(caller).read(
        caller.actor, args.board, version=args.version, section=args.section, hold=bool(args.hold)
    )
    if found.version == found.current and not found.section:
        caller.has_seen("board", args.board, found.version)
    seconds = None
    if found.lease is not None:
        seconds = (found.lease.until - found.lease.taken) / 1000
    return BoardContent(
        board=args.board,
        content=found.content,
        version=found.version,
        current_version=found.current,
        section=found.section or None,
        author=found.row.actor if found.row else None,
        timestamp=found.row.timestamp if found.row else None,
        held_for_seconds=seconds,
        notice="\n".join(settled(caller, row) for row in news) or None,
    )


def write(caller: Caller, args: WriteBoard) -> BoardWritten:
    """Without an expected version, the one that the caller last saw is expected (DESIGN §4)."""
    boards = _boards(caller)
    expected = args.expected_version
    if expected is None:
        expected = caller.last_seen("board", args.board)
    row = boards.write(
        caller.actor,
        args.board,
        args.content,
        expected,
        tool="whiteboard_write",
        message=args.message,
        wait=_wait(args.wait_seconds),
    )
    return written(caller, args, row)


def written(caller: Caller, args: WriteBoard, row: Row) -> BoardWritten:
    overwrote = caller.boards.written_over(row)
    caller.has_seen("board", args.board, row.version or 0)
    return BoardWritten(
        board=args.board,
        version=row.version or 0,
        overwrote_version=overwrote.version if overwrote else None,
        overwrote_author=overwrote.actor if overwrote else None,
    )


def append(caller: Caller, args: AppendToBoard) -> BoardWritten:
    row = _boards(caller).append(
        caller.actor,
        args.board,
        args.content,
        tool="whiteboard_append",
        section=args.section,
        wait=_wait(args.wait_seconds),
    )
    return appended(caller, args, row)


def appended(caller: Caller, args: AppendToBoard, row: Row) -> BoardWritten:
    """Whoever appends has not seen what others wrote before."""
    return BoardWritten(board=args.board, version=row.version or 0, section=args.section)


def update_section(caller: Caller, args: UpdateSection) -> BoardWritten:
    row = _boards(caller).update_section(
        caller.actor,
        args.board,
        args.section,
        args.content,
        expected=args.expected_version,
        seen=caller.last_seen("board", args.board),
        tool="whiteboard_update_section",
        wait=_wait(args.wait_seconds),
    )
    return updated(caller, args, row)


def updated(caller: Caller, args: UpdateSection, row: Row) -> BoardWritten:
    return BoardWritten(board=args.board, version=row.version or 0, section=str(row.detail[SECTION]))


def history(caller: Caller, args: BoardHistory) -> BoardVersions:
    boards = _boards(caller)
    rows = boards.history(caller.actor, args.board, limit=args.limit)
    entries = [
        HistoryEntry(
            version=row.version or 0,
            author=row.actor,
            message=row.message,
            timestamp=row.timestamp,
            checksum=row.sha256 or "",
            size=row.size or 0,
        )
        for row in rows
    ]
    diff = None
    if args.diff_from is not None and rows:
        newer = args.diff_to or rows[-1].version or 0
        older, newest = (
            boards.version(caller.actor, args.board, each).content for each in (args.diff_from, newer)
        )
        diff = cut(unified(older, newest), caller.texts)
    return BoardVersions(board=args.board, history=entries, count=len(entries), diff=diff)


def restore(caller: Caller, args: RestoreBoard) -> BoardRestored:
    texts = catalogue(caller.language, TEXTS)
    row = _boards(caller).restore(
        caller.actor,
        args.board,
        args.version,
        tool="whiteboard_restore",
        message=args.message or texts("restore.message", version=args.version),
        expected=args.expected_version,
        wait=_wait(args.wait_seconds),
    )
    return restored(caller, args, row)


def restored(caller: Caller, args: RestoreBoard, row: Row) -> BoardRestored:
    caller.has_seen("board", args.board, row.version or 0)
    return BoardRestored(board=args.board, new_version=row.version or 0, restored_version=args.version)


def _wait(seconds: float | None) -> float:
    return PATIENCE if seconds is None else seconds


_WRITES: Final = Hints(destroys=True, may_conflict=True)
TOOLS: Final[tuple[Tool, ...]] = (
    define("whiteboard_read", "board", ReadBoard, BoardContent, READS, read, ("board",), texts=TEXTS),
    define(
        "whiteboard_write",
        "board",
        WriteBoard,
        BoardWritten,
        _WRITES,
        write,
        ("board",),
        retell=written,
        texts=TEXTS,
    ),
    define(
        "whiteboard_append",
        "board",
        AppendToBoard,
        BoardWritten,
        Hints(),
        append,
        ("board",),
        retell=appended,
        texts=TEXTS,
    ),
    define(
        "whiteboard_update_section",
        "board",
        UpdateSection,
        BoardWritten,
        _WRITES,
        update_section,
        ("board",),
        retell=updated,
        texts=TEXTS,
    ),
    define(
        "whiteboard_history", "board", BoardHistory, BoardVersions, READS, history, ("board",), texts=TEXTS
    ),
    define(
        "whiteboard_restore",
        "board",
        RestoreBoard,
        BoardRestored,
        Hints(may_conflict=True),
        restore,
        ("board",),
        retell=restored,
        texts=TEXTS,
    ),
)
