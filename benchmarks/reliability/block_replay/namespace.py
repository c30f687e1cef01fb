"""Mounts that only one process and its children see, and that end with them."""

from __future__ import annotations

import ctypes
import os
import subprocess
from pathlib import Path
from typing import Final, Literal

FileSystem = Literal["ext4", "xfs", "btrfs"]
FILE_SYSTEMS: Final[tuple[FileSystem, ...]] = ("ext4", "xfs", "btrfs")
_MEGABYTES: Final[dict[FileSystem, int]] = {"ext4": 128, "xfs": 320, "btrfs": 256}
"""Size of a disk. xfs and btrfs require about that."""
_OPTIONS: Final[dict[FileSystem, str]] = {"ext4": "loop", "xfs": "loop,nouuid", "btrfs": "loop"}
_NEW_MOUNTS: Final = 0x20000
_RECURSIVE, _PRIVATE = 1 << 14, 1 << 18
_BOOT_ID: Final = "/proc/sys/kernel/random/boot_id"


def leave_mounts() -> None:
    """Give this process its own mounts. Raises OSError if it lacks permission."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_NEW_MOUNTS) or libc.mount(None, b"/", None, _RECURSIVE | _PRIVATE, None):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def restart_machine(folder: Path, boot: str) -> None:
    """Replace the machine's boot id for this process by ``boot``, as after a restart."""
    file = folder / "boot_id"
    file.write_text(f"{boot}\n")
    subprocess.run(["mount", "--bind", file, _BOOT_ID], check=True)


def make_disk(path: Path, file_system: FileSystem) -> None:
    """Create the image of a disk with an empty ``file_system`` at ``path``."""
    with path.open("wb") as file:
        file.truncate(_MEGABYTES[file_system] << 20)
    force = "-F" if file_system == "ext4" else "-f"
    command = [f"mkfs.{file_system}", "-q", force, str(path)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def mount(disk: Path, file_system: FileSystem, place: Path) -> None:
    """Mount ``disk`` at ``place`` through a loop device, which ends with the mount. Raises
    CalledProcessError, with the reason in ``stderr``."""
    place.mkdir(exist_ok=True)
    command = ["mount", "-t", file_system, "-o", _OPTIONS[file_system], str(disk), str(place)]
    subprocess.run(command, check=True, capture_output=True, text=True)
