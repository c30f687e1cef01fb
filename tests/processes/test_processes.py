"""Many writers of one file, as processes and as threads: each version is one writer's, and no text is lost."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from threading import Barrier, Event, Thread

import pytest
from effort import rounds
from platforms.choice import PLATFORM_NAMES
from processes import write_many as writer
from processes.write_many import Told, write_many
from watchroom import Workspace

PATH = "shared/plan.md"
PROCESSES, VERSIONS_EACH = 8, rounds(25, 60)
THREADS, VERSIONS_A_THREAD = 16, rounds(10, 20)


class HistoryReader:
    """Reads ``history.json`` over and over, as another program would, and keeps what it found wrong."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._stop = Event()
        self._thread = Thread(target=self._run)
        self.wrong: list[str] = []
        self.lengths: list[int] = []

    def _run(self) -> None:
        judged = b""
        while not self._stop.is_set():
            try:
                data = self._file.read_bytes()
            except FileNotFoundError:
                if self.lengths:
                    self.wrong.append("it was gone")
                continue
            if data != judged:
                self._judge(data)
                judged = data

    def _judge(self, data: bytes) -> None:
        try:
            versions = [entry["version"] for entry in json.loads(data)]
        except ValueError as error:
            self.wrong.append(f"not JSON: {error}")
            return
        if versions != list(range(1, len(versions) + 1)):
            self.wrong.append(f"versions {versions}")
        if self.lengths and len(versions) < self.lengths[-1]:
            self.wrong.append(f"it shrank from {self.lengths[-1]} to {len(versions)}")
        self.lengths.append(len(versions))

    @contextmanager
    def reading(self) -> Iterator[None]:
        self._thread.start()
        try:
            yield
        finally:
            self._stop.set()
            self._thread.join()


@pytest.fixture
def history(root: Path) -> HistoryReader:
    return HistoryReader(root / "collaborative/.versions" / PATH / "history.json")


def test_processes_share_one_file_without_losing_a_text(root: Path, history: HistoryReader) -> None:
    agents = [f"agent{n}" for n in range(PROCESSES)]
    Workspace.open(root, agents=agents).close()
    command = [sys.executable, writer.__file__, str(root)]
    # Those that have no more of their system than POSIX keep to the same locks.
    platforms = cycle(PLATFORM_NAMES)
    processes = [
        subprocess.Popen(
            [*command, agent, PATH, str(VERSIONS_EACH), next(platforms)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for agent in agents
    ]
    try:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        with history.reading():
            for process in processes:
                assert process.stdin is not None
                process.stdin.write("go\n")
                process.stdin.flush()
            told = [_told(process.communicate()[0]) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    assert [process.returncode for process in processes] == [0] * PROCESSES
    assert history.wrong == []
    assert len(history.lengths) > 1
    with Workspace.open(root) as workspace:
        _check(root, workspace, told, PROCESSES * VERSIONS_EACH)


def test_threads_share_one_file_without_losing_a_text(root: Path, history: HistoryReader) -> None:
    agents = [f"agent{n}" for n in range(THREADS)]
    with Workspace.open(root, agents=agents) as workspace:
        together = Barrier(THREADS)

        def work(agent: str) -> Told:
            toolbox = workspace.tools(agent)
            together.wait()
            return write_many(toolbox, PATH, VERSIONS_A_THREAD)

        with history.reading(), ThreadPoolExecutor(THREADS) as pool:
            told = list(pool.map(work, agents))
    assert history.wrong == []
    with Workspace.open(root) as workspace:
        _check(root, workspace, told, THREADS * VERSIONS_A_THREAD)


def _told(output: str) -> Told:
    report: writer.Report = json.loads(output)
    return Told(dict(report["accepted"]), dict(report["refused"]))


def _check(root: Path, workspace: Workspace, told: list[Told], total: int) -> None:
    """What the writers were told is what the journal, the version files and the history hold: no more, no less."""
    accepted = {version: content for each in told for version, content in each.accepted.items()}
    assert sum(len(each.accepted) for each in told) == len(accepted) == total
    journal = workspace.journal
    rows = journal.history("collab", PATH)
    assert [row.version for row in rows] == list(range(1, total + 1))
    assert {row.version: journal.content(row.seq) for row in rows} == accepted
    assert [row.message for row in rows] == [f"after {version}" for version in range(total)]

    lost = {row: content for each in told for row, content in each.refused.items()}
    refused = journal.refused("collab", PATH, limit=1_000_000)
    # Before version 1 there is nothing to read: those readings are refused too.
    conflicts = [row for row in refused if row.error != "file_not_found"]
    assert {row.outcome for row in conflicts} <= {"conflict"}
    assert {row.seq: journal.content(row.seq) for row in conflicts} == lost

    versions = root / "collaborative/.versions" / PATH
    assert {n: (versions / f"v{n}.txt").read_text() for n in range(1, total + 1)} == accepted
    kept = json.loads((versions / "history.json").read_bytes())
    assert [(entry["version"], entry["author"], entry["checksum"]) for entry in kept] == [
        (row.version, row.actor, row.sha256) for row in rows
    ]
    assert (root / "collaborative/current" / PATH).read_text() == accepted[total]
    assert workspace.verify() == []
