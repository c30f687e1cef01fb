"""What an operating system or a file system lacks."""

from __future__ import annotations

from watchroom.errors import WatchroomError


class PlatformUnsupported(WatchroomError):
    """This operating system cannot run Watchroom. Values: system, missing."""

    code = "platform_unsupported"


class LocksUnsupported(WatchroomError):
    """The file system has no locks between processes. Values: path, reason."""

    code = "locks_unsupported"
