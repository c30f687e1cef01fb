"""Boards that several processes write (BOARDS-5, BOARDS-10)."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from calls import ok, refused
from effort import rounds
from requirements.boards import board_writer
from watchroom import Workspace
from watchroom.features.config.rows import Agent

GLOBAL = board_writer.BOARD
PROCESSES, ENTRIES = 8, rounds(30, 100)


@contextmanager
def writer(root: Path, agent: str, task: str, count: float) -> Iterator[subprocess.Popen[str]]:
    """A process that is ready to begin."""
    command = [sys.executable, board_writer.__file__, str(root), agent, task, str(count)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        try:
            yield process
        finally:
            process.kill()


def begin(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def is_done(process: subprocess.Popen[str]) -> bool:
    assert process.stdout is not None
    return process.stdout.readline() == "done\n"


def team(size: int) -> list[Agent]:
    return [Agent(f"chief-{number}", "chief", "top") for number in range(size)]


def test_entries_of_eight_processes_all_land_whole_and_in_the_order_of_the_journal(root: Path) -> None:
    with Workspace.open(root, agents=team(PROCESSES)) as workspace, ExitStack() as stack:
        processes = [
            stack.enter_context(writer(root, each.id, "append", ENTRIES)) for each in team(PROCESSES)
        ]
        for process in processes:
            begin(process)
        assert all(is_done(process) for process in processes)

        text = (root / "global-whiteboard.md").read_text(encoding="utf-8")
        found = re.findall(
            r"### Update - [0-9T:.Z-]+\n\*\*Author\*\*: (\S+)\n\n"
            r"Entry (\d+) of (\S+), line one\.\n\nAnd line two of (\S+) (\d+)\.\n",
            text,
        )
        assert len(found) == PROCESSES * ENTRIES == text.count("### Update")
        assert all(author == one == two and n == m for author, n, one, two, m in found), "none is torn"
        rows = workspace.journal.history("board", GLOBAL)
        told = [(row.actor, int(row.message.split()[1])) for row in rows]
        assert [(author, int(number)) for author, number, *_ in found] == told
        assert [row.version for row in rows] == list(range(1, PROCESSES * ENTRIES + 1))
        assert workspace.journal.refused("board", GLOBAL) == []
        assert workspace.verify() == []


def test_a_bottom_agent_cannot_read_anothers_board(root: Path) -> None:
    """BOARDS-4.1."""
    with Workspace.open(root, agents=[Agent("agent-1"), Agent("agent-2")]):
        command = [
            sys.executable,
            "-m",
            "watchroom_cli.main",
            "call",
            str(root),
            "agent-1",
            "whiteboard_read",
        ]
        done = subprocess.run(
            [*command, '{"board": "bottom-layer-agent-2"}'], capture_output=True, text=True, check=False
        )
    assert done.returncode == 1
    assert "permission_denied" in done.stdout


def test_writes_of_several_processes_happen_one_after_the_other(root: Path) -> None:
    """BOARDS-10."""
    with Workspace.open(root, agents=team(4)) as workspace, ExitStack() as stack:
        processes = [stack.enter_context(writer(root, each.id, "write", 10)) for each in team(4)]
        for process in processes:
            begin(process)
        assert all(is_done(process) for process in processes)
        rows = workspace.journal.history("board", GLOBAL)
        assert len(rows) == 40
        assert workspace.journal.refused("board", GLOBAL) == [], "the lock kept the others off"
        for row in rows:
            assert set((workspace.journal.content(row.seq) or "").splitlines()[1:]) == {row.actor}
        assert workspace.boards.locks.current(GLOBAL) is None
        assert workspace.verify() == []


def test_a_lock_holds_across_processes_and_survives_its_holder_no_longer_than_it_lasts(root: Path) -> None:
    one, two = team(2)
    with Workspace.open(root, agents=[one, two]) as workspace:
        with writer(root, one.id, "hold", 60) as holder:
            begin(holder)
            assert is_done(holder)
            holder.kill()
            holder.wait()
        tools = workspace.tools(two.id)
        assert (root / "whiteboards/.locks/global-whiteboard.lock").exists()
        refusal = refused(tools, "whiteboard_append", board=GLOBAL, content="x", wait_seconds=0)
        assert refusal["error"] == "board_leased"
        with writer(root, two.id, "hold", 0.3) as other:
            ok(workspace.tools(one.id), "whiteboard_append", board=GLOBAL, content="mine", wait_seconds=0)
            lock = workspace.boards.locks.current(GLOBAL)
            assert lock is not None
            workspace.boards.locks.release(lock)
            begin(other)
            assert is_done(other)
            other.kill()
            other.wait()
        ok(workspace.tools(one.id), "whiteboard_append", board=GLOBAL, content="after it", wait_seconds=60)
