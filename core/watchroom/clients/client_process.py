"""Starts the process of a client, and ends it with all that it has started."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from watchroom.clients.errors import ClientNotStarted
from watchroom.runtime.threads import run_in_thread

_NAMESPACE: Final = ("--bind", "/", "/", "--dev-bind", "/dev", "/dev", "--proc", "/proc", "--unshare-pid")
_START_SECONDS: Final = 60.0
_TERM_SECONDS: Final = 1.0
"""So long a client may take to end when it is asked to, before it is killed."""
_MOST_LINE: Final = 32 * 1024 * 1024
"""Bytes of one message of the protocol."""


async def start_process(given: Sequence[str], folder: str) -> Process:
    """Start the client with the command ``given`` in ``folder``, in a process namespace of its own where
    there is such a thing. Raises `ClientNotStarted`."""
    command = [*await run_in_thread(namespace_command), *given]
    try:
        return await asyncio.create_subprocess_exec(
            *command,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            cwd=folder,
            limit=_MOST_LINE,
            start_new_session=True,
        )
    except OSError as error:
        raise ClientNotStarted(command=" ".join(given), reason=str(error)) from error


def namespace_command() -> list[str]:
    """What stands before a command so that it runs in a process namespace of its own, which ends with it and
    with this process; empty where there is no such thing here."""
    program = shutil.which("bwrap")
    if program is None:
        return []
    command = [program, *_NAMESPACE, "--die-with-parent", "--"]
    tried = subprocess.run([*command, "true"], capture_output=True, check=False, timeout=_START_SECONDS)
    return command if tried.returncode == 0 else []


async def kill_process(process: Process) -> None:
    """End ``process`` and its process group: asked for a moment, then by force. In a namespace, whatever it
    started ends with it."""
    for number, seconds in ((signal.SIGTERM, _TERM_SECONDS), (signal.SIGKILL, None)):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await process.wait()
                if number is signal.SIGTERM:
                    continue
                return
