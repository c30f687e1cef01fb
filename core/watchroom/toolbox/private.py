"""The private zone's tools (spec 1 FR-1)."""

from __future__ import annotations

from watchroom.model import Row
from watchroom.toolbox import arguments as take
from watchroom.toolbox import results as give
from watchroom.toolbox.caller import Caller


def save(caller: Caller, args: take.SaveToMyWorkspace) -> give.Saved:
    row = caller.private.write(
        caller.actor,
        caller.actor,
        args.filename,
        args.content,
        tool="save_to_my_workspace",
        message=args.message or "",
    )
    return saved(caller, args, row)


def saved(caller: Caller, args: take.SaveToMyWorkspace, row: Row) -> give.Saved:
    return give.Saved(filename=args.filename, version=row.version or 0, size=row.size or 0)


def read(caller: Caller, args: take.ReadFromWorkspace) -> give.Content:
    content, row = caller.private.read(caller.actor, args.agent_id, args.filename, tool="read_from_workspace")
    return give.Content(agent_id=args.agent_id, filename=args.filename, content=content, size=row.size or 0)


def list_files(caller: Caller, args: take.ListWorkspaceFiles) -> give.Files:
    files = caller.private.files(caller.actor, args.agent_id, tool="list_workspace_files")
    return give.Files(agent_id=args.agent_id, files=files, count=len(files))


def delete(caller: Caller, args: take.DeleteFromMyWorkspace) -> give.Deleted:
    row = caller.private.delete(caller.actor, caller.actor, args.filename, tool="delete_from_my_workspace")
    return deleted(caller, args, row)


def deleted(caller: Caller, args: take.DeleteFromMyWorkspace, row: Row) -> give.Deleted:
    return give.Deleted(filename=args.filename)
