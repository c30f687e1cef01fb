"""The interface to operating systems: disk, files, locks and processes. `Platform` is POSIX; `LinuxPlatform`
extends it."""

from __future__ import annotations

import os
import sys
from functools import cache
from importlib.util import find_spec

from watchroom.errors import PlatformUnsupported
from watchroom.platform.posix import FileWatch, Platform, ProcessInfo, ProcessScope, TreeChanges, TreeWatch

__all__ = [
    "FileWatch",
    "Platform",
    "PlatformUnsupported",
    "ProcessInfo",
    "ProcessScope",
    "TreeChanges",
    "TreeWatch",
    "check_platform",
    "detect_platform",
]


def check_platform() -> None:
    """Raise `PlatformUnsupported` if this system lacks a feature that every part of Watchroom needs."""
    missing = [] if find_spec("fcntl") else ["flock"]
    missing += [name for name in ("O_NOFOLLOW", "O_DIRECTORY") if not hasattr(os, name)]
    missing += [] if os.open in os.supports_dir_fd else ["openat"]
    if missing:
        raise PlatformUnsupported(system=sys.platform, missing=", ".join(missing))


@cache
def detect_platform() -> Platform:
    """Return the platform of this machine. Raise `PlatformUnsupported`."""
    check_platform()
    if os.uname().sysname == "Linux":
        from watchroom.platform.linux import LinuxPlatform

        return LinuxPlatform()
    return Platform()
