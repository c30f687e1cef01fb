"""The handoff zone's tools (spec 1 FR-2)."""

from __future__ import annotations

from watchroom.model import Row
from watchroom.toolbox import arguments as take
from watchroom.toolbox import results as give
from watchroom.toolbox.caller import Caller


def deliver(caller: Caller, args: take.HandoffFile) -> give.Delivered:
    row = caller.handoff.deliver(
        caller.actor, args.to_agent, args.filename, args.content, tool="handoff_file", message=args.message
    )
    return delivered(caller, args, row)


def delivered(caller: Caller, args: take.HandoffFile, row: Row) -> give.Delivered:
    return give.Delivered(to=args.to_agent, filename=args.filename, delivery=row.version or 0)


def check(caller: Caller, args: take.CheckMyHandoffs) -> give.Inbox:
    found = caller.handoff.inbox(
        caller.actor, tool="check_my_handoffs", acknowledged=args.include_acknowledged or False
    )
    entries = [
        give.InboxEntry(
            sender=each.sender,
            filename=each.filename,
            message=each.row.message,
            timestamp=each.row.timestamp,
            size=each.row.size or 0,
            delivery=each.row.version or 0,
            read=each.read,
            acknowledged=each.acknowledged,
        )
        for each in found
    ]
    return give.Inbox(count=len(entries), handoffs=entries)


def read(caller: Caller, args: take.ReadHandoff) -> give.HandoffContent:
    content, row = caller.handoff.read(caller.actor, args.from_agent, args.filename)
    return give.HandoffContent(
        sender=args.from_agent,
        filename=args.filename,
        content=content,
        message=row.message,
        timestamp=row.timestamp,
        delivery=row.version or 0,
    )


def acknowledge(caller: Caller, args: take.AcknowledgeHandoff) -> give.Acknowledged:
    row = caller.handoff.acknowledge(caller.actor, args.from_agent, args.filename, args.message or "")
    return acknowledged(caller, args, row)


def acknowledged(caller: Caller, args: take.AcknowledgeHandoff, row: Row) -> give.Acknowledged:
    return give.Acknowledged(sender=args.from_agent, filename=args.filename, delivery=row.base or 0)
