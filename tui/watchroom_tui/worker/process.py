"""Diffs and parsing in a worker process, so that the event loop stays free."""

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
"""Maximum bytes of a line of an answer. A line of a difference can be a complete text, and a JSON escape
takes six bytes."""

Values: TypeAlias = list[Any]
"""A tuple from a function of the worker, as JSON."""

T = TypeVar("T")


class _Question:
    """A pending question, which waits for the parts of its answer."""

    def __init__(self, make: Callable[[Values], object]) -> None:
        self.make = make
        self.items: list[object] = []
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class WorkerProcess:
    """Runner of functions in a worker process. The process starts with the first question and ends when its
    input ends.

    A question is a line of JSON with the lengths of the texts that follow. Texts of many megabytes are not
    encoded as JSON, because encoding would delay keys. An answer is several lines of JSON with a few hundred
    tuples each, and the event loop runs between them. Questions and answers have a number, so that answers to
    cancelled questions can be dropped.

    `anyio.to_process` and `ProcessPoolExecutor` unpickle an answer in one piece, on the event loop or while
    holding the interpreter's lock.
    """

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None
        self._starting = asyncio.Lock()
        self._numbers = itertools.count()
        self._waiting: dict[int, _Question] = {}
        self._reader: asyncio.Task[None] | None = None
        self._is_closed = False

    async def diff(self, old: str, new: str) -> list[DiffLine]:
        """Return the lines of `diff`."""
        return await self._ask(DiffLine._make, "diff", old, new)

    async def changes(self, old: str, new: str) -> list[LineChange]:
        """Return the changes from ``old`` to ``new``: see `watchroom.algorithms.merge.diff_lines`."""
        return await self._ask(LineChange._make, "changes", old, new)

    async def changes_of(self, texts: Sequence[str]) -> list[list[LineChange]]:
        """Return the changes from each text to the next."""
        steps: list[list[LineChange]] = [[] for _ in texts[1:]]
        await self._ask(
            lambda found: steps[found[0]].append(LineChange._make(found[1:])), "changes_of", *texts
        )
        return steps

    async def summary(self, board: bytes, language: Language) -> list[SummaryItem]:
        """Return the items of a board (UTF-8): see `watchroom_tui.formatters.board_summary.summary_of`."""
        from watchroom_tui.formatters.board_summary import SummaryItem

        return await self._ask(SummaryItem._make, "summary_of", board, language)

    async def start(self) -> None:
        """Start the process before the first question, because starting takes longer than most answers."""
        await self._running()

    async def _ask(self, make: Callable[[Values], T], function: str, *arguments: str | bytes) -> list[T]:
        """Return the answer. Pass each tuple through ``make`` on arrival."""
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
            # Reading lines that have already arrived does not yield to the event loop.
            await asyncio.sleep(0)
        for question in self._waiting.values():
            if self._is_closed:
                question.done.cancel()
            elif not question.done.done():
                question.done.set_exception(RuntimeError("the worker process ended"))

    async def close(self) -> None:
        """Kill the process. Pending and later questions are cancelled."""
        async with self._starting:
            process, self._is_closed = self._process, True
        if process is not None:
            if process.returncode is None:
                process.kill()
            await process.wait()
        if self._reader is not None:
            await self._reader
