"""Why a task's files or a command are refused (TASKS-errors)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final, cast

from watchroom.errors import DeniedError, InvalidPath, PermissionDenied, WatchroomError
from watchroom.model import Json, Outcome
from watchroom.texts import Language


class PathTraversalBlocked(InvalidPath):
    """A path that leads, or might lead, out of the workspace. Values: given, rule."""

    code = "path_traversal_blocked"


class FolderDenied(PermissionDenied):
    """The system lets this process not touch a file. Values: path, reason."""

    texts = "folder_denied"


class FilesSkipped(WatchroomError):
    """Files of a task that no path can name: they lie too deep, or their names are too long. Never raised,
    only recorded in a row. Values: count."""

    code = "left_out"


class IgnoredFilesUnknown(WatchroomError):
    """Git cannot say which files of a task's folder it ignores, so none is recorded. Values: reason."""

    code = "ignored_files_unknown"


class FileIgnored(DeniedError):
    """Git ignores the file, so it has no versions. Values: path."""

    code = "file_ignored"


class IgnoredFileChanged(DeniedError):
    """An ignored file is not as the agent last saw it, and its present text would be lost. Values: path."""

    code = "ignored_file_changed"


class CommandError(WatchroomError):
    """About a command that may have been run. Values: exit_code and its output, if it was."""

    def more(self, language: Language = "en") -> Mapping[str, Json]:
        """What the command printed and left; ``language`` does not matter."""
        code = {"exitCode": cast("Json", self.values["exit_code"])} if "exit_code" in self.values else {}
        fields = {name: cast("Json", self.values.get(key)) for key, name in _OUTPUT_FIELDS.items()}
        return code | {name: value for name, value in fields.items() if value is not None}


class TaskQuotaExceeded(CommandError):
    """A task's folder holds more than it may. Values: files, most_files, megabytes, most_megabytes; where
    a command was run, exit_code and its output."""

    code = "task_quota_exceeded"
    outcome: ClassVar[Outcome] = "denied"


class WorkspaceNotBound(DeniedError):
    """The agent's task has no folder, or the agent has no task. Values: agent."""

    code = "workspace_not_bound"


class InvalidWorkspace(DeniedError):
    """A folder that cannot be a task's workspace. Values: path, rule."""

    code = "invalid_workspace"


class TaskNotFound(WatchroomError):
    """Values: task."""

    code = "task_not_found"


class CommandBlocked(DeniedError):
    """The command holds a word that is never run. Values: keyword."""

    code = "command_blocked"

    def more(self, language: Language = "en") -> Mapping[str, Json]:
        """The reason in ``language``."""
        return {"reason": self.message(language)}


class CommandTimeout(CommandError):
    """The command was ended because it took too long. Values: seconds, and the output of a command
    that was run."""

    code = "command_timeout"
    has_row = True

    def more(self, language: Language = "en") -> Mapping[str, Json]:
        """The time-out, and what the command printed and left; ``language`` does not matter."""
        seconds = cast("float", self.values["seconds"])
        return {"timedOut": True, "timeoutMs": round(seconds * 1000), **super().more(language)}


class CommandInterrupted(WatchroomError):
    """The command was cut off with the process that ran it, or that process still runs it."""

    code = "command_interrupted"
    has_row = True


class CommandStopped(CommandError):
    """The command was ended because its agent was. Values: the output of a command that was run."""

    code = "command_stopped"
    has_row = True


class CommandFailed(CommandError):
    """The command ended with another exit code than 0. Values: exit_code, and the output of a command that
    was run."""

    code = "command_failed"
    has_row = True


class RepositoryRefused(CommandFailed):
    """A command made git repositories, which were moved out of its folder. Values: paths, exit_code, and
    the output of a command that was run."""

    code = "repository_refused"
    outcome: ClassVar[Outcome] = "denied"


class CommandNotStarted(CommandFailed):
    """The command never ran. Values: reason."""

    texts = "command_not_started"


class ProcessesUnbounded(CommandNotStarted):
    """As root, whose processes the kernel does not count, and without control groups: a command that starts
    processes without end could not be stopped in time."""

    texts = "processes_unbounded"


class InvalidCommand(CommandFailed):
    """The command holds characters that no program can be given."""

    texts = "invalid_command"
    outcome: ClassVar[Outcome] = "denied"


class FolderNotFound(CommandFailed):
    """There is no folder to run the command in. Values: folder."""

    texts = "folder_not_found"


class NoSandbox(DeniedError):
    """No sandbox works on this machine."""

    code = "no_sandbox"


class CommandRejected(DeniedError):
    """A person was asked whether the command may run without a sandbox, and rejected it. Values: reason."""

    code = "command_rejected"


class CommandUnanswered(CommandRejected):
    """No person answered in time whether it may."""

    texts = "command_unanswered"


class FolderTooWide(DeniedError):
    """A folder that holds what no command may touch, such as the system's own files. Values: folder."""

    code = "folder_too_wide"


_OUTPUT_FIELDS: Final = {
    "stdout": "stdout",
    "stderr": "stderr",
    "changed": "changed",
    "more_changed": "moreChanged",
    "pending": "pending",
    "left_out": "leftOut",
    "quarantined": "quarantined",
    "notice": "notice",
}
"""The fields of a result about a command that was run, however it ended, by their names in `values`."""
