"""The third backend: sandbox-exec of macOS, which holds a command to a profile of what it may touch.

Names of folders never stand in the profile's text, whatever is in them: they are given beside it. As with
Landlock, what is kept from a command is still there, and is only closed. What it has less than the others:

- Memory and the number of processes are not bounded: macOS does not hold processes to such limits.
- A process that leaves the command's group (`setsid`) is not ended with it. It stays behind the profile.
- Its temporary folder is one on disk, of which a single file is bounded, not all of them together.
- No host is reached, allowed or not.
"""

from __future__ import annotations

import math
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from typing import Final

from watchroom.disk import Parts
from watchroom.sandbox.backend import (
    Launch,
    LaunchDescriptors,
    NetworkAccess,
    environment,
    python_prefix,
    resolve_command_folder,
    shell,
)
from watchroom.sandbox.cgroups import CgroupFactory
from watchroom.sandbox.limits import ResourceLimits
from watchroom.sandbox.repositories import HIDDEN, protected_paths
from watchroom.sandbox.supervised_launch import temporary_folder

_SHOWN: Final = (
    "/Library/Apple",
    "/Library/Developer/CommandLineTools",
    "/System",
    "/bin",
    "/opt/homebrew",
    "/private/var/db/dyld",
    "/private/var/db/timezone",
    "/private/var/select",
    "/sbin",
    "/usr",
)
_DEVICES: Final = ("/dev/null", "/dev/random", "/dev/urandom", "/dev/zero")
_COMPLAINT: Final = "sandbox-exec: "
_BLOCK: Final = 512
"""Bytes, by which a shell counts the length of files."""


class SeatbeltBackend:
    """Runs commands through ``sandbox-exec``."""

    name = "sandbox-exec"
    counts_own_processes = False
    protects_git = True
    supports_proxy = False

    def __init__(self, program: str, groups: CgroupFactory) -> None:
        self.groups = groups
        self._program = program

    @classmethod
    def detect(cls, groups: CgroupFactory) -> SeatbeltBackend | None:
        program = shutil.which("sandbox-exec") if sys.platform == "darwin" else None
        return cls(program, groups) if program else None

    def launch(
        self,
        command: str,
        folder: str,
        limits: ResourceLimits,
        network: NetworkAccess,
        descriptors: LaunchDescriptors,
    ) -> Launch:
        path = resolve_command_folder(folder)
        temporary = temporary_folder(descriptors)
        fd = descriptors.add_own(os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW))
        kept = protected_paths(fd, path)
        variables = (f"{name}={value}" for name, value in environment(path, temporary).items())
        argv = (
            *(self._program, "-p", profile(len(kept), network=network is True)),
            *_parameters(path, temporary, kept),
            *("/usr/bin/env", "-i", *variables),
            *("/bin/sh", "-c", _IN_BOUNDS, "sh", path, *_bounds(limits), *shell(command)),
        )
        return Launch(argv)

    def start_failure(self, told: bytes, exit_code: int, stderr: str) -> str | None:
        if not exit_code or not stderr.startswith(_COMPLAINT):
            return None
        return stderr.removeprefix(_COMPLAINT).strip()


_IN_BOUNDS: Final = (
    'cd "$1" && ulimit -c 0 && ulimit -t "$2" && ulimit -n "$3" && ulimit -f "$4" || exit 126; '
    'shift 4; exec "$@"'
)


def _bounds(limits: ResourceLimits) -> tuple[str, ...]:
    seconds = math.ceil(limits.seconds) * (os.cpu_count() or 1)
    return str(seconds), str(limits.open_files), str(limits.file_bytes // _BLOCK)


_NO_REPOSITORIES: Final = (
    '(deny file-write* (require-all (subpath (param "FOLDER")) (regex #"/[.][gG][iI][tT](/|$)")))',
)


def profile(histories: int, *, network: bool) -> str:
    """What a command may touch; all else is denied. The later of two rules counts."""
    lines = [
        "(version 1)",
        "(deny default)",
        "(allow process-fork)",
        "(allow signal (target same-sandbox))",
        "(allow process-info* (target same-sandbox))",
        "(allow sysctl-read)",
        "(allow file-read-metadata)",
        '(allow file-read* (literal "/"))',
        *(f'(allow file-read* process-exec file-map-executable (subpath "{path}"))' for path in _SHOWN),
        *(f'(allow file-read* file-write-data (literal "{path}"))' for path in _DEVICES),
        *(
            f'(allow file-read* file-write* process-exec file-map-executable (subpath (param "{name}")))'
            for name in ("FOLDER", "TEMPORARY")
        ),
        '(allow file-read* process-exec file-map-executable (subpath (param "PYTHON")))',
        "(deny file-write-setugid)",
        *_NO_REPOSITORIES,
        *(f'(deny file-write* (subpath (param "KEPT{n}")))' for n in range(histories)),
        '(deny file-read* file-write* (subpath (param "HIDDEN")))',
        *(("(allow network*)", "(allow system-socket)") if network else ()),
    ]
    return "\n".join(lines) + "\n"


def _parameters(path: str, temporary: str, kept: Sequence[Parts]) -> Iterator[str]:
    """The names that the profile leaves out."""
    given = {
        "FOLDER": path,
        "TEMPORARY": temporary,
        "PYTHON": python_prefix() or "/usr",
        "HIDDEN": os.path.join(path, HIDDEN),
        **{f"KEPT{n}": os.path.join(path, *parts) for n, parts in enumerate(kept)},
    }
    for name, value in given.items():
        yield from ("-D", f"{name}={value}")
