"""The folders of the operating system. No agent may work in them."""

from __future__ import annotations

import os
from functools import cache
from typing import Final

SYSTEM_FOLDERS: Final = (
    *("/bin", "/boot", "/dev", "/efi", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/lost+found"),
    *("/nix", "/proc", "/run", "/sbin", "/snap", "/sys", "/usr"),
    *("/var/backups", "/var/cache", "/var/crash", "/var/db", "/var/lib", "/var/lock", "/var/log"),
    *("/var/mail", "/var/run", "/var/spool"),
    # macOS, which has some of the other folders in /private.
    *("/Applications", "/Library", "/System", "/cores"),
    *(f"/private{path}" for path in ("/etc", "/var/db", "/var/lib", "/var/log", "/var/run", "/var/spool")),
)
_OF_USERS: Final = ("/run/media", "/dev/shm")  # noqa: S108  # nothing is created there
"""Folders of users: removable disks, and files in memory."""
_SERVICE_HOMES: Final = ("/var", "/run", "/private/var")
"""Folders that contain the home folders of services."""


def is_system_folder(path: str) -> bool:
    """Return whether ``path`` is a folder of the system, is inside one, or contains one.

    ``path`` contains no symlinks. The home folder of this user is not a system folder, even among the home
    folders of services. Folders of users beneath `/run/media` and `/dev/shm` are also not system folders.
    """
    if is_within(path, *_OF_USERS) and path not in _OF_USERS:
        return False
    home = os.path.realpath(os.path.expanduser("~"))
    if is_within(home, *_SERVICE_HOMES) and is_within(path, home) and home not in _all_names():
        return False
    return any(is_within(path, each) or is_within(each, path) for each in _all_names())


def is_within(path: str, *folders: str) -> bool:
    """Return whether ``path`` is one of ``folders``, or beneath one of them."""
    return any(path == folder or path.startswith(folder.rstrip("/") + "/") for folder in folders)


@cache
def _all_names() -> frozenset[str]:
    """Return the system's folders with and without resolved symlinks, because /bin can be a link to
    /usr/bin."""
    return frozenset({*SYSTEM_FOLDERS, *map(os.path.realpath, SYSTEM_FOLDERS)})
