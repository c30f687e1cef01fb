"""Runs the clients of a race at the same time, each without a terminal in its own working tree."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from watchroom.agents.clients.kept_client import LOOK_SECONDS, KeptClient
from watchroom.errors import GitError
from watchroom.features.races.reads import RaceEntry, RaceReader
from watchroom.features.races.rows import ChangeCounts, FinishState
from watchroom.kernel.call_context import CallContext
from watchroom.kernel.checkout.layout import CONTROL

if TYPE_CHECKING:
    from watchroom.workspace import Workspace

_FOLDER: Final = "races"
_OBSERVE_SECONDS: Final = 5.0
"""Seconds between two observations of an agent. Each can start git."""


class RaceStart(NamedTuple):
    """The start of an agent's client: its program and arguments, its environment, and its folder."""

    entry: RaceEntry
    command: tuple[str, ...]
    environment: Mapping[str, str]
    folder: str


class RaceProgress(NamedTuple):
    """The progress of an agent.

    - ``state``: None while it runs.
    - ``changes``: None if they were not measured.
    - ``is_waiting``: whether it waits for a person.
    """

    entry: RaceEntry
    state: FinishState | None
    seconds: float
    changes: ChangeCounts | None
    is_waiting: bool = False


def log_path(root: str, entry: RaceEntry) -> str:
    """Return the path of the log of the client of ``entry``, in the workspace at ``root``."""
    return os.path.join(root, CONTROL, _FOLDER, f"{entry.entrant.race}-{entry.entrant.number}.log")


class RaceRun:
    """Runs a race.

    - ``call``: the person for whom the ends are recorded.
    - ``starts``: the clients.
    - ``on_progress``: called several times per second with the state of each agent.
    - ``is_measured``: whether to measure the changes of the agents while they run.
    """

    def __init__(
        self,
        workspace: Workspace,
        call: CallContext,
        starts: Sequence[RaceStart],
        on_progress: Callable[[Sequence[RaceProgress]], object],
        *,
        is_measured: bool = False,
    ) -> None:
        self._starts = starts
        self._runs = [_Run(workspace, call, each) for each in starts]
        self._on_progress = on_progress
        self._is_measured = is_measured

    def run(self) -> None:
        """Start all clients, and return when all have ended.

        A client that has not ended after its timeout is ended. If this is interrupted, all are ended first.

        Raise `JournalError`, OSError.
        """
        try:
            for run in self._runs:
                run.start()
            self._wait()
        except BaseException:
            for run in self._runs:
                run.stop("stopped")
            self._wait()
            raise

    def _wait(self) -> None:
        while sum(run.look() for run in self._runs):
            self._observe_next()
            self._report()
            time.sleep(LOOK_SECONDS)
        self._report()

    def _report(self) -> None:
        self._on_progress([run.progress for run in self._runs])

    def _observe_next(self) -> None:
        """Observe the agent whose last observation is the oldest. Only one is observed at a time, because git
        is slow."""
        running = [run for run in self._runs if run.is_running]
        oldest = min(running, key=lambda run: run.observed, default=None)
        if oldest is not None and time.monotonic() - oldest.observed > _OBSERVE_SECONDS:
            oldest.observe(is_measured=self._is_measured)


class _Run:
    """The client of ``start``, and its end."""

    def __init__(self, workspace: Workspace, call: CallContext, start: RaceStart) -> None:
        self._workspace = workspace
        self._call = call
        self._start = start
        self._client: KeptClient | None = None
        self._began = 0.0
        self._cause: FinishState | None = None
        self._state: FinishState | None = None
        self._seconds = 0.0
        self._changes: ChangeCounts | None = None
        self._is_waiting = False
        self.observed = 0.0

    @property
    def is_running(self) -> bool:
        return self._client is not None and self._state is None

    @property
    def progress(self) -> RaceProgress:
        seconds = time.monotonic() - self._began if self.is_running else self._seconds
        is_waiting = self._is_waiting and self.is_running
        return RaceProgress(self._start.entry, self._state, seconds, self._changes, is_waiting)

    def start(self) -> None:
        start = self._start
        log = log_path(self._workspace.root, start.entry)
        self._began = self.observed = time.monotonic()
        platform = self._workspace.platform
        self._client = KeptClient(platform, log, start.command, start.environment, start.folder)

    def stop(self, cause: FinishState) -> None:
        """Ask the client to end. A second call does nothing."""
        if self._cause is None and self._client is not None and self._client.stop():
            self._cause = cause

    def look(self) -> bool:
        """Return whether the client runs. Record its end."""
        if self._client is None or self._state is not None:
            return False
        status = self._client.poll()
        if status is not None:
            self._end(self._client, status)
            return False
        if time.monotonic() - self._began > self._start.entry.entrant.timeout:
            self.stop("timeout")
        return True

    def observe(self, *, is_measured: bool) -> None:
        """Record whether the agent waits for a person. If ``is_measured``, also record its changes."""
        self._is_waiting = RaceReader(self._workspace.journal).is_waiting(self._start.entry)
        if is_measured:
            with suppress(GitError, OSError):
                # The agent may have deleted a file while git read it. The next measurement counts.
                self._changes = self._workspace.races.measure(self._start.entry)
        self.observed = time.monotonic()

    def _end(self, client: KeptClient, status: int) -> None:
        self._seconds = time.monotonic() - self._began
        client.close()
        state = self._cause or ("done" if status == 0 else "failed")
        done = self._workspace.races.finish(self._call, self._start.entry, state, abs(status), self._seconds)
        self._state, self._changes = state, done.changes
