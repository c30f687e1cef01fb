"""What differs between operating systems: one protocol, Linux, and POSIX without what Linux alone has."""

from __future__ import annotations

import os
import sys
from functools import cache
from importlib.util import find_spec

from watchroom.platforms.errors import PlatformUnsupported
from watchroom.platforms.protocol import FileWatch, Platform, ProcessInfo, ProcessScope

__all__ = [
    "FileWatch",
    "Platform",
    "PlatformUnsupported",
    "ProcessInfo",
    "ProcessScope",
    "check_platform",
    "detect_platform",
]


def check_platform() -> None:
    """Raises `PlatformUnsupported` where this system lacks what nothing here works without."""
    missing = [] if find_spec("fcntl") else ["flock"]
    missing += [name for name in ("O_NOFOLLOW", "O_DIRECTORY") if not hasattr(os, name)]
    missing += [] if os.open in os.supports_dir_fd else ["openat"]
    if missing:
        raise PlatformUnsupported(system=sys.platform, missing=", ".join(missing))


@cache
def detect_platform() -> Platform:
    """The platform of this machine. Raises `PlatformUnsupported`."""
    check_platform()
    if os.uname().sysname == "Linux":
        from watchroom.platforms.linux import LinuxPlatform

        return LinuxPlatform()
    from watchroom.platforms.posix import PosixPlatform

    return PosixPlatform()
