"""A client without a terminal that does not outlive the process that started it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from watchroom.agents.clients import client_keeper
from watchroom.agents.clients.client_traces import SeenDescendants
from watchroom.agents.clients.processes import ClientProcess
from watchroom.platform import Platform

MAX_LOG_BYTES: Final = 1024 * 1024
"""Maximum bytes of the file for a client's output."""
LOOK_SECONDS: Final = 0.2
"""Seconds between two looks at a client."""
_END_SECONDS: Final = 5.0
"""Seconds that a client has to end after SIGTERM."""
_LEFT_SECONDS: Final = 1.0
"""Seconds that programs of a client have to end after SIGTERM."""


class KeptClient:
    """A client that was started with ``command`` in ``folder``. ``log``: the file for its output."""

    def __init__(
        self,
        platform: Platform,
        log: str,
        command: Sequence[str],
        environment: Mapping[str, str],
        folder: str,
    ) -> None:
        self._platform = platform
        self._seen: SeenDescendants | None = None
        os.makedirs(os.path.dirname(log), mode=0o700, exist_ok=True)
        words = (log, str(MAX_LOG_BYTES), str(_END_SECONDS), *command)
        # In its own session, so that ctrl+c at the terminal does not reach the client before `stop`.
        self._keeper = subprocess.Popen(
            [sys.executable, "-I", "-S", client_keeper.__file__, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env=environment,
            start_new_session=True,
        )

    def poll(self) -> int | None:
        """Return the exit status, None while the client runs."""
        return self._keeper.poll()

    def wait(self) -> None:
        """Wait until the client has ended."""
        self._keeper.wait()

    def stop(self) -> bool:
        """Ask the client to end. Return False if it has already ended."""
        if self._keeper.poll() is not None:
            return False
        for pid in self._platform.children(self._keeper.pid):
            self._seen = SeenDescendants(
                ClientProcess(pid, self._platform.process_start(pid), self._platform)
            )
            self._seen.look()
        self._close_input()
        return True

    def close(self) -> None:
        """End the programs that a stopped client started in process groups of their own. Call this after the
        client has ended."""
        self._close_input()
        if self._seen is None:
            return
        for number in (signal.SIGTERM, signal.SIGKILL):
            deadline = time.monotonic() + _LEFT_SECONDS
            for pid, started in self._seen.left():
                with suppress(PermissionError):
                    self._platform.send_signal(pid, started, number)
            while self._seen.left() and time.monotonic() < deadline:
                time.sleep(LOOK_SECONDS)

    def _close_input(self) -> None:
        if self._keeper.stdin is not None:
            self._keeper.stdin.close()
