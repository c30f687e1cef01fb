"""The tools of a task's workspace (spec 2, Runtime). Their results have the spec's names of fields."""

from __future__ import annotations

from typing import TYPE_CHECKING

from watchroom import validation
from watchroom.model import Row, timestamp
from watchroom.sandbox.errors import (
    CommandFailed,
    CommandStopped,
    CommandTimeout,
    RepositoryRefused,
    TaskQuotaExceeded,
)
from watchroom.sandbox.limits import ResourceLimits
from watchroom.texts import Catalogue
from watchroom.toolbox import arguments as take
from watchroom.toolbox import results as give
from watchroom.toolbox.caller import Caller

_MOST_NAMED = 5

if TYPE_CHECKING:
    from watchroom.zones.commands import CommandChanges, Ran


def read(caller: Caller, args: take.ReadFile) -> give.FileRead:
    content, row = caller.files.read(caller.actor, args.path, tool="read_file")
    return give.FileRead(content=content, path=args.path, version=row.version or 0)


def write(caller: Caller, args: take.WriteFile) -> give.FileWritten:
    row = caller.files.write(caller.actor, args.path, args.content, tool="write_file")
    return written(caller, args, row)


def written(caller: Caller, args: take.WriteFile, row: Row) -> give.FileWritten:
    return give.FileWritten(path=args.path, version=row.version or 0, size=row.size or 0)


def list_files(caller: Caller, args: take.ListFiles) -> give.Listed:
    found = caller.files.entries(caller.actor, args.path or ".", tool="list_files")
    return give.Listed(
        files=[
            give.ListedFile(
                name=validation.escape_unstorable(each.name),
                type="directory" if each.kind == "folder" else each.kind,
                size=each.size,
            )
            for each in found
        ]
    )


def info(caller: Caller, args: take.NoArguments) -> give.WorkspaceInfo:
    found = caller.files.info(caller.actor, tool="get_workspace_info")
    return give.WorkspaceInfo(
        file_count=found.files,
        dir_count=found.folders,
        total_size=found.size,
        last_modified=timestamp(found.changed) if found.changed else None,
        truncated=None if found.is_complete else True,
    )


def run(caller: Caller, args: take.RunCommand) -> give.CommandRan:
    limits = ResourceLimits(seconds=args.timeout_ms / 1000)
    return _told(caller.commands.run(caller.actor, args.command, limits), args, caller.texts)


def ran(caller: Caller, args: take.RunCommand, row: Row) -> give.CommandRan:
    return _told(caller.commands.outcome(row), args, caller.texts)


def _told(outcome: Ran, args: take.RunCommand, texts: Catalogue) -> give.CommandRan:
    finished, _, left = outcome
    values: dict[str, object] = {
        "stdout": finished.stdout,
        "stderr": finished.stderr,
        "changed": list(left.changed) or None,
        "more_changed": left.more_changed or None,
        "pending": left.pending or None,
        "left_out": left.left_out or None,
        "quarantined": list(left.quarantined) or None,
        "notice": _notice(left, texts) or None,
    }
    if finished.timed_out:
        raise CommandTimeout(seconds=args.timeout_ms / 1000, **values)
    if finished.stopped:
        raise CommandStopped(**values)
    values["exit_code"] = finished.exit_code
    if left.quarantined:
        raise RepositoryRefused(paths=", ".join(left.quarantined[:_MOST_NAMED]), **values)
    if left.over_quota:
        raise TaskQuotaExceeded(**left.over_quota, **values)
    if finished.exit_code:
        raise CommandFailed(**values)
    return give.CommandRan.model_validate({**values, "cut": finished.truncated or None})


def _notice(left: CommandChanges, texts: Catalogue) -> str:
    """In words what else is to be known of what a command left; empty if nothing is."""
    said = []
    if left.pending:
        said.append(texts("command.pending", count=left.pending))
    if left.quarantined:
        said.append(texts("command.quarantined", paths=", ".join(left.quarantined[:_MOST_NAMED])))
    if left.left_out:
        said.append(texts("command.left_out", count=left.left_out))
    return " ".join(said)
