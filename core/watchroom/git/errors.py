"""Why a repository was neither written nor read."""

from __future__ import annotations

from watchroom.errors import WatchroomError


class GitError(WatchroomError):
    """git could not do what it was asked for. Values: reason."""

    code = "git_failed"


class GitMissing(GitError):
    """git is not installed."""

    code = "git_missing"


class InvalidRepository(GitError):
    """A repository that this cannot be done with. Values: path, rule."""

    code = "invalid_repository"
