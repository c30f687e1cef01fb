"""The runner with a backend that adds nothing to it."""

from __future__ import annotations

import threading
from pathlib import Path

from sandbox.processes import marked_processes, token
from watchroom.platform.sandbox.backend import LaunchRequest, LaunchSpec, SandboxBackend, shell_command
from watchroom.platform.sandbox.limits import CgroupFactory, ResourceLimits
from watchroom.platform.sandbox.runner import CommandResult, run_command


class Bare(SandboxBackend):
    """A backend without isolation: the started process is the command's first one."""

    name = "bare"
    protects_git = True

    def prepare(self, request: LaunchRequest) -> LaunchSpec:
        return LaunchSpec(shell_command(request.command))

    def start_failure(self, status: bytes, exit_code: int, stderr: str) -> str | None:
        return None


def bare(
    command: str, folder: Path, seconds: float = 20, stop: threading.Event | None = None
) -> CommandResult:
    return run_command(
        command, str(folder), backend=Bare(CgroupFactory()), limits=ResourceLimits(seconds=seconds), stop=stop
    )


def test_its_result_is_whole(folder: Path) -> None:
    finished = bare("echo one; echo two >&2; cat; exit 5", folder)
    assert (finished.stdout, finished.stderr, finished.exit_code) == ("one\n", "two\n", 5)


def test_its_group_ends_with_it(folder: Path) -> None:
    marked = token()
    assert bare(f"sleep {marked} & echo done", folder).stdout == "done\n"
    assert marked_processes(marked) == []
    finished = bare(f"sleep {marked} & sleep {marked}", folder, seconds=0.3)
    assert (finished.timed_out, finished.exit_code) == (True, 137)
    assert marked_processes(marked) == []


def test_it_can_be_stopped(folder: Path) -> None:
    stop = threading.Event()
    stop.set()
    finished = bare("sleep 60", folder, stop=stop)
    assert (finished.stopped, finished.exit_code) == (True, 137)
