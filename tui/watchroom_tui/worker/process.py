"""Run diffs and parsing in a worker process, so that the event loop stays free."""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, cast

from watchroom.algorithms.merge import LineChange
from watchroom.texts import Language

from watchroom_tui.worker import main as worker_main
from watchroom_tui.worker.main import DiffLine

if TYPE_CHECKING:
    from watchroom_tui.formatters.board_summary import SummaryItem

MAX_LINE_BYTES: Final = 128 * 1024 * 1024
"""One line of a diff may be as long as a text, and JSON spells some characters in six."""

Values: TypeAlias = list[Any]
"""A tuple that a worker's function gives, as JSON has it."""

T = TypeVar("T")


class _Question:
    """What waits for an answer, which comes in parts."""

    def __init__(self, make: Callable[[Values], object]) -> None:
        self.make = make
        self.items: list[object] = []
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class WorkerProcess:
    """Works in a process of its own, which starts with the first question and ends with its input.

    A question is a line of JSON, which says how many bytes of each text follow: texts of many megabytes are
    never wrapped in JSON, which would hold up a key. An answer comes in lines of JSON with a few hundred
    tuples each, and between two of them the event loop does what else there is. Both have a number: an answer
    that nobody waits for any more is dropped.

    `anyio.to_process` and `ProcessPoolExecutor` unpickle an answer in one piece, on the event loop or with
    the interpreter's lock held.
    """

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None
        self._starting = asyncio.Lock()
        self._numbers = itertools.count()
        self._waiting: dict[int, _Question] = {}
        self._reader: asyncio.Task[None] | None = None
        self._is_closed = False

    async def diff(self, old: str, new: str) -> list[DiffLine]:
        """The lines of `diff`."""
        return await self._ask(DiffLine._make, "diff", old, new)

    async def changes(self, old: str, new: str) -> list[LineChange]:
        """Return the changes that `watchroom.algorithms.merge.diff_lines` finds."""
        return await self._ask(LineChange._make, "changes", old, new)

    async def changes_of(self, texts: Sequence[str]) -> list[list[LineChange]]:
        """What changed from each text to the next."""
        steps: list[list[LineChange]] = [[] for _ in texts[1:]]
        await self._ask(
            lambda found: steps[found[0]].append(LineChange._make(found[1:])), "changes_of", *texts
        )
        return steps

    async def summary(self, board: bytes, language: Language) -> list[SummaryItem]:
        """What `watchroom_tui.formatters.board_summary.summary_of` finds in a board (UTF-8)."""
        from watchroom_tui.formatters.board_summary import SummaryItem

        return await self._ask(SummaryItem._make, "summary_of", board, language)

    async def start(self) -> None:
        """Start the process, for a question that will come: starting takes longer than most answers."""
        await self._running()

    async def _ask(self, make: Callable[[Values], T], function: str, *arguments: str | bytes) -> list[T]:
        """The answer, each of its tuples passed through ``make`` as it comes."""
        process = await self._running()
        number = next(self._numbers)
        question = self._waiting[number] = _Question(make)
        if process.stdin is None:
            raise RuntimeError("the worker process was started without an input")
        texts = [each.encode() if isinstance(each, str) else each for each in arguments]
        process.stdin.write(json.dumps([number, function, *map(len, texts)]).encode() + b"\n")
        for text in texts:
            process.stdin.write(text)
        try:
            await question.done
        finally:
            self._waiting.pop(number, None)
        return cast("list[T]", question.items)

    async def _running(self) -> asyncio.subprocess.Process:
        async with self._starting:
            if self._is_closed:
                raise asyncio.CancelledError
            if self._process is None or self._process.returncode is not None:
                self._process = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-P", "-m", worker_main.__name__),
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.DEVNULL,
                    limit=MAX_LINE_BYTES,
                    start_new_session=True,
                )
                self._reader = asyncio.create_task(self._read(self._process))
            return self._process

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        while process.stdout is not None and (line := await process.stdout.readline()):
            number, is_last, part = json.loads(line)
            question = self._waiting.get(number)
            if question is not None:
                question.items += map(question.make, part)
                if is_last and not question.done.done():
                    question.done.set_result(None)
            # A line that is there already is read without a pause.
            await asyncio.sleep(0)
        for question in self._waiting.values():
            if self._is_closed:
                question.done.cancel()
            elif not question.done.done():
                question.done.set_exception(RuntimeError("the worker process ended"))

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
