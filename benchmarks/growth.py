"""Whether a team works on a long journal as fast as on a fresh one: rows a second, in rounds that take turns.

Both are one workspace in which the team has just begun; in one of the two its rows are copied until the
journal is long enough: sessions, requests, handoffs, documents, buffers and tasks under new names, private
and shared files and whiteboards as further versions. What the agents find to do is the same in both.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator
from statistics import median
from typing import Final, NamedTuple

from measure import Measure, scratch
from watchroom import Workspace
from watchroom.checkout.layout import CONTROL, JOURNAL_NAME
from watchroom.journal import Journal, SqliteJournal
from watchroom.model import ENDED, UNCHECKED, Draft, Json, Note, Row, Write
from watchroom.platforms import detect_platform
from watchroom.process_lock import ProcessLock
from watchroom.rules.handoffs import ACKNOWLEDGE_TOOL, split_handoff
from watchroom.simulation import Simulation, roster

TEAMS: Final = (12, 30)
ROWS: Final = 1_000_000
SAMPLE_ROWS: Final = 5_000
"""Rows that are simulated, before they are copied."""
ROUNDS: Final = 5
WARM_UP_ROWS: Final = 1_000
SECONDS: Final = 4.0
"""Of each round, after its warm-up."""
_BATCH: Final = 2_000
_RENAMED: Final = frozenset({"session", "request", "handoff", "buffer"})
"""Zones whose paths begin with an agent's name."""
_RENAMED_WHOLE: Final = frozenset({"realtime", "task", "agent", "file", "command"})
_NAMES: Final = ("task", "parent", "command")
_ROW_NUMBERS: Final = ("mail", "request", "conflict")
"""Details that name a row. What an agent has heard is not among them: it was not spoken to since."""
_SKIPPED: Final = frozenset({"config", "workspace"})


class Rate(NamedTuple):
    """Rows a second, and rows a second of this process's processor time."""

    wall: float
    processor: float


def measure(rows: int = ROWS, rounds: int = ROUNDS) -> list[Measure]:
    """The rate of each team on a journal of ``rows`` rows against that on a fresh one."""
    return [each for agents in TEAMS for each in _of_team(agents, rows, rounds)]


def _of_team(agents: int, rows: int, rounds: int) -> list[Measure]:
    with scratch() as folder:
        short, long = os.path.join(folder, "short"), os.path.join(folder, "long")
        with Workspace.open(short, roster(agents)) as workspace, _team(workspace, agents):
            _wait_for(workspace.journal, SAMPLE_ROWS)
        shutil.copytree(short, long)
        grow(long, rows)
        # What the copies left to be written to disk must not slow the rounds.
        os.sync()
        fresh: list[Rate] = []
        grown: list[Rate] = []
        for turn in range(rounds):
            places = [(short, fresh), (long, grown)]
            for root, rates in places[:: -1 if turn % 2 else 1]:
                rates.append(_rate(root, agents, turn))
    what = f"{agents} agents"
    ratio = median(one.wall / other.wall for one, other in zip(grown, fresh, strict=True))
    of_processor = median(one.processor / other.processor for one, other in zip(grown, fresh, strict=True))
    return [
        Measure(f"{what}, a fresh journal", median(rate.wall for rate in fresh), "rows/s"),
        Measure(f"{what}, {rows:,} rows", median(rate.wall for rate in grown), "rows/s"),
        Measure(f"{what}: a long journal against a fresh one", ratio, "×", 0.9, "≥"),
        Measure(f"{what}: the same by processor time", of_processor, "×", 0.9, "≥"),
    ]


def _rate(root: str, agents: int, seed: int) -> Rate:
    with (
        Workspace.open(root, roster(agents), scan=False) as workspace,
        _team(workspace, agents, seed),
    ):
        _wait_for(workspace.journal, workspace.journal.last_seq() + WARM_UP_ROWS)
        first, began, spent = workspace.journal.last_seq(), time.perf_counter(), time.process_time()
        time.sleep(SECONDS)
        made = workspace.journal.last_seq() - first
        return Rate(made / (time.perf_counter() - began), made / (time.process_time() - spent))


def _team(workspace: Workspace, agents: int, seed: int = 0) -> Simulation:
    return Simulation(workspace, roster(agents), seed=seed, speed=0)


def _wait_for(journal: Journal, seq: int) -> None:
    while journal.last_seq() < seq:
        time.sleep(0.02)


def grow(root: str, rows: int) -> None:
    """Copy the rows of the closed workspace at ``root`` until its journal has at least ``rows`` of them. The
    files of the copies are not laid out: what is current has the text that it had."""
    control = os.path.join(root, CONTROL)
    journal = SqliteJournal(os.path.join(control, JOURNAL_NAME))
    try:
        sample = _sample(journal)
        copy, last = 0, journal.last_seq()
        drafts: list[Draft] = []
        while last < rows:
            copy += 1
            for make in sample:
                drafts.append(make(copy, last))
                if len(drafts) == _BATCH:
                    journal.append(drafts)
                    drafts.clear()
            journal.append(drafts)
            drafts.clear()
            last = journal.last_seq()
    finally:
        journal.close()
    platform = detect_platform()
    lock = ProcessLock(os.path.join(control, "lock"), platform)
    lock.acquire()
    lock.set_text(f"{last} {platform.boot_id()}")
    lock.release()
    lock.close()


def _sample(journal: SqliteJournal) -> list[Callable[[int, int], Draft]]:
    """How to make each row once more, by the number of the copy and the row after which it begins."""
    left = {head.path for head in journal.heads("session") if head.detail["status"] not in ENDED}
    left |= {head.path for head in journal.heads("buffer") if not head.deleted}
    left |= {head.path for head in journal.heads("handoff") if not _is_acknowledged(journal, head)}
    kept = [row for row in _all(journal) if row.zone not in _SKIPPED and not _is_of(row, left)]
    numbers = [row.seq for row in kept]
    return [_copier(row, journal.content(row.seq), numbers) for row in kept]


def _is_acknowledged(journal: SqliteJournal, head: Row) -> bool:
    _, receiver, _ = split_handoff(head.path)
    note = journal.last_note("handoff", head.path, receiver, ACKNOWLEDGE_TOOL)
    return note is not None and note.base == head.version


def _all(journal: SqliteJournal) -> Iterator[Row]:
    seq = 0
    while found := journal.rows(seq):
        yield from found
        seq = found[-1].seq


def _is_of(row: Row, left: set[str]) -> bool:
    """Whether the row is of a session, a buffer or a handoff that was still open."""
    return row.zone in ("session", "request", "buffer", "handoff") and any(
        row.path == path or row.path.startswith(f"{path}/") for path in left
    )


def _copier(row: Row, content: str | None, numbers: list[int]) -> Callable[[int, int], Draft]:
    """``numbers`` are the rows that are copied, in order: where one names another, so does its copy."""
    detail = dict(row.detail)
    named = {name: bisect_right(numbers, _number(detail[name])) for name in _ROW_NUMBERS if name in detail}

    def make(copy: int, after: int) -> Draft:
        path = _renamed(row, copy)
        told: dict[str, Json] = dict(detail)
        told.update((name, after + place) for name, place in named.items())
        told.update((name, f"{detail[name]}-{copy}") for name in _NAMES if detail.get(name))
        if "call" in told:
            session, _, place = str(told["call"]).partition("/")
            told["call"] = f"{session}-{copy}/{place}"
        if row.version is not None:
            return Write(row.actor, row.tool, row.zone, path, content, row.message, UNCHECKED, told)
        return Note(
            row.actor,
            row.tool,
            row.zone,
            path,
            row.outcome,
            row.error,
            row.message,
            content,
            row.base,
            row.sha256,
            row.size,
            told,
        )

    return make


def _renamed(row: Row, copy: int) -> str:
    """The path of a copy. What is said to an agent is said to the same one."""
    first, slash, rest = row.path.partition("/")
    if row.zone in _RENAMED_WHOLE and not (row.zone == "agent" and row.version is None):
        return f"{first}-{copy}{slash}{rest}"
    if row.zone in _RENAMED and slash:
        name, slash, end = rest.partition("/")
        return f"{first}/{name}-{copy}{slash}{end}"
    return row.path


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


if __name__ == "__main__":
    import sys

    from measure import table

    print(json.dumps(sys.argv[1:]))
    print(table(measure(*map(int, sys.argv[1:]))))
