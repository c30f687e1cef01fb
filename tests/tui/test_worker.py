"""The worker process answers like its functions, for any texts and any number of questions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from itertools import pairwise

import pytest
from calls import ok
from watchroom import Toolbox, Workspace
from watchroom.algorithms.merge import diff_lines
from watchroom.features.overview.reads import blame
from watchroom_tui.readers.blame import AT_ONCE, blame_lines
from watchroom_tui.worker.main import CHUNK, CHUNK_CHARACTERS, chunks, diff
from watchroom_tui.worker.process import WorkerProcess

TEXTS = ["", "one\ntwo\n", "one\n二\n", "one\r\n二\n\x00\x1b[31m", "", "no end"]
LARGE = "line\n" * (AT_ONCE // 5 + 1)


@pytest.fixture
async def process() -> AsyncIterator[WorkerProcess]:
    started = WorkerProcess()
    yield started
    await started.close()


async def test_the_process_finds_changes(process: WorkerProcess) -> None:
    for old, new in pairwise(TEXTS):
        assert await process.changes(old, new) == diff_lines(old, new)
        assert await process.diff(old, new) == diff(old, new)


async def test_the_process_finds_changes_from_each_text_to_the_next(process: WorkerProcess) -> None:
    assert await process.changes_of(TEXTS) == [diff_lines(old, new) for old, new in pairwise(TEXTS)]
    assert await process.changes_of(TEXTS[:1]) == []


async def test_a_cancelled_answer_is_dropped(process: WorkerProcess) -> None:
    given_up = asyncio.create_task(process.changes(LARGE, LARGE + "more\n"))
    await asyncio.sleep(0)
    given_up.cancel()
    assert await process.changes("a\n", "b\n") == diff_lines("a\n", "b\n")
    assert given_up.cancelled()


async def test_a_busy_process_ends_when_it_is_closed(process: WorkerProcess) -> None:
    await process.start()
    asked = asyncio.create_task(process.changes(LARGE, LARGE + "more\n"))
    await asyncio.sleep(0)
    await process.close()
    with pytest.raises(asyncio.CancelledError):
        await asked
    with pytest.raises(asyncio.CancelledError):
        await process.changes("a\n", "b\n")


async def test_blame_step_by_step_is_blame_at_once(
    workspace: Workspace, alice: Toolbox, bob: Toolbox, process: WorkerProcess
) -> None:
    texts = ["first\n", LARGE, "second\n" + LARGE, "second\n", "third\nsecond\n"]
    for number, text in enumerate(texts):
        writer = (alice, bob)[number % 2]
        ok(writer, "collab_write", filepath="long.md", content=text, message="m", expected_version=number)
    rows = workspace.journal.history("collab", "long.md")
    text, found = await blame_lines(workspace.journal, rows, process)
    assert text == texts[-1]
    assert found == blame(list(zip(rows, texts, strict=True)))
    assert [row.version for row in found] == [5, 3]


async def test_a_long_answer_leaves_the_event_loop_free_between_its_parts(process: WorkerProcess) -> None:
    old, new = "\n".join(map(str, range(60_000))), "\n".join(f"{each}!" for each in range(60_000))
    asked = asyncio.create_task(process.diff(old, new))
    turns = 0
    while not asked.done():
        turns += 1
        await asyncio.sleep(0)
    assert len(await asked) > 120_000
    assert turns > 120_000 // CHUNK


def test_parts_hold_everything_once_and_the_last_says_so() -> None:
    for count in (0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK):
        answer = [(number, "x" * (CHUNK_CHARACTERS if number % 100 == 7 else 1)) for number in range(count)]
        parts = list(chunks(answer))
        assert [item for part, _ in parts for item in part] == answer
        assert [is_last for _, is_last in parts] == [*[False] * (len(parts) - 1), True]
