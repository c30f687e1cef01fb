"""Heavy work that must not hold up a key: done in one worker process, started when first needed."""

from __future__ import annotations

import asyncio
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Literal, NamedTuple, TypeAlias

DiffKind: TypeAlias = Literal["same", "added", "removed", "hunk"]


class DiffLine(NamedTuple):
    """A line of a diff. Numbers count from 1; 0 where the line is not on that side."""

    kind: DiffKind
    old: int
    new: int
    text: str


def diff(old: str, new: str, context: int = 3) -> list[DiffLine]:
    """The changed lines from ``old`` to ``new`` with ``context`` lines around them."""
    import pygit2

    patch = pygit2.Patch.create_from(old.encode(), new.encode(), context_lines=context, interhunk_lines=1)
    lines: list[DiffLine] = []
    kinds: dict[str, DiffKind] = {" ": "same", "+": "added", "-": "removed"}
    for hunk in patch.hunks:
        lines.append(DiffLine("hunk", hunk.old_start, hunk.new_start, hunk.header.strip()))
        for line in hunk.lines:
            kind = kinds.get(line.origin)
            if kind:
                text = line.raw_content.decode("utf-8", "replace").removesuffix("\n").removesuffix("\r")
                lines.append(DiffLine(kind, max(0, line.old_lineno), max(0, line.new_lineno), text))
    return lines


class WorkerProcess:
    """Runs functions of this module in a process of their own."""

    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None

    async def diff(self, old: str, new: str) -> list[DiffLine]:
        if self._pool is None:
            self._pool = ProcessPoolExecutor(max_workers=1, mp_context=get_context("spawn"))
        return await asyncio.get_running_loop().run_in_executor(self._pool, diff, old, new)

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
