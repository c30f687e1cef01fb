"""The resident service in tests. Each test has its own, in its own runtime folder."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import pytest
from watchroom.agents.clients import client_program
from watchroom.platform import detect_platform

PATIENCE: Final = 60


@contextmanager
def own_runtime_folder(patch: pytest.MonkeyPatch, *, is_blocked: bool) -> Iterator[Path]:
    """Run services within the context in a new folder, and end them afterwards. ``is_blocked``: none runs
    unless the test allows it."""
    # Paths of sockets must be short, and those of tests are long.
    folder = tempfile.mkdtemp(prefix="wr", dir="/tmp")
    patch.setenv("XDG_RUNTIME_DIR", folder)
    # Another session id, so that the service of another test does not look like a program left by a client of
    # this one.
    patch.setenv("XDG_SESSION_ID", os.path.basename(folder))
    if is_blocked:
        block_service()
    try:
        yield Path(folder)
    finally:
        end_service(Path(folder, "watchroom"))
        shutil.rmtree(folder, ignore_errors=True)


def block_service() -> None:
    """Prevent hooks, servers and dashboards from finding or starting a service."""
    Path(client_program.runtime_folder()).touch()


def allow_service() -> None:
    """End the effect of `block_service`."""
    folder = Path(client_program.runtime_folder())
    if folder.is_file():
        folder.unlink()


def end_service(folder: Path) -> None:
    """End the service whose runtime folder is ``folder``, if one runs."""
    platform = detect_platform()
    with suppress(FileNotFoundError, NotADirectoryError, ValueError, IndexError):
        pid, recorded = map(float, (folder / client_program.LOCK).read_text().split()[:2])
        pid, started = int(pid), platform.process_start(int(pid))
        if round(started) != round(recorded):
            # The service has ended, and another process may have its id.
            return
        with suppress(OSError, ValueError):
            client_program.ask("POST", "/stop", seconds=PATIENCE)
        if not platform.wait_ended(pid, started, PATIENCE):
            os.kill(pid, 9)


def service_pid() -> int:
    """Return the process id of the running service."""
    return int(Path(client_program.runtime_folder(), client_program.LOCK).read_text().split()[0])


def service_status() -> Mapping[str, Any]:
    """Return the status that the service reports, empty if there is no answer."""
    try:
        fields: Mapping[str, Any] = json.loads(client_program.ask("GET", "/status", seconds=PATIENCE))
    except (OSError, ValueError):
        return {}
    return fields


def is_attended(root: Path, pid: int, agent: str) -> bool:
    """Return whether the service knows the client of ``agent`` with the process ``pid`` in the workspace at
    ``root``."""
    return any(
        client["process"] == pid and agent in client["agents"]
        for each in service_status().get("workspaces", ())
        if each["root"] == os.path.realpath(root)
        for client in each["clients"]
    )


@contextmanager
def running_service(
    program: Sequence[str] = ("-m", "watchroom_cli.main"),
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a service within the context. ``program``: Python's arguments that run Watchroom."""
    allow_service()
    command = [sys.executable, *program, "service", "run"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as process:
        until = time.monotonic() + PATIENCE
        while not service_status():
            assert time.monotonic() < until, "no service"
            time.sleep(0.01)
        try:
            yield process
        finally:
            process.terminate()
            process.wait(PATIENCE)
