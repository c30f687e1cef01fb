"""Run diffs and parsing in a worker process, so that the event loop stays free."""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from watchroom.merge import LineChange
from watchroom.texts import Language

from watchroom_tui.services import worker_main
from watchroom_tui.services.worker_main import DiffLine

if TYPE_CHECKING:
    from watchroom_tui.board_summary import SummaryItem

LONGEST_ANSWER: Final = 256 * 1024 * 1024

Answer: TypeAlias = list[list[str | int]]
"""What a worker's function gives: a list of tuples, as JSON has them."""


class WorkerProcess:
    """Works in a process of its own, which starts with the first question and ends with its input.

    A question is a line of JSON, which says how many bytes of each text follow: texts of many megabytes are
    never wrapped in JSON, which would hold up a key. An answer is a line of JSON. Both have a number: an
    answer that nobody waits for any more is dropped.
    """

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None
        self._starting = asyncio.Lock()
        self._numbers = itertools.count()
        self._waiting: dict[int, asyncio.Future[Answer]] = {}
        self._reader: asyncio.Task[None] | None = None
        self._is_closed = False

    async def diff(self, old: str, new: str) -> list[DiffLine]:
        """The lines of `diff`."""
        return [DiffLine._make(each) for each in await self._ask("diff", old, new)]

    async def changes(self, old: str, new: str) -> list[LineChange]:
        """What `watchroom.merge.changes` finds."""
        return [LineChange._make(each) for each in await self._ask("changes", old, new)]

    async def changes_of(self, texts: Sequence[str]) -> list[list[LineChange]]:
        """What changed from each text to the next."""
        steps: list[list[LineChange]] = [[] for _ in texts[1:]]
        for step, *change in cast("list[list[int]]", await self._ask("changes_of", *texts)):
            steps[step].append(LineChange._make(change))
        return steps

    async def summary(self, board: bytes, language: Language) -> list[SummaryItem]:
        """What `watchroom_tui.board_summary.summary_of` finds in a board (UTF-8)."""
        from watchroom_tui.board_summary import SummaryItem

        return [SummaryItem._make(each) for each in await self._ask("summary_of", board, language)]

    async def start(self) -> None:
        """Start the process, for a question that will come: starting takes longer than most answers."""
        await self._running()

    async def _ask(self, function: str, *arguments: str | bytes) -> Answer:
        process = await self._running()
        number = next(self._numbers)
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        if process.stdin is None:
            raise RuntimeError("the worker process was started without an input")
        texts = [each.encode() if isinstance(each, str) else each for each in arguments]
        process.stdin.write(json.dumps([number, function, *map(len, texts)]).encode() + b"\n")
        for text in texts:
            process.stdin.write(text)
        try:
            return await answer
        finally:
            self._waiting.pop(number, None)

    async def _running(self) -> asyncio.subprocess.Process:
        async with self._starting:
            if self._is_closed:
                raise asyncio.CancelledError
            if self._process is None or self._process.returncode is not None:
                self._process = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-m", worker_main.__name__),
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.DEVNULL,
                    limit=LONGEST_ANSWER,
                    start_new_session=True,
                )
                self._reader = asyncio.create_task(self._read(self._process))
            return self._process

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        while process.stdout is not None and (line := await process.stdout.readline()):
            number, lines = json.loads(line)
            answer = self._waiting.get(number)
            if answer is not None and not answer.done():
                answer.set_result(lines)
        for answer in self._waiting.values():
            if self._is_closed:
                answer.cancel()
            elif not answer.done():
                answer.set_exception(RuntimeError("the worker process ended"))

    async def close(self) -> None:
        """End the process, whatever it is at. Who waits for an answer is cancelled, and who asks later."""
        async with self._starting:
            process, self._is_closed = self._process, True
        if process is not None:
            if process.returncode is None:
                process.kill()
            await process.wait()
        if self._reader is not None:
            await self._reader
