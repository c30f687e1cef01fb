"""Killed or refused at a chosen system call, a writer keeps its word: done is done, refused is not done.

The calls are chosen with strace: the N-th of a kind kills the writer, or fails as on a full disk. The kinds
are those that decide what survives: the sync of the journal, its writing, and the renaming of files.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest
from calls import ok
from crash import writer
from crash.test_kill import lost
from crash.writer import AGENTS, GO, NOT_OPENED, Acknowledged
from evidence import outside_rows, snapshot, torn
from watchroom import Workspace

OPERATIONS = 30
SYNCS = "fdatasync,fsync"
JOURNAL_FILE = ".watchroom/journal.db-wal"
VIEW_FILES = ".watchroom/tmp"
LAID_MARK = ".watchroom/lock"
KILLED = -signal.SIGKILL
ON_THIS_DISK = pytest.mark.sqlite("A server syncs and stores its rows itself.")

pytestmark = pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")


class Traced:
    """Has writers run under strace, one at a time. They are forked: an interpreter that starts makes thousands of
    calls, and strace stops it at each."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin
        assert process.stdout
        self._orders: IO[str] = process.stdin
        self._lines: IO[str] = process.stdout

    def run_with_fault(
        self, root: Path, faults: dict[str, str], seed: int, only: tuple[str, ...] = ()
    ) -> tuple[list[Acknowledged], int]:
        """What a writer of `OPERATIONS` operations was told, and the code with which it ended.

        ``faults`` has for kinds of system calls what is done to them. ``only`` calls that touch one of these files
        or folders of the workspace count.
        """
        told, complaints = root.parent / "told", root.parent / "complaints"
        order = writer.Order(
            root=str(root), seed=seed, operations=OPERATIONS, told=str(told), complaints=str(complaints)
        )
        self._orders.write(json.dumps(order) + "\n")
        self._orders.flush()
        child = int(self._lines.readline())
        # Not with --seccomp-bpf, which is faster but forgets to deliver signals.
        command = [
            *("strace", "-f", "-p", str(child), "-o", str(root.parent / "strace.log")),
            *(option for path in only for option in ("-P", str(root / path))),
            *("-e", f"trace={','.join(faults)}"),
            *(option for calls, fault in faults.items() for option in ("-e", f"inject={calls}:{fault}")),
        ]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as strace:
            assert strace.stderr
            first = strace.stderr.readline()
            os.kill(child, GO if "attached" in first else signal.SIGKILL)
            code = int(self._lines.readline())
            said = first + strace.stderr.read()
        if "attached" not in first:
            assert "ptrace" in said, said
            pytest.skip(f"strace may not trace here: {said.strip()}")
        print(complaints.read_text())
        return [json.loads(line) for line in told.read_text().splitlines()], code


@pytest.fixture(scope="module")
def traced() -> Iterator[Traced]:
    command = [sys.executable, writer.__file__]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield Traced(process)
    finally:
        process.communicate()


@ON_THIS_DISK
@pytest.mark.parametrize("nth", [1, 2, 3, 5, 8, 13, 21])
def test_killed_at_a_sync(traced: Traced, root: Path, nth: int) -> None:
    told, code = traced.run_with_fault(root, {SYNCS: f"signal=KILL:when={nth}"}, seed=nth)
    assert code == KILLED
    _check_after_death(root, told)


@pytest.mark.parametrize(
    ("calls", "nth"),
    [
        *(("pwrite64", nth) for nth in (1, 5, 12, 20)),
        *(("renameat2,renameat,rename", nth) for nth in (1, 5, 12, 20)),
        *(("write", nth) for nth in (1, 5, 12, 20)),
        *(("unlinkat", nth) for nth in (1, 2, 3)),
    ],
)
def test_killed_at_a_call_that_changes_a_file(traced: Traced, root: Path, calls: str, nth: int) -> None:
    Workspace.open(root, AGENTS).close()
    told, code = traced.run_with_fault(root, {calls: f"signal=KILL:when={nth}"}, seed=nth)
    assert code == KILLED
    _check_after_death(root, told)


@pytest.mark.parametrize("nth", [1, 2, 4, 7, 20])
def test_a_sync_that_fails_once_is_a_refusal(traced: Traced, root: Path, nth: int) -> None:
    Workspace.open(root, AGENTS).close()
    told, code = traced.run_with_fault(root, {SYNCS: f"error=ENOSPC:when={nth}"}, seed=nth)
    assert code == 0
    assert {each["success"] for each in told} >= {True}
    _check_told(root, told)


@pytest.mark.parametrize("nth", [5, 13, 34])
@pytest.mark.parametrize(
    "only",
    [
        pytest.param((JOURNAL_FILE,), marks=ON_THIS_DISK),
        (VIEW_FILES,),
        pytest.param((JOURNAL_FILE, VIEW_FILES), marks=ON_THIS_DISK),
        (LAID_MARK,),
    ],
    ids=str,
)
def test_on_a_disk_that_is_full_from_some_moment_on(
    traced: Traced, root: Path, only: tuple[str, ...], nth: int
) -> None:
    """Full for the journal, for the files laid out from it, for both, or for the mark of how far they are."""
    Workspace.open(root, AGENTS).close()
    told, code = traced.run_with_fault(
        root, {"openat,write,pwrite64": f"error=ENOSPC:when={nth}+"}, nth, only
    )
    assert code in (0, NOT_OPENED)
    if JOURNAL_FILE in only and code == 0:
        assert any(not each["success"] and each["row"] is None for each in told)
    _check_told(root, told)


@ON_THIS_DISK
@pytest.mark.parametrize("nth", [8, 11, 14, 23])
def test_on_a_disk_that_is_full_for_files_first_and_then_for_the_journal(
    traced: Traced, root: Path, nth: int
) -> None:
    """What was committed just before has been done, even if not even the failure can be noted any more."""
    Workspace.open(root, AGENTS).close()
    faults = {"openat": "error=ENOSPC:when=6+", "pwrite64": f"error=ENOSPC:when={nth}+"}
    told, code = traced.run_with_fault(root, faults, 1, (JOURNAL_FILE, VIEW_FILES))
    assert code == 0
    _check_told(root, told)


@pytest.mark.parametrize(
    ("calls", "nth"),
    [("renameat2", 2), ("write", 3), ("unlinkat", 1), *(("pwrite64", nth) for nth in range(11, 20, 2))],
)
def test_an_edit_by_hand_survives_the_death_of_the_writer_that_overwrote_it(
    traced: Traced, root: Path, calls: str, nth: int
) -> None:
    files = {
        **{f"agents/alice/folder/{n}.md": f"by hand, private {n}" for n in range(4)},
        **{f"collaborative/current/plans/{n}.md": f"by hand, shared {n}" for n in range(3)},
    }
    with Workspace.open(root, AGENTS) as workspace:
        alice = workspace.tools("alice")
        for n in range(4):
            ok(alice, "save_to_my_workspace", filename=f"folder/{n}.md", content="first")
        for n in range(3):
            ok(alice, "collab_write", filepath=f"plans/{n}.md", content="first", message="m")
    for file, text in files.items():
        (root / file).write_text(text)
    _, code = traced.run_with_fault(root, {calls: f"signal=KILL:when={nth}"}, seed=1)
    assert code == KILLED
    with Workspace.open(root) as workspace:
        kept = {workspace.journal.content(row.seq) for row in outside_rows(workspace)}
    assert set(files.values()) - kept == set()


def _check_after_death(root: Path, told: list[Acknowledged]) -> None:
    left = snapshot(root)
    with Workspace.open(root, AGENTS) as workspace:
        assert lost(workspace, told) == []
        assert list(torn(left, workspace.journal)) == []
        assert workspace.verify() == []
        assert outside_rows(workspace) == []


def _check_told(root: Path, told: list[Acknowledged]) -> None:
    """Nothing died here: what was said to be refused must not have been done, either."""
    left = snapshot(root)
    with Workspace.open(root, AGENTS) as workspace:
        kept = [each for each in told if each["success"] or each["row"] is not None]
        assert lost(workspace, kept) == []
        done = {
            (row.zone, row.path, workspace.journal.content(row.seq))
            for row in workspace.journal.rows(limit=10_000)
            if row.version is not None and row.sha256 is not None
        }
        not_done = [each for each in told if not each["success"]]
        assert [each for each in not_done if (each["zone"], each["path"], each["content"]) in done] == []
        assert outside_rows(workspace) == []
        assert list(torn(left, workspace.journal)) == []
        assert workspace.verify() == []
