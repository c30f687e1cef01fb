"""sandbox-exec of macOS: a profile lists the files that a command can access.

Folder names are parameters of the profile, never part of its text, so that they cannot change it. As with
Landlock, hidden files still exist, but cannot be read. It isolates less than the other kinds:

- Memory and the number of processes are not limited: macOS does not enforce such limits.
- A process that leaves the command's group (`setsid`) does not end with the command. It stays in the sandbox.
- The temporary folder is on disk. The size of each file is limited, the total size is not.
- A command cannot reach any hosts, even allowed hosts.
"""

from __future__ import annotations

import math
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from typing import Final

from watchroom.platform.disk import Parts
from watchroom.platform.sandbox.backend import (
    LaunchRequest,
    LaunchSpec,
    SandboxBackend,
    command_environment,
    python_prefix,
    resolve_command_folder,
    shell_command,
)
from watchroom.platform.sandbox.limits import CgroupFactory, ResourceLimits
from watchroom.platform.sandbox.repositories import CONTROL_FOLDER, protected_paths
from watchroom.platform.sandbox.supervised import create_temporary_folder

_READABLE: Final = (
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
_ERROR_PREFIX: Final = "sandbox-exec: "
_BLOCK_BYTES: Final = 512
"""The unit of `ulimit -f`."""


class SeatbeltBackend(SandboxBackend):
    """Runs commands through ``program``, the path of ``sandbox-exec``. macOS has no control groups."""

    name = "sandbox-exec"
    protects_git = True

    def __init__(self, program: str, cgroups: CgroupFactory) -> None:
        super().__init__(cgroups)
        self._program = program

    @classmethod
    def detect(cls, cgroups: CgroupFactory) -> SeatbeltBackend | None:
        """Return the backend, None unless this is macOS."""
        program = shutil.which("sandbox-exec") if sys.platform == "darwin" else None
        return cls(program, cgroups) if program else None

    def prepare(self, request: LaunchRequest) -> LaunchSpec:
        """Return the start of the command of ``request``. Raise the errors of `SandboxBackend.prepare`."""
        descriptors = request.descriptors
        path = resolve_command_folder(request.folder)
        temporary = create_temporary_folder(descriptors)
        fd = descriptors.add_own(os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW))
        protected = protected_paths(fd, path)
        variables = (f"{name}={value}" for name, value in command_environment(path, temporary).items())
        argv = (
            *(self._program, "-p", build_profile(len(protected), network=request.network is True)),
            *_parameters(path, temporary, protected),
            *("/usr/bin/env", "-i", *variables),
            *("/bin/sh", "-c", _LIMITED, "sh", path, *_limit_values(request.limits)),
            *shell_command(request.command),
        )
        return LaunchSpec(argv)

    def start_failure(self, status: bytes, exit_code: int, stderr: str) -> str | None:
        """Return the error of sandbox-exec on ``stderr``, None if the command ran. There is no ``status``."""
        if not exit_code or not stderr.startswith(_ERROR_PREFIX):
            return None
        return stderr.removeprefix(_ERROR_PREFIX).strip()


_LIMITED: Final = (
    'cd "$1" && ulimit -c 0 && ulimit -t "$2" && ulimit -n "$3" && ulimit -f "$4" || exit 126; '
    'shift 4; exec "$@"'
)


def _limit_values(limits: ResourceLimits) -> tuple[str, ...]:
    seconds = math.ceil(limits.seconds) * (os.cpu_count() or 1)
    return str(seconds), str(limits.open_files), str(limits.file_bytes // _BLOCK_BYTES)


_NO_REPOSITORIES: Final = (
    '(deny file-write* (require-all (subpath (param "FOLDER")) (regex #"/[.][gG][iI][tT](/|$)")))'
)


def build_profile(protected: int, *, network: bool) -> str:
    """Return the text of a profile. Operations that it does not allow are denied. Later rules override
    earlier rules.

    - ``protected``: the number of paths that stay read-only.
    - ``network``: whether to allow the machine's network.
    """
    lines = [
        "(version 1)",
        "(deny default)",
        "(allow process-fork)",
        "(allow signal (target same-sandbox))",
        "(allow process-info* (target same-sandbox))",
        "(allow sysctl-read)",
        "(allow file-read-metadata)",
        '(allow file-read* (literal "/"))',
        *(f'(allow file-read* process-exec file-map-executable (subpath "{path}"))' for path in _READABLE),
        *(f'(allow file-read* file-write-data (literal "{path}"))' for path in _DEVICES),
        *(
            f'(allow file-read* file-write* process-exec file-map-executable (subpath (param "{name}")))'
            for name in ("FOLDER", "TEMPORARY")
        ),
        '(allow file-read* process-exec file-map-executable (subpath (param "PYTHON")))',
        "(deny file-write-setugid)",
        _NO_REPOSITORIES,
        *(f'(deny file-write* (subpath (param "KEPT{n}")))' for n in range(protected)),
        '(deny file-read* file-write* (subpath (param "HIDDEN")))',
        *(("(allow network*)", "(allow system-socket)") if network else ()),
    ]
    return "\n".join(lines) + "\n"


def _parameters(path: str, temporary: str, protected: Sequence[Parts]) -> Iterator[str]:
    """Yield the options that set the parameters of the profile."""
    values = {
        "FOLDER": path,
        "TEMPORARY": temporary,
        "PYTHON": python_prefix() or "/usr",
        "HIDDEN": os.path.join(path, CONTROL_FOLDER),
        **{f"KEPT{n}": os.path.join(path, *parts) for n, parts in enumerate(protected)},
    }
    for name, value in values.items():
        yield from ("-D", f"{name}={value}")
