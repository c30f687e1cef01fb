"""sandbox-exec of macOS: a command is held to a profile of what it may touch.

Names of folders are never part of the profile's text, whatever is in them: they are passed as parameters. As
with Landlock, what is hidden from a command is still there, and only cannot be read. What it has less than
the others:

- Memory and the number of processes are not limited: macOS does not hold processes to such limits.
- A process that leaves the command's group (`setsid`) is not ended with it. It stays in the sandbox.
- Its temporary folder is on disk: the size of a single file in it is limited, not of all of them together.
- It reaches no host, allowed or not.
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
    LaunchRequest,
    LaunchSpec,
    SandboxBackend,
    command_environment,
    python_prefix,
    resolve_command_folder,
    shell_command,
)
from watchroom.sandbox.cgroups import CgroupFactory
from watchroom.sandbox.limits import ResourceLimits
from watchroom.sandbox.repositories import CONTROL_FOLDER, protected_paths
from watchroom.sandbox.supervised import create_temporary_folder

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
"""The unit in which a shell limits the size of files."""


class SeatbeltBackend(SandboxBackend):
    """Runs commands through ``program``, the path of ``sandbox-exec``. ``cgroups`` creates none on macOS."""

    name = "sandbox-exec"
    protects_git = True

    def __init__(self, program: str, cgroups: CgroupFactory) -> None:
        super().__init__(cgroups)
        self._program = program

    @classmethod
    def detect(cls, cgroups: CgroupFactory) -> SeatbeltBackend | None:
        """The backend, with control groups of ``cgroups``; None unless this is macOS."""
        program = shutil.which("sandbox-exec") if sys.platform == "darwin" else None
        return cls(program, cgroups) if program else None

    def prepare(self, request: LaunchRequest) -> LaunchSpec:
        """How to start the command of ``request``. Raises as every backend does."""
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
        """What sandbox-exec printed to ``stderr`` where ``exit_code`` is not 0; it reports no ``status``."""
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
    """The text of a profile for a command; what it does not allow is denied, and the later of two rules
    counts. ``protected`` is the number of paths that stay read-only, ``network`` whether the machine's
    network is allowed."""
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
    """The options that give the profile its paths."""
    values = {
        "FOLDER": path,
        "TEMPORARY": temporary,
        "PYTHON": python_prefix() or "/usr",
        "HIDDEN": os.path.join(path, CONTROL_FOLDER),
        **{f"KEPT{n}": os.path.join(path, *parts) for n, parts in enumerate(protected)},
    }
    for name, value in values.items():
        yield from ("-D", f"{name}={value}")
