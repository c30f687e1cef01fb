"""How a command is started beneath a supervisor: what the backend of Landlock and no backend at all share."""

from __future__ import annotations

import marshal
import os
import sys
import tempfile
from typing import Final, NamedTuple

from watchroom.disk import Parts
from watchroom.sandbox import supervisor
from watchroom.sandbox.backend import Launch, LaunchDescriptors, environment
from watchroom.sandbox.supervisor import Call, Job

_WHY: Final = b'"why": "'
_CRASHED: Final = 1
_LOADING: Final = (
    "import sys; sys.path.append(sys.argv[1]); import supervisor; sys.exit(supervisor.main(int(sys.argv[2])))"
)
"""As a module, so that Python need not compile it each time."""


class Behind(NamedTuple):
    """What a command is held behind: Landlock's rules, a filter, and the calls that this hands over."""

    rules: int
    code: bytes
    calls: dict[int, Call]
    kept: tuple[Parts, ...] = ()


NOTHING: Final = Behind(-1, b"", {})


def is_possible() -> bool:
    """Whether a supervisor could find all that a command leaves behind."""
    return sys.platform == "linux" and os.path.exists(f"/proc/self/task/{os.getpid()}/children")


def temporary_folder(descriptors: LaunchDescriptors) -> str:
    """A folder for what a command needs only while it runs; it goes with it."""
    folder = os.path.realpath(tempfile.mkdtemp(prefix="watchroom-"))
    descriptors.add_cleanup(lambda: supervisor.remove_tree(folder))
    return folder


def launch(
    command: str,
    folder: tuple[str, int],
    temporary: str,
    behind: Behind,
    numbers: tuple[int, int],
    descriptors: LaunchDescriptors,
) -> Launch:
    """Start ``command`` in ``folder``, its path and a descriptor; ``numbers`` are those of seccomp and
    capset."""
    path, fd = folder
    told, telling = descriptors.output_pipe()
    gate, waiting = descriptors.input_pipe()
    job = Job(
        argv=("/bin/sh", "-c", command),
        environment=environment(path, temporary),
        temporary=temporary,
        writable=(path, temporary),
        kept=tuple(os.path.join(path, *parts) for parts in behind.kept),
        calls=behind.calls,
        code=behind.code,
        numbers=numbers,
        told=telling,
        gate=waiting,
        rules=behind.rules,
        folder=fd,
    )
    given = descriptors.add_inherited(os.memfd_create("watchroom"))
    os.write(given, marshal.dumps(vars(job)))
    os.lseek(given, 0, os.SEEK_SET)
    argv = (sys.executable, "-I", "-S", "-c", _LOADING, os.path.dirname(supervisor.__file__), str(given))
    return Launch(argv, told, gate, supervised=True)


def start_failure(told: bytes, exit_code: int, stderr: str) -> str | None:
    """What the supervisor says of a command that never ran, None if it did."""
    if _WHY in told:
        return told.partition(_WHY)[2].partition(b'"')[0].decode(errors="replace")
    if b'"exit-code"' in told or exit_code != _CRASHED:
        return None
    return stderr.strip().rpartition("\n")[2] or str(exit_code)
