"""The collaborative zone's tools (spec 1 FR-3)."""

from __future__ import annotations

from watchroom.model import Row
from watchroom.toolbox import arguments as take
from watchroom.toolbox import results as give
from watchroom.toolbox.caller import Caller


def write(caller: Caller, args: take.CollabWrite) -> give.CollabWritten:
    """Without an expected version, the one that the caller last saw is expected (DESIGN §4)."""
    expected = args.expected_version
    if expected is None:
        expected = caller.last_seen("collab", args.filepath)
    row = caller.collab.write(
        caller.actor, args.filepath, args.content, expected, tool="collab_write", message=args.message
    )
    return written(caller, args, row)


def written(caller: Caller, args: take.CollabWrite, row: Row) -> give.CollabWritten:
    overwrote = caller.collab.written_over(row)
    caller.has_seen("collab", args.filepath, row.version or 0)
    return give.CollabWritten(
        filepath=args.filepath,
        version=row.version or 0,
        overwrote_version=overwrote.version if overwrote else None,
        overwrote_author=overwrote.actor if overwrote else None,
    )


def read(caller: Caller, args: take.CollabRead) -> give.CollabContent:
    news = caller.settling.find_unread(caller.actor, "collab", args.filepath)
    found = caller.collab.read(caller.actor, args.filepath, args.version)
    version = found.row.version or 0
    if version == found.current:
        caller.has_seen("collab", args.filepath, version)
    return give.CollabContent(
        filepath=args.filepath,
        content=found.content,
        version=version,
        current_version=found.current,
        author=found.row.actor,
        message=found.row.message,
        timestamp=found.row.timestamp,
        checksum=found.row.sha256 or "",
        notice="\n".join(settled(caller, row) for row in news) or None,
    )


def settled(caller: Caller, settling: Row) -> str:
    """What an agent is told of a conflict that a person settled."""
    kind = "resolved" if settling.version else "dismissed"
    version = settling.version or settling.base
    message = caller.texts("conflict.saying", message=settling.message) if settling.message else ""
    return caller.texts(
        f"conflict.{kind}", who=settling.actor, path=settling.path, version=version, message=message
    )


def list_files(caller: Caller, args: take.NoArguments) -> give.CollabFiles:
    files = [
        give.CollabFile(
            filepath=row.path,
            version=row.version or 0,
            author=row.actor,
            timestamp=row.timestamp,
            size=row.size or 0,
        )
        for row in caller.collab.files(caller.actor, tool="collab_list")
    ]
    return give.CollabFiles(files=files, count=len(files))


def history(caller: Caller, args: take.CollabHistory) -> give.CollabHistoryResult:
    rows = caller.collab.history(caller.actor, args.filepath, tool="collab_history", limit=args.limit)
    entries = [
        give.HistoryEntry(
            version=row.version or 0,
            author=row.actor,
            message=row.message,
            timestamp=row.timestamp,
            checksum=row.sha256 or "",
            size=row.size or 0,
        )
        for row in rows
    ]
    return give.CollabHistoryResult(filepath=args.filepath, history=entries, count=len(entries))


def rollback(caller: Caller, args: take.CollabRollback) -> give.RolledBack:
    message = args.message or caller.texts("rollback.message", version=args.to_version)
    row = caller.collab.rollback(
        caller.actor,
        args.filepath,
        args.to_version,
        message,
        tool="collab_rollback",
        expected=args.expected_version,
    )
    return rolled_back(caller, args, row)


def rolled_back(caller: Caller, args: take.CollabRollback, row: Row) -> give.RolledBack:
    caller.has_seen("collab", args.filepath, row.version or 0)
    return give.RolledBack(
        filepath=args.filepath, new_version=row.version or 0, restored_version=args.to_version
    )
