"""An agent in a process of its own: how that is started, heard, and ended, as its parent sees it."""

from __future__ import annotations

import asyncio
import logging
import sys
from asyncio.subprocess import PIPE, STDOUT
from contextlib import suppress
from typing import Final, NamedTuple

from watchroom.simulation.player import Stage

_MODULE: Final = "watchroom.simulation.process_main"
_PATIENCE: Final = 10.0
"""So many seconds a process has to end by itself: it may only just have begun to start."""
NOTICED_SECONDS: Final = 8.0
"""After so long everybody has seen that a machine is lost."""
_LONGEST_LINE: Final = 1 << 20
_log = logging.getLogger("watchroom")


class AgentPlace(NamedTuple):
    """Where the process of an agent works: in the checkout ``root``, the parent's own where that is empty.
    After ``lost_after`` seconds that machine is lost, as by a power cut, and the agent goes on in the
    parent's."""

    root: str = ""
    lost_after: float | None = None


_HERE: Final = AgentPlace()


class AgentProcess:
    """The process in which the agent of that ``id`` plays its part on ``stage``, at its ``place``."""

    def __init__(self, stage: Stage, id: str, place: AgentPlace = _HERE) -> None:  # noqa: A002  # as of a player
        self._stage = stage
        self._place = place
        self.id = id

    async def live(self) -> None:
        """Let the agent work until this is cancelled. Its process ends with its standard input, and so also
        where this process is killed."""
        place = self._place
        if place.lost_after is not None:
            if not await self._work(place.root or self._stage.workspace.root, place.lost_after):
                return
            await asyncio.sleep(NOTICED_SECONDS)
            place = AgentPlace()
        await self._work(place.root or self._stage.workspace.root, None)

    async def _work(self, root: str, lost_after: float | None) -> bool:
        """Let the agent work in the checkout ``root``; after ``lost_after`` seconds it is killed. Returns
        whether that was its end."""
        stage = self._stage
        given = [root, stage.scenario.source, self.id, str(stage.seed), str(stage.speed)]
        # Its start is not cancelled: asyncio would complain of a process that it has to kill.
        starting = asyncio.create_task(
            asyncio.create_subprocess_exec(
                *(sys.executable, "-m", _MODULE, *given, *(agent.id for agent in stage.team)),
                stdin=PIPE,
                stdout=PIPE,
                stderr=STDOUT,
                limit=_LONGEST_LINE,
                start_new_session=True,
            )
        )
        last_line = ""
        is_lost = False
        try:
            process = await asyncio.shield(starting)
            async with asyncio.timeout(lost_after):
                while process.stdout is not None and (line := await process.stdout.readline()):
                    last_line = self._log_line(line)
        except TimeoutError:
            is_lost = True
            (await starting).kill()
        except asyncio.CancelledError:
            # It is asked to end, below.
            pass
        process = await starting
        with suppress(TimeoutError):
            # Empty input ends its standard input. What it still says is heard: a pipe is written to late.
            async with asyncio.timeout(_PATIENCE):
                rest, _ = await process.communicate(b"")
            for line in rest.splitlines():
                last_line = self._log_line(line)
        if process.returncode is None:
            process.kill()
        code = await process.wait()
        if code != 0 and not is_lost:
            stage.errors.append(f"{self.id}: its process ended with status {code}: {last_line}")
        return is_lost

    def _log_line(self, line: bytes) -> str:
        text = line.decode(errors="replace").rstrip()
        _log.error("%s, in its process: %s", self.id, text)
        return text
