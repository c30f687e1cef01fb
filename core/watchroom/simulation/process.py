"""An agent in a process of its own: how that is started, heard, and ended, as its parent sees it."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from watchroom.simulation.player import Stage
from watchroom.simulation.statistics import CallRecord

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
        self._last_line = ""

    async def live(self) -> None:
        """Let the agent work until the simulation is over. Its process ends with its standard input, and so
        also where this process is killed."""
        process = await asyncio.create_subprocess_exec(
            *self._command(),
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            limit=_LONGEST_LINE,
            start_new_session=True,
        )
        readers = [asyncio.create_task(self._count(process)), asyncio.create_task(self._log_errors(process))]
        over = asyncio.create_task(self._stage.over.wait())
        try:
            await asyncio.wait([over, *readers], return_when=asyncio.FIRST_COMPLETED)
            await self._end(process)
        finally:
            over.cancel()
            if process.returncode is None:
                process.kill()
            code = await process.wait()
            await asyncio.gather(*readers)
        if code != 0:
            self._stage.statistics.add_error(
                f"{self.id}: its process ended with status {code}: {self._last_line}"
            )

    def _command(self) -> list[str]:
        stage = self._stage
        given = [stage.workspace.root, stage.scenario.source, self.id, str(stage.seed), str(stage.speed)]
        return [sys.executable, "-m", _MODULE, *given, *(agent.id for agent in stage.team)]

    async def _end(self, process: Process) -> None:
        if process.stdin is not None:
            process.stdin.close()
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), _PATIENCE)

    async def _count(self, process: Process) -> None:
        """Count what the agent does there as if it were done here. What is no report of that, something
        else has printed."""
        while process.stdout is not None and (line := await process.stdout.readline()):
            try:
                self._take(json.loads(line))
            except (ValueError, TypeError, AttributeError):
                self._log(line)

    def _take(self, report: Mapping[str, object]) -> None:
        statistics = self._stage.statistics
        if "call" in report:
            statistics.count_call(CallRecord(*report["call"]))  # type: ignore[misc]  # as the child wrote it
        elif "tokens" in report:
            statistics.count_session(int(str(report["tokens"])))
        elif "error" in report:
            statistics.add_error(str(report["error"]))
        elif report.get("abandoned"):
            statistics.count_abandoned()
        else:
            raise ValueError(report)

    async def _log_errors(self, process: Process) -> None:
        while process.stderr is not None and (line := await process.stderr.readline()):
            self._log(line)

    def _log(self, line: bytes) -> None:
        self._last_line = line.decode(errors="replace").rstrip()
        _log.error("%s, in its process: %s", self.id, self._last_line)
