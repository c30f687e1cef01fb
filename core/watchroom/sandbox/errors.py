"""Why a task's files or a command are refused (spec 2, error handling)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final, cast

from watchroom.errors import InvalidPath, PermissionDenied, WatchroomError
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


class TaskQuotaExceeded(WatchroomError):
    """A task's folder holds more than it may. Values: files, most_files, megabytes, most_megabytes; where
    a command was run, exit_code and its output."""

    code = "task_quota_exceeded"
    outcome: ClassVar[Outcome] = "denied"

    def more(self, language: Language = "en") -> Mapping[str, Json]:
        if "exit_code" not in self.values:
            return {}
        return {"exitCode": cast("int", self.values["exit_code"]), **_output_fields(self.values)}


class WorkspaceNotBound(WatchroomError):
    """The agent's task has no folder, or the agent has no task. Values: agent."""

    code = "workspace_not_bound"
    outcome: ClassVar[Outcome] = "denied"


class InvalidWorkspace(WatchroomError):
    """A folder that cannot be a task's workspace. Values: path, rule."""

    code = "invalid_workspace"
    outcome: ClassVar[Outcome] = "denied"


class TaskNotFound(WatchroomError):
    """Values: task."""

    code = "task_not_found"


class CommandBlocked(WatchroomError):
    """The command holds a word that is never run. Values: keyword."""

    code = "command_blocked"
    outcome: ClassVar[Outcome] = "denied"

    def more(self, language: Language = "en") -> Mapping[str, Json]:
        return {"reason": self.message(language)}


class CommandTimeout(WatchroomError):
    """The command was ended because it took too long. Values: seconds, and the output of a command
    that was run."""

    code = "command_timeout"
    has_row = True

    def more(self, language: Language = "en") -> Mapping[str, Json]:
        seconds = cast("float", self.values["seconds"])
        return {"timedOut": True, "timeoutMs": round(seconds * 1000), **_output_fields(self.values)}


class CommandInterrupted(WatchroomError):
    """The command was cut off with the process that ran it, or that process still runs it."""

    code = "command_interrupted"
    has_row = True


class CommandStopped(WatchroomError):
    """The command was ended because its agent was. Values: the output of a command that was run."""

    code = "command_stopped"
    has_row = True

    def more(self, language: Language = "en") -> Mapping[str, Json]:
        return _output_fields(self.values)


class CommandFailed(WatchroomError):
    """The command ended with another exit code than 0. Values: exit_code, and the output of a command that
    was run."""

    code = "command_failed"
    has_row = True

    def more(self, language: Language = "en") -> Mapping[str, Json]:
        if "exit_code" not in self.values:
            return {}
        return {"exitCode": cast("int", self.values["exit_code"]), **_output_fields(self.values)}


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


class NoSandbox(WatchroomError):
    """No sandbox works on this machine."""

    code = "no_sandbox"
    outcome: ClassVar[Outcome] = "denied"


class CommandRejected(WatchroomError):
    """A person was asked whether the command may run without a sandbox, and rejected it. Values: reason."""

    code = "command_rejected"
    outcome: ClassVar[Outcome] = "denied"


class CommandUnanswered(CommandRejected):
    """No person answered in time whether it may."""

    texts = "command_unanswered"


class FolderTooWide(WatchroomError):
    """A folder that holds what no command may touch, such as the system's own files. Values: folder."""

    code = "folder_too_wide"
    outcome: ClassVar[Outcome] = "denied"


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


def _output_fields(values: Mapping[str, object]) -> Mapping[str, Json]:
    return {
        name: cast("Json", values[key]) for key, name in _OUTPUT_FIELDS.items() if values.get(key) is not None
    }
