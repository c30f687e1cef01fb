"""An agent in a process of its own: how that is started, heard, and ended, as its parent sees it."""

from __future__ import annotations

import asyncio
import logging
import sys
from asyncio.subprocess import PIPE, STDOUT
from contextlib import suppress
from typing import Final

from watchroom.simulation.player import Stage

_MODULE: Final = "watchroom.simulation.process_main"
_PATIENCE: Final = 10.0
"""So many seconds a process has to end by itself: it may only just have begun to start."""
_LONGEST_LINE: Final = 1 << 20
_log = logging.getLogger("watchroom")


class AgentProcess:
    """The process in which the agent of that ``id`` plays its part on ``stage``."""

    def __init__(self, stage: Stage, id: str) -> None:  # noqa: A002  # as of a player
        self._stage = stage
        self.id = id

    async def live(self) -> None:
        """Let the agent work until this is cancelled. Its process ends with its standard input, and so also
        where this process is killed."""
        stage = self._stage
        given = [stage.workspace.root, stage.scenario.source, self.id, str(stage.seed), str(stage.speed)]
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
        with suppress(asyncio.CancelledError):
            process = await asyncio.shield(starting)
            while process.stdout is not None and (line := await process.stdout.readline()):
                last_line = self._log_line(line)
        process = await starting
        with suppress(TimeoutError):
            # Empty input ends its standard input. What it still says is heard: a pipe is written to late.
            rest, _ = await asyncio.wait_for(process.communicate(b""), _PATIENCE)
            for line in rest.splitlines():
                last_line = self._log_line(line)
        if process.returncode is None:
            process.kill()
        code = await process.wait()
        if code != 0:
            stage.errors.append(f"{self.id}: its process ended with status {code}: {last_line}")

    def _log_line(self, line: bytes) -> str:
        text = line.decode(errors="replace").rstrip()
        _log.error("%s, in its process: %s", self.id, text)
        return text
