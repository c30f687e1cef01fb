"""What can go wrong in a task's workspace (spec 2, error handling)."""

from __future__ import annotations

from typing import ClassVar

from watchroom.errors import InvalidPath, PermissionDenied, WatchroomError
from watchroom.model import Outcome


class PathTraversalBlocked(InvalidPath):
    """A path that leads, or might lead, out of the workspace. Values: given, rule."""

    code = "path_traversal_blocked"


class FolderDenied(PermissionDenied):
    """The system lets this process not touch a file. Values: path, reason."""

    texts = "folder_denied"


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
