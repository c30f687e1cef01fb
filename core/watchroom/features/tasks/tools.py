"""Tools of `TaskFiles` and `Commands`. TASKS fixes the field names of their results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import Field

from watchroom.errors import (
    CommandFailed,
    CommandStopped,
    CommandTimeout,
    InvalidPath,
    RepositoryRefused,
    TaskQuotaExceeded,
)
from watchroom.features.tasks.folder import normalize_task_path
from watchroom.kernel.tools.context import ToolContext
from watchroom.kernel.tools.models import NO_BOOL, FrozenModel, Name, NoParams, ParamsModel, ResultModel
from watchroom.kernel.tools.tool import Toolset
from watchroom.model import WRITE_FILE, Row, timestamp
from watchroom.platform.sandbox.limits import ResourceLimits
from watchroom.texts import Catalogue

if TYPE_CHECKING:
    from watchroom.features.tasks.commands import CommandChanges, CommandOutcome

_DEFAULT_SECONDS: Final = 60.0
"""Default timeout of a command."""
_MAX_NAMED: Final = 5
"""Maximum number of repositories in an error text."""
_MAX_LISTED: Final = 1000
"""Maximum number of folder entries in a result."""

TOOLS: Final = Toolset("file", audience="agents", needs_task=True)
tool = TOOLS.tool


class ReadFileParams(ParamsModel):
    path: Name


class ReadFileResult(ResultModel):
    path: str
    content: str
    version: int | None = None
    """The version; None if git ignores the file."""
    notice: str | None = None
    """A text that says what this means, if git ignores the file."""


@tool("read_file", path=("path",), reads_only=True)
def read_file(context: ToolContext, params: ReadFileParams) -> ReadFileResult:
    """Return the text of a file in the caller's task. Raise `WorkspaceNotBound`, `PathTraversalBlocked`,
    `InvalidPath`, `NotFound`, `NotText`, `TooLarge`, `FolderDenied`, `IgnoredFilesUnknown`."""
    content, row = context.zones.task_files.read(context.call, params.path)
    if row is None:
        notice = context.texts("task_files.not_versioned")
        return ReadFileResult(content=content, path=params.path, notice=notice)
    return ReadFileResult(content=content, path=params.path, version=row.version or 0)


class WriteFileParams(ReadFileParams):
    content: str


class WriteFileResult(ResultModel):
    ok: Literal[True] = True
    path: str
    version: int | None = None
    """The version; None if git ignores the file."""
    size: int
    recorded: bool | None = None
    """False if git ignores the file."""
    notice: str | None = None
    """A text that says what this means, if git ignores the file."""


@tool(WRITE_FILE, path=("path",), destroys=True, idempotent=True)
def write_file(context: ToolContext, params: WriteFileParams) -> WriteFileResult:
    """Write a file in the caller's task. Raise the errors of `read_file` except `NotFound`, and
    `TaskQuotaExceeded`, `IgnoredFileChanged`."""
    row = context.zones.task_files.write(context.call, params.path, params.content)
    return _write_result(context, params, row)


@TOOLS.replay(write_file)
def _write_result(context: ToolContext, params: WriteFileParams, row: Row) -> WriteFileResult:
    if row.version is None:
        size = row.detail.get("size")
        return WriteFileResult(
            path=params.path,
            size=size if isinstance(size, int) else 0,
            recorded=False,
            notice=context.texts("task_files.not_recorded"),
        )
    return WriteFileResult(path=params.path, version=row.version, size=row.size or 0)


class ListFilesParams(ParamsModel):
    path: Name | None = None
    after: Name | None = None


class ListedFile(FrozenModel):
    name: str
    type: Literal["file", "directory", "symlink", "other"]
    size: int
    """The size in bytes; 0 for entries that are not files."""


class ListFilesResult(ResultModel):
    files: list[ListedFile]
    more: int | None = None
    """The number of entries that are left out at the end."""
    notice: str | None = None
    """A text on how to list the remaining entries, and the number of entries with names that the tools do not
    accept."""


@tool("list_files", path=("path",), reads_only=True)
def list_files(context: ToolContext, params: ListFilesParams) -> ListFilesResult:
    """Return up to 1000 entries of a folder in the caller's task, sorted by name. Raise the errors of
    `read_file`.

    ``after``: list only names after this name.
    """
    folder = params.path or "."
    found = context.zones.task_files.entries(context.call, folder)
    usable = sorted(each for each in found if _is_usable(folder, each.name))
    wanted = [each for each in usable if each.name > (params.after or "")]
    files = [
        ListedFile(name=each.name, type="directory" if each.kind == "folder" else each.kind, size=each.size)
        for each in wanted[:_MAX_LISTED]
    ]
    more = len(wanted) - len(files)
    notices = []
    if more:
        notices.append(context.texts("listing.more", count=more, last=files[-1].name))
    if len(usable) < len(found):
        notices.append(context.texts("listing.unusable", count=len(found) - len(usable)))
    return ListFilesResult(files=files, more=more or None, notice=" ".join(notices) or None)


def _is_usable(folder: str, name: str) -> bool:
    """Return whether `read_file` accepts the name of an entry of ``folder``."""
    try:
        normalize_task_path(name if folder == "." else f"{folder}/{name}")
    except InvalidPath:
        return False
    return True


_Timeout = Annotated[int, Field(ge=1, le=3_600_000), NO_BOOL]


class RunCommandParams(ParamsModel):
    command: Annotated[str, Field(max_length=100_000)]
    timeout_ms: Annotated[_Timeout | None, Field(alias="timeoutMs")] = None

    @property
    def seconds(self) -> float:
        """The timeout in seconds, default 60."""
        return _DEFAULT_SECONDS if self.timeout_ms is None else self.timeout_ms / 1000


class RunCommandResult(ResultModel):
    """A command that ended with exit code 0 (TASKS-P7)."""

    stdout: str
    stderr: str
    exit_code: Annotated[int, Field(serialization_alias="exitCode")]
    changed: list[str] | None = None
    """The first 100 paths of files that the command created, changed or removed."""
    more_changed: Annotated[int | None, Field(serialization_alias="moreChanged")] = None
    """The number of further paths after the first 100."""
    pending: int | None = None
    """The number of changes that the next call records."""
    left_out: Annotated[int | None, Field(serialization_alias="leftOut")] = None
    """The number of files and folders that cannot be named or read."""
    quarantined: list[str] | None = None
    """The first 100 git repositories that the command created, which were moved away."""
    notice: str | None = None
    """A text about ``pending``, ``left_out`` and ``quarantined``."""
    cut: bool | None = None
    """True if the start of its output was cut."""


@tool("run_command", zone="command")
def run_command(context: ToolContext, params: RunCommandParams) -> RunCommandResult:
    """Run a command in a sandbox, in the folder of the caller's task. Raise the errors of `Commands.run`, and
    `CommandFailed`, `CommandTimeout`, `CommandStopped`, `RepositoryRefused`, `TaskQuotaExceeded`."""
    limits = ResourceLimits(seconds=params.seconds)
    return _command_result(
        context.zones.commands.run(context.call, params.command, limits), params, context.texts
    )


@TOOLS.replay(run_command)
def _replayed_command(context: ToolContext, params: RunCommandParams, row: Row) -> RunCommandResult:
    return _command_result(context.zones.commands.outcome(row), params, context.texts)


class GetWorkspaceInfoResult(ResultModel):
    """The number and the size of the files in a task's folder."""

    file_count: Annotated[int, Field(serialization_alias="fileCount")]
    dir_count: Annotated[int, Field(serialization_alias="dirCount")]
    total_size: Annotated[int, Field(serialization_alias="totalSize")]
    last_modified: Annotated[str, Field(serialization_alias="lastModified")]
    truncated: bool | None = None
    """True if some files were not counted."""


@tool("get_workspace_info", reads_only=True)
def get_workspace_info(context: ToolContext, params: NoParams) -> GetWorkspaceInfoResult:
    """Return the number and size of the files in the folder of the caller's task. Raise `WorkspaceNotBound`,
    `FolderDenied`."""
    found = context.zones.task_files.summary(context.call)
    return GetWorkspaceInfoResult(
        file_count=found.files,
        dir_count=found.folders,
        total_size=found.size,
        last_modified=timestamp(found.changed),
        truncated=None if found.is_complete else True,
    )


def _command_result(outcome: CommandOutcome, params: RunCommandParams, texts: Catalogue) -> RunCommandResult:
    finished, left = outcome
    values: dict[str, object] = {
        "stdout": finished.stdout,
        "stderr": finished.stderr,
        "changed": list(left.changed) or None,
        "more_changed": left.more_changed or None,
        "pending": left.pending or None,
        "left_out": left.left_out or None,
        "quarantined": list(left.quarantined) or None,
        "notice": _changes_notice(left, texts) or None,
    }
    if finished.timed_out:
        raise CommandTimeout(seconds=params.seconds, **values)
    if finished.stopped:
        raise CommandStopped(**values)
    values["exit_code"] = finished.exit_code
    if left.quarantined:
        raise RepositoryRefused(paths=", ".join(left.quarantined[:_MAX_NAMED]), **values)
    if left.over_quota:
        raise TaskQuotaExceeded(**left.over_quota, **values)
    if finished.exit_code:
        raise CommandFailed(**values)
    return RunCommandResult.model_validate({**values, "cut": finished.truncated or None})


def _changes_notice(left: CommandChanges, texts: Catalogue) -> str:
    """Return a text with further facts about a command's changes for the caller; empty without such facts."""
    lines = []
    if left.pending:
        lines.append(texts("command.pending", count=left.pending))
    if left.quarantined:
        lines.append(texts("command.quarantined", paths=", ".join(left.quarantined[:_MAX_NAMED])))
    if left.left_out:
        lines.append(texts("command.left_out", count=left.left_out))
    return " ".join(lines)
