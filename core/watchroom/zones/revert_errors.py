"""Why what agents did cannot be reverted."""

from __future__ import annotations

from watchroom.errors import WatchroomError


class RevertNotFound(WatchroomError):
    """There is no revert with this id. Values: revert."""

    code = "revert_not_found"


class RevertTooLarge(WatchroomError):
    """What is to be reverted touches more paths than one revert may. Values: most."""

    code = "revert_too_large"
