"""Runs the checks of a workspace's attached agents in the background, one at a time."""

from __future__ import annotations

import asyncio
import logging
from threading import Event
from typing import Final

from watchroom.errors import JournalDenied, WatchroomError
from watchroom.features.checks.rows import DoneClaim
from watchroom.features.sessions.runtime.threads import run_in_thread
from watchroom.workspace import Workspace

_MAX_WAITING: Final = 1000
"""Maximum number of agents whose checks wait. Claims of further agents are shown without a check."""
_END_SECONDS: Final = 20.0
"""Timeout in seconds for a check that still runs when the service ends."""
_RETRY_SECONDS: Final = 60.0
"""Seconds after an error until unfinished checks are looked for again."""
_log = logging.getLogger("watchroom.service")


class CheckQueue:
    """The checks of ``workspace``. For use on one event loop."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._waiting: dict[str, DoneClaim] = {}
        self._stopping = Event()
        self._work: asyncio.Task[None] | None = None
        self._has_recovered = False
        self._is_retrying = False

    @property
    def is_busy(self) -> bool:
        """Whether a check runs or waits."""
        return self._work is not None and not self._work.done()

    def add(self, claim: DoneClaim) -> None:
        """Check ``claim`` after the claims that wait. An earlier one of the same agent is dropped."""
        if claim.agent in self._waiting or len(self._waiting) < _MAX_WAITING:
            self._waiting[claim.agent] = claim
            self.begin()

    def begin(self) -> None:
        """Run the checks that wait. First, run those that an earlier service or an error left unfinished."""
        if not self.is_busy and not self._stopping.is_set():
            self._work = asyncio.ensure_future(self._run_all())

    async def _run_all(self) -> None:
        while not self._stopping.is_set() and (self._waiting or not self._has_recovered):
            if not self._has_recovered:
                self._has_recovered = True
                await self._add_interrupted()
            else:
                await self._run(self._waiting.pop(next(iter(self._waiting))))

    async def _add_interrupted(self) -> None:
        try:
            for claim in await run_in_thread(self._recover):
                self._waiting.setdefault(claim.agent, claim)
        except WatchroomError as error:
            _log.warning("interrupted checks were not found", exc_info=True)
            if not isinstance(error, JournalDenied):
                # With an agent's login on a server, other services run the checks.
                self._recover_later()

    def _recover(self) -> list[DoneClaim]:
        # Without checks, their modules are not loaded.
        return self._workspace.checks.recover() if self._workspace.config.checks else []

    async def _run(self, claim: DoneClaim) -> None:
        try:
            await run_in_thread(self._check, claim)
        except (WatchroomError, OSError):
            # The checks of other agents still run.
            _log.warning("the work of %s was not checked", claim.agent, exc_info=True)
            self._recover_later()

    def _recover_later(self) -> None:
        """Look for unfinished checks again after `_RETRY_SECONDS`, when the journal may be usable again."""
        if not self._is_retrying:
            self._is_retrying = True
            asyncio.get_running_loop().call_later(_RETRY_SECONDS, self._recover_now)

    def _recover_now(self) -> None:
        self._has_recovered = self._is_retrying = False
        self.begin()

    def _check(self, claim: DoneClaim) -> None:
        if self._workspace.config.checks:
            self._workspace.checks.run(claim, self._stopping)

    async def close(self) -> None:
        """End the check that runs. The next service runs it again, and begins those that wait."""
        self._stopping.set()
        if self._work is not None:
            await asyncio.wait({self._work}, timeout=_END_SECONDS)
