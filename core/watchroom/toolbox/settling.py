"""The tools with which people settle what waits for them. Agents have none of them: they write again."""

from __future__ import annotations

from watchroom.toolbox import arguments as take
from watchroom.toolbox import results as give
from watchroom.toolbox.caller import Caller


def resolve(caller: Caller, args: take.ResolveConflict) -> give.Resolved:
    row = caller.settling.resolve(
        caller.actor, args.filepath, args.content, args.expected_version, args.conflicts, args.message
    )
    caller.has_seen(row.zone, args.filepath, row.version or 0)
    return give.Resolved(filepath=args.filepath, version=row.version or 0, conflicts=args.conflicts)


def dismiss(caller: Caller, args: take.DismissConflict) -> give.Dismissed:
    row = caller.settling.dismiss(caller.actor, args.conflict, args.message or "")
    return give.Dismissed(filepath=row.path, conflict=args.conflict)


def revert(caller: Caller, args: take.RevertOutsideEdit) -> give.Reverted:
    row = caller.settling.revert(caller.actor, args.filepath, args.conflict, args.message or "")
    return give.Reverted(filepath=row.path, version=row.base or 0)


def mark_as_seen(caller: Caller, args: take.MarkAsSeen) -> give.MarkedAsSeen:
    row = caller.attention.acknowledge(caller.actor, args.row, args.message or "")
    return give.MarkedAsSeen(row=args.row, path=row.path)
