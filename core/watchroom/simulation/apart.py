"""An agent that works in a process of its own: how that is started, heard, and ended. See `elsewhere`."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from watchroom.model import Json
from watchroom.simulation.player import Stage
from watchroom.simulation.steps import Call, Result, number_in, text_in

_MODULE: Final = "watchroom.simulation.elsewhere"
_PATIENCE: Final = 10.0
"""So many seconds a process has to end by itself: it may only just have begun to start."""
_LONGEST_LINE: Final = 1 << 20
_log = logging.getLogger("watchroom")


class Apart:
    """The process of ``agent``, on the event loop of the simulation."""

    def __init__(self, stage: Stage, agent: str) -> None:
        self._stage = stage
        self.id = agent
        self._last_words = ""

    async def live(self) -> None:
        """Let the agent work until the simulation is over. It ends with its standard input, and so also where
        this process is killed."""
        process = await asyncio.create_subprocess_exec(
            *self._command(),
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            limit=_LONGEST_LINE,
            start_new_session=True,
        )
        listening = [
            asyncio.create_task(self._listen(process)),
            asyncio.create_task(self._log_errors(process)),
        ]
        over = asyncio.create_task(self._stage.over.wait())
        try:
            await asyncio.wait([over, *listening], return_when=asyncio.FIRST_COMPLETED)
            await self._end(process)
        finally:
            over.cancel()
            if process.returncode is None:
                process.kill()
            code = await process.wait()
            await asyncio.gather(*listening)
        if code != 0:
            self._stage.tally.failed(f"{self.id}: its process ended with status {code}: {self._last_words}")

    def _command(self) -> list[str]:
        stage = self._stage
        given = [stage.workspace.root, self.id, str(stage.seed), str(stage.speed)]
        people = ["--people"] if stage.people_help else []
        return [sys.executable, "-m", _MODULE, *given, *people, "--team", *(agent.id for agent in stage.team)]

    async def _end(self, process: Process) -> None:
        if process.stdin is not None:
            process.stdin.close()
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), _PATIENCE)

    async def _listen(self, process: Process) -> None:
        """Count what the agent does over there as if it were done here. What is no report of that, something
        else has printed."""
        while process.stdout is not None and (line := await process.stdout.readline()):
            try:
                told = json.loads(line)
            except ValueError:
                self._log(line)
            else:
                self._take(told)

    def _take(self, told: Mapping[str, Json]) -> None:
        tally, result = self._stage.tally, told.get("result")
        if isinstance(result, Mapping):
            tally.called(_call_in(told), result)
        elif "tokens" in told:
            tally.ended_session(number_in(told, "tokens"))
        elif "error" in told:
            tally.failed(text_in(told, "error"))
        else:
            tally.gave_up()

    async def _log_errors(self, process: Process) -> None:
        while process.stderr is not None and (line := await process.stderr.readline()):
            self._log(line)

    def _log(self, line: bytes) -> None:
        self._last_words = line.decode(errors="replace").rstrip()
        _log.error("%s, in its process: %s", self.id, self._last_words)


def _call_in(told: Result) -> Call:
    arguments: dict[str, Json] = {"operation": text_in(told, "operation")}
    return Call(text_in(told, "tool"), arguments, number_in(told, "attempt"))
